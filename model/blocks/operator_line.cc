#include "model/blocks/operator_line.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/integer.h"
#include "model/syntax/attribute_reader.h"

namespace shardplan {
namespace {

/// True where `word` stands in `text` as a whole word, at its first occurrence.
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
      const std::string nearest = nearest_name(key.text, known);
      faults.add(key.place,
                 fmt::format("{}: unknown key '{}'{}", name, key.text,
                             nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)),
                 own.empty() ? "" : fmt::format("attributes of {}: {}", op.type.text, fmt::join(own, ", ")));
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
