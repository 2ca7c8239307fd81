#include "model/blocks/block_template.h"

#include <algorithm>

#include "model/blocks/block_typer.h"

namespace shardplan {

TemplateLibrary::TemplateLibrary(const ModelSyntax& model, std::map<std::string, std::int64_t> dims,
                                 TemplateOptions options, OperatorGraphBuilder& builder,
                                 std::vector<Diagnostic>& faults)
    : state_(new State{model,
                       std::move(dims),
                       options,
                       builder,
                       faults,
                       CustomOperators(model.custom_operators),
                       {},
                       {},
                       {},
                       {},
                       {},
                       {},
                       0}) {
  for (const BlockSyntax& block : model.blocks) state_->blocks.emplace(block.name.text, &block);
  const auto reads_parameter = [&](const OperatorSyntax& call, const std::string& rest) {
    const auto found = state_->blocks.find(call.type.text);
    std::string name = rest;
    if (call.repeat && rest[0] >= '0' && rest[0] <= '9') {
      const std::size_t dot = rest.find('.');
      if (dot == std::string::npos) return false;
      name = rest.substr(dot + 1);
    }
    if (found == state_->blocks.end()) return true;  // built-in blocks have one result
    if (!found->second->outputs) return true;
    const std::vector<Word>& outputs = *found->second->outputs;
    return std::none_of(outputs.begin(), outputs.end(), [&](const Word& word) { return word.text == name; });
  };
  for (const BlockSyntax& block : model.blocks) {
    state_->names.emplace(&block, resolve_names(block, nullptr, block.name.text + ".", reads_parameter, faults));
  }
  state_->names.emplace(&model.body,
                        resolve_names(model.body, model.loss ? &*model.loss : nullptr, "", reads_parameter, faults));
}

TemplateLibrary::~TemplateLibrary() = default;

const BlockTemplate* TemplateLibrary::file_template(std::vector<std::string>& unchecked) {
  const BlockSyntax& body = state_->model.body;
  const auto key = State::Key{&body, {}, {}};
  state_->templates[key] = BodyTyper(*state_, body, state_->names.at(&body), "", std::nullopt).type({}, {}, unchecked);
  return state_->templates[key].get();
}

}  // namespace shardplan
