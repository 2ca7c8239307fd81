#include "model/product_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "graph/weights.h"
#include "model/syntax/settings_table.h"

namespace shardplan {
namespace {

/// Calls `see` with a name and those of the blocks around it: "layers", "layers.3", "layers.3.matmul".
template <typename See>
void for_each_block(std::string_view name, See see) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    see(name.substr(0, dot));
  }
  see(name);
}

bool is_marked(std::string_view name, const std::string& mark) {
  bool any = false;
  for_each_block(name, [&](std::string_view block) { any = any || matches_name(mark, block); });
  return any;
}

Diagnostic no_product(const OperatorGraph& graph, const std::string& key, const Word& mark) {
  constexpr char kHint[] = "it is for MatMul, BatchMatMul and Einsum of an activation and a parameter";
  std::set<std::string> names;
  for (const GraphOperator& op : graph.operators()) {
    for_each_block(op.name.str(), [&](std::string_view block) { names.emplace(block); });
  }
  const bool is_known =
      std::ranges::any_of(names, [&](const std::string& name) { return matches_name(mark.text, name); });
  if (is_known) return {mark.place, fmt::format("{}: {} has no product of a weight", key, mark.text), kHint};
  const std::string nearest = nearest_name(mark.text, {names.begin(), names.end()});
  return {mark.place,
          fmt::format("{}: no operator or block '{}'{}", key, mark.text,
                      nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)),
          {}};
}

}  // namespace

std::vector<OperatorId> marked_products(const OperatorGraph& graph, const std::string& key,
                                        const std::vector<Word>& marks, std::vector<Diagnostic>& faults) {
  std::vector<OperatorId> products;
  std::vector<char> is_used(marks.size(), 0);
  for (const OperatorId op : graph.operators().ids()) {
    if (!multiplies_weight(graph, op)) continue;
    bool any = false;
    for (std::size_t i = 0; i < marks.size(); ++i) {
      if (!is_marked(graph.operators()[op].name.str(), marks[i].text)) continue;
      is_used[i] = 1;
      any = true;
    }
    if (any) products.push_back(op);
  }
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (!is_used[i]) faults.push_back(no_product(graph, key, marks[i]));
  }
  return products;
}

}  // namespace shardplan
