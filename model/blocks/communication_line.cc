#include "model/blocks/communication_line.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "model/blocks/operator_line.h"
#include "model/syntax/attribute_reader.h"
#include "model/syntax/bracket_text.h"
#include "model/syntax/scalar_values.h"
#include "operators/families/communication.h"

namespace shardplan {
namespace {

using Ranks = std::vector<std::int64_t>;

class CommunicationReader {
 public:
  CommunicationReader(const OperatorSyntax& op, const YamlDocument& document, DimScope& dims,
                      const TemplateOptions& options)
      : op_(op), document_(document), dims_(dims), options_(options), local_(*options.local) {}

  /// The ranks of the group; empty for all.
  Ranks group(const YamlNode& node) {
    if (const std::optional<YamlNode> tuple = bracket_list(node)) return group(*tuple);
    if (node.is_scalar() && choice_value(node, {"WORLD_COMM_GROUP", "hccl_world_group", "nccl_world_group"})) return {};
    if (node.is_scalar()) return along_axis(node);
    const bool has_groups = node.is_sequence() && !node.items.empty() && node.items[0].is_sequence();
    if (!has_groups) return own_group(node, {checked(node)});
    std::vector<Ranks> groups;
    for (const YamlNode& item : node.items) groups.push_back(checked(item));
    return own_group(node, groups);
  }

  std::vector<std::int64_t> shapes(const YamlNode& node, const std::string& key) {
    if (const std::optional<YamlNode> tuple = bracket_list(node)) return shapes(*tuple, key);
    std::vector<Shape> shapes;
    const bool is_list = node.is_sequence() && std::all_of(node.items.begin(), node.items.end(),
                                                           [](const YamlNode& item) { return item.is_sequence(); });
    if (!is_list)
      fail(node, fmt::format("{} is {}; expected a list of shapes, as in [[2, 3], [4]]", key, describe(node)));
    for (const YamlNode& item : node.items) shapes.push_back(list(item, key));
    return flat_shapes(shapes);
  }

  /// A list of ranks to which or from which something is sent.
  void check_ranks(const Ranks& ranks, const YamlNode& node, const std::string& key, std::int64_t least) const {
    for (const std::int64_t rank : ranks) {
      if (rank >= least && rank < local_.group_size) continue;
      fail(node, fmt::format("{}: there is no rank {}: they are 0 to {}", key, rank, local_.group_size - 1));
    }
  }

 private:
  [[noreturn]] void fail(const YamlNode& node, std::string message) const {
    throw InputError(document_.place(node), "{}", message);
  }

  std::vector<std::int64_t> list(const YamlNode& node, const std::string& key) {
    return std::get<std::vector<std::int64_t>>(read_attribute(document_, node, AttributeKind::kList, dims_, key));
  }

  Ranks checked(const YamlNode& node) {
    Ranks ranks = list(node, "group");
    check_ranks(ranks, node, "group", 0);
    return ranks;
  }

  Ranks own_group(const YamlNode& node, const std::vector<Ranks>& groups) const {
    std::set<std::int64_t> seen;
    for (const Ranks& ranks : groups) {
      for (const std::int64_t rank : ranks) {
        if (!seen.insert(rank).second) fail(node, fmt::format("group: rank {} stands in it twice", rank));
      }
    }
    for (const Ranks& ranks : groups) {
      if (std::find(ranks.begin(), ranks.end(), local_.rank) != ranks.end()) return ranks;
    }
    if (groups.size() == 1 && groups[0].empty()) return {};
    fail(node, fmt::format("rank {} has {}, but is in none of its groups", local_.rank, op_.type.text));
  }

  /// The ranks that differ from this one along an axis of the mesh alone.
  Ranks along_axis(const YamlNode& node) const {
    std::int64_t stride = 1;
    for (std::size_t i = options_.mesh.size(); i-- > 0;) {
      const auto& [axis, size] = options_.mesh[i];
      if (axis == node.text) {
        const std::int64_t first = local_.rank - local_.rank / stride % size * stride;
        Ranks ranks;
        for (std::int64_t k = 0; k < size; ++k) ranks.push_back(first + k * stride);
        return ranks;
      }
      stride *= size;
    }
    std::vector<std::string> axes;
    for (const auto& [axis, size] : options_.mesh) axes.push_back(axis);
    fail(node, axes.empty()
                   ? fmt::format("group is {}; expected a list of ranks, or with `parallel: {{mesh: ...}}` an axis",
                                 describe(node))
                   : fmt::format("group is {}; the mesh has {}", describe(node), fmt::join(axes, ", ")));
  }

  const OperatorSyntax& op_;
  const YamlDocument& document_;
  DimScope& dims_;
  const TemplateOptions& options_;
  const LocalView& local_;
};

}  // namespace

std::optional<Attributes> read_communication(const OperatorSyntax& op, const OperatorType& type,
                                             const YamlDocument& document, DimScope& dims,
                                             const TemplateOptions& options, BlockFaults& faults) {
  OperatorSyntax plain = op;
  std::erase_if(plain.attributes, [](const auto& attribute) {
    const std::string& key = attribute.first.text;
    return key == "group" || key == "recv_shapes" || key == "send_shapes";
  });
  std::optional<Attributes> attributes =
      read_attributes(plain, type.attributes, operator_keys(), document, dims, faults);
  if (!attributes) return std::nullopt;
  CommunicationReader reader(op, document, dims, options);
  Ranks group;
  for (const auto& [key, node] : op.attributes) {
    const bool is_own = std::any_of(type.attributes.begin(), type.attributes.end(),
                                    [&key = key](const AttributeSpec& spec) { return spec.name == key.text; });
    if (!is_own) continue;
    if (key.text == "group") group = reader.group(*node);
    if (key.text == "reduce") {  // ReduceOp.SUM as well
      const std::optional<std::string> word = choice_value(*node, {"sum", "prod", "max", "min"});
      if (word) (*attributes)[key.text] = *word;
    }
    if (key.text == "recv_shapes" || key.text == "send_shapes") {
      (*attributes)[key.text] = reader.shapes(*node, key.text);
    }
    if (key.text.ends_with("_rank_ids")) {
      reader.check_ranks(std::get<Ranks>(attributes->at(key.text)), *node, key.text, -1);
    }
  }
  const auto size = group.empty() ? options.local->group_size : static_cast<std::int64_t>(group.size());
  const auto given = attributes->find("rank_size");
  if (given != attributes->end() && std::get<std::int64_t>(given->second) != size) {
    throw InputError(SourcePlace{}, "rank_size is {}, but the group has {} ranks",
                     std::get<std::int64_t>(given->second), size);
  }
  (*attributes)["rank_size"] = size;
  if (!group.empty()) (*attributes)["group"] = std::move(group);
  return attributes;
}

}  // namespace shardplan
