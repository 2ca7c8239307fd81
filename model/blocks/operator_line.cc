#include "model/blocks/operator_line.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/integer.h"
#include "model/syntax/attribute_reader.h"

namespace shardplan {
namespace {

/// Words of MindSpore's scripts for which there is another way here.
constexpr std::pair<std::string_view, std::string_view> kScriptWords[] = {
    {"shard", "shard(((1, 8),), ((8, 1),)) is: in_strategy: ((1, 8),), out_strategy: ((8, 1),)"},
    {"set_comm_fusion", "it is called comm_fusion"},
    {"fusion", "comm_fusion beside a block or a parameter says with what its gradient is joined"},
    {"op_type", "the kind of a reduction is called reduce"},
    {"activation", "an operator behind it: {op: ReLU, in: NAME}"},
};

/// True if the first occurrence of `word` in `text` is a whole word.
bool names(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return false;
  const std::size_t end = at + word.size();
  const auto is_part = [](char c) { return is_name(std::string_view(&c, 1)) || (c >= '0' && c <= '9'); };
  return (at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]));
}

}  // namespace

std::optional<Attributes> read_attributes(const OperatorSyntax& op, const std::vector<AttributeSpec>& specs,
                                          const KeySpecs& keys, const YamlDocument& document, DimScope& dims,
                                          BlockFaults& faults) {
  const std::string name = faults.name(op.name.text);
  Attributes attributes;
  bool is_good = true;
  for (const auto& [key, node] : op.attributes) {
    const auto spec =
        std::find_if(specs.begin(), specs.end(), [&](const AttributeSpec& s) { return s.name == key.text; });
    if (spec != specs.end()) {
      try {
        const std::string where = fmt::format("{}: {}", name, key.text);
        attributes.emplace(key.text, read_attribute(document, *node, spec->kind, dims, where));
      } catch (const InputError& error) {
        faults.add(error.diagnostics()[0].place, error.diagnostics()[0].message);
        is_good = false;
      }
    } else if (key.text != "shape" || op.is_block) {
      std::vector<std::string> known = key_names(keys);
      std::vector<std::string> own;
      for (const AttributeSpec& s : specs) own.push_back(s.name);
      known.insert(known.end(), own.begin(), own.end());
      const auto other = std::find_if(std::begin(kScriptWords), std::end(kScriptWords),
                                      [&](const auto& word) { return word.first == key.text; });
      const std::string_view other_word =
          other != std::end(kScriptWords) ? other->second : other_recompute_word(key.text);
      const bool is_other = !other_word.empty();
      const std::string nearest = is_other ? "" : nearest_name(key.text, known);
      std::string hint = own.empty() ? "" : fmt::format("attributes of {}: {}", op.type.text, fmt::join(own, ", "));
      if (is_other) hint = other_word;
      faults.add(key.place,
                 fmt::format("{}: unknown key '{}'{}", name, key.text,
                             nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)),
                 std::move(hint));
      is_good = false;
    }
  }
  return is_good ? std::optional(std::move(attributes)) : std::nullopt;
}

SourcePlace place_of(const OperatorSyntax& op, const std::string& message) {
  for (const auto& [key, node] : op.attributes) {
    if (names(message, key.text)) return {key.place.file, node->line, node->column};
  }
  return op.in.empty() ? op.type.place : op.in_place;
}

void report_wrong_count(const OperatorSyntax& op, std::size_t expected, BlockFaults& faults) {
  faults.add(op.in.empty() ? op.type.place : op.in_place,
             fmt::format("{}: {} takes {} input{}, found {}", faults.name(op.name.text), op.type.text, expected,
                         expected == 1 ? "" : "s", op.in.size()));
}

bool count_operators(BlockTemplate& block, std::int64_t added, const OperatorSyntax& op, const TemplateOptions& options,
                     BlockFaults& faults) {
  const std::optional<std::int64_t> sum = checked_add(block.num_operators, added);
  if (sum && *sum <= options.max_operators) {
    block.num_operators = *sum;
    return true;
  }
  faults.add(op.repeat ? op.repeat->place : op.name.place,
             fmt::format("{}: more than {} operators", faults.name(op.name.text), options.max_operators));
  return false;
}

}  // namespace shardplan
