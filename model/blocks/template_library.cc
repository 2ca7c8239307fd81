#include "model/blocks/template_library.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "model/blocks/block_typer.h"

namespace shardplan {
namespace {

constexpr std::size_t kMaxBlockDepth = 32;

/// Whether `rest` behind a use of a block names one of its parameters rather than a result.
bool is_parameter(const std::map<std::string, UsableBlock>& blocks, const OperatorSyntax& call,
                  const std::string& rest) {
  const auto found = blocks.find(call.type.text);
  std::string name = rest;
  if (call.repeat && rest[0] >= '0' && rest[0] <= '9') {
    const std::size_t dot = rest.find('.');
    if (dot == std::string::npos) return false;
    name = rest.substr(dot + 1);
  }
  if (found == blocks.end()) return true;  // built-in blocks have one result
  if (!found->second.syntax->outputs) return true;
  const std::vector<Word>& outputs = *found->second.syntax->outputs;
  return std::none_of(outputs.begin(), outputs.end(), [&](const Word& word) { return word.text == name; });
}

}  // namespace

std::size_t TemplateLibrary::KeyHash::operator()(const Key& key) const {
  std::size_t hash = std::hash<const void*>()(key.block);
  const auto combine = [&](std::size_t value) { hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2); };
  for (const TensorType& type : key.inputs) {
    combine(static_cast<std::size_t>(type.dtype));
    for (const std::int64_t extent : type.shape) combine(static_cast<std::size_t>(extent));
  }
  for (const std::int64_t value : key.given) combine(static_cast<std::size_t>(value));
  return hash;
}

TemplateLibrary::TemplateLibrary(const ModelSyntax& model, FileNumbers numbers, TemplateOptions options,
                                 OperatorGraphBuilder& builder, std::vector<Diagnostic>& faults)
    : file_{model, std::move(numbers), options, builder, faults, CustomOperators(model.custom_operators), {}, {}, {}} {
  for (const BlockSyntax& block : model.blocks) file_.blocks.emplace(block.name.text, UsableBlock{&block, nullptr});
  const auto reads_parameter = [&](const OperatorSyntax& call, const std::string& rest) {
    return is_parameter(file_.blocks, call, rest);
  };
  for (const BlockSyntax& block : model.blocks) {
    names_.emplace(&block, resolve_names(block, nullptr, block.name.text + ".", reads_parameter, faults, &model.body));
  }
  names_.emplace(&model.body,
                 resolve_names(model.body, model.loss ? &*model.loss : nullptr, "", reads_parameter, faults));
  for (auto& [name, block] : file_.blocks) block.names = &names_.at(block.syntax);
  file_.template_of = [this](BlockUse use, BlockFaults& caller) { return template_of(std::move(use), caller); };
}

const BlockTemplate* TemplateLibrary::file_template(std::vector<std::string>& unchecked) {
  const BlockSyntax& body = file_.model.body;
  std::unique_ptr<BlockTemplate>& typed = templates_[Key{&body, {}, {}}];
  typed = BlockTyper(file_, {&body, &names_.at(&body)}, "", std::nullopt).type({}, {}, unchecked);
  return typed.get();
}

const BlockTemplate* TemplateLibrary::template_of(BlockUse use, BlockFaults& caller) {
  const BlockSyntax& block = *use.block.syntax;
  Key key{&block, std::move(use.inputs), use.given};
  const auto found = templates_.find(key);
  if (found != templates_.end() && (found->second || !block.is_built_in)) return found->second.get();
  if (!may_enter(use, caller)) return nullptr;
  const std::string label = block.is_built_in ? caller.name(use.call->name.text + ".") : block.name.text + ".";
  std::optional<SourcePlace> place = caller.use();
  if (!place && block.is_built_in) place = use.call->in.empty() ? use.call->type.place : use.call->in_place;
  std::vector<std::string> unchecked;
  const std::size_t first_fault = file_.faults.size();
  active_.push_back(block.name.text);
  std::unique_ptr<BlockTemplate> typed =
      BlockTyper(file_, use.block, label, place).type(key.inputs, key.given, unchecked);
  active_.pop_back();
  if (!typed && !block.is_built_in) shorten_faults(use, caller, first_fault);
  return (templates_[std::move(key)] = std::move(typed)).get();
}

/// Blocks must not contain themselves, nor each other too deeply.
bool TemplateLibrary::may_enter(const BlockUse& use, BlockFaults& caller) {
  const std::string& block = use.block.syntax->name.text;
  if (std::find(active_.begin(), active_.end(), block) != active_.end()) {
    caller.add(use.call->type.place,
               fmt::format("{}: block {} contains itself: {} -> {}", caller.name(use.call->name.text), block,
                           fmt::join(active_, " -> "), block));
    return false;
  }
  if (active_.size() >= kMaxBlockDepth) {
    caller.add(use.call->type.place, fmt::format("{}: blocks within blocks more than {} deep",
                                                 caller.name(use.call->name.text), kMaxBlockDepth));
    return false;
  }
  return true;
}

/// The faults of a block are reported for one of its uses: at other sizes it is mostly wrong in the same way. They say
/// which use of the file it was.
void TemplateLibrary::shorten_faults(const BlockUse& use, const BlockFaults& caller, std::size_t first_fault) {
  if (!reported_.insert(use.block.syntax).second) file_.faults.resize(first_fault);
  if (!caller.label().empty()) return;
  for (std::size_t i = first_fault; i < file_.faults.size(); ++i) {
    std::string& hint = file_.faults[i].hint;
    if (hint.empty()) hint = fmt::format("in {}, line {}", use.call->name.text, use.call->name.place.line);
  }
}

}  // namespace shardplan
