#include "model/float8_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "graph/float8.h"
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

Diagnostic no_product(const OperatorGraph& graph, const Word& mark) {
  constexpr char kHint[] = "MatMul, BatchMatMul and Einsum of an activation and a parameter can be in f8";
  std::set<std::string> names;
  for (const GraphOperator& op : graph.operators()) {
    for_each_block(op.name.str(), [&](std::string_view block) { names.emplace(block); });
  }
  const bool is_known =
      std::ranges::any_of(names, [&](const std::string& name) { return matches_name(mark.text, name); });
  if (is_known) return {mark.place, fmt::format("fp8: {} has no product of a weight", mark.text), kHint};
  const std::string nearest = nearest_name(mark.text, {names.begin(), names.end()});
  return {mark.place,
          fmt::format("fp8: no operator or block '{}'{}", mark.text,
                      nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)),
          {}};
}

}  // namespace

std::vector<OperatorId> float8_products(const OperatorGraph& graph, const std::vector<Word>& marks,
                                        std::vector<Diagnostic>& faults) {
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
    if (!is_used[i]) faults.push_back(no_product(graph, marks[i]));
  }
  return products;
}

}  // namespace shardplan
