#include "report/export/context_exchange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "layouts/layout_axes.h"
#include "report/export/exported_plan.h"

namespace shardplan {
namespace {

/// In how many pieces over the axes of context parallelism one operator of attention is cut.
struct AttentionCut {
  std::int64_t heads = 1, queries = 1, keys = 1;
};

/// Attention in one operator, or a product of heads in attention that is written out; nothing for other operators.
std::optional<AttentionCut> attention_cut(const Plan& plan, OperatorId id, const std::vector<AxisRef>& context) {
  const Operation& operation = plan.graph->operation(id);
  const auto head_dimension = operation.type->head_dimension;
  if (plan.graph->operators()[id].pass != Pass::kForward || head_dimension == nullptr) return std::nullopt;
  const std::optional<std::size_t> heads = head_dimension(operation);
  if (!heads) return std::nullopt;
  const TensorLayout result = result_layout(operation, plan.strategies[id], plan.mesh, 0);
  const auto pieces_along = [&](std::size_t dimension) {
    return common_pieces(axes_along(result.dimensions[dimension]), context);
  };
  AttentionCut cut;
  cut.heads = pieces_along(*heads);
  if (operation.type->role != OperatorRole::kAttention) {
    cut.queries = pieces_along(result.dimensions.size() - 2);
    return cut;
  }
  const auto pieces_of = [&](std::string_view name) {
    const std::optional<std::uint32_t> factor = operation.rule.find(name);
    return factor ? common_pieces(plan.strategies[id].factors[*factor], context) : 1;
  };
  cut.queries = pieces_of("s");
  cut.keys = pieces_of("t");
  return cut;
}

bool exchanges(const AttentionCut& cut, ContextExchange exchange, std::int64_t context) {
  return (exchange == ContextExchange::kHeads ? cut.heads : cut.queries) == context;
}

std::string cut_text(const AttentionCut& cut, std::int64_t context) {
  if (cut.heads == context) return fmt::format("heads in {} (Ulysses)", cut.heads);
  std::vector<std::string> parts;
  if (cut.heads > 1) parts.push_back(fmt::format("heads in {}", cut.heads));
  if (cut.queries > 1) parts.push_back(fmt::format("queries in {}", cut.queries));
  if (cut.keys > 1) parts.push_back(fmt::format("keys in {}", cut.keys));
  return parts.empty() ? "not cut where the sequence is" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

ContextExchange context_exchange(const Plan& plan, const GlobalDegrees& degrees) {
  const std::int64_t context = num_pieces(degrees.context);
  double by_heads = 0, by_queries = 0;
  for (const OperatorId id : plan.graph->operators().ids()) {
    const std::optional<AttentionCut> cut = attention_cut(plan, id, degrees.context);
    if (!cut) continue;
    const Operation& operation = plan.graph->operation(id);
    std::vector<std::int64_t> extents;
    for (const Factor& factor : operation.rule.factors) extents.push_back(factor.size);
    const double work = flops(operation, extents);
    if (exchanges(*cut, ContextExchange::kHeads, context)) by_heads += work;
    if (exchanges(*cut, ContextExchange::kKeys, context)) by_queries += work;
  }
  return by_heads > by_queries ? ContextExchange::kHeads : ContextExchange::kKeys;
}

bool has_heads_for_all(const OperatorGraph& graph, const GlobalDegrees& degrees) {
  const std::int64_t devices = num_pieces(degrees.tensor) * num_pieces(degrees.context);
  for (const OperatorId id : graph.operators().ids()) {
    const Operation& operation = graph.operation(id);
    if (graph.operators()[id].pass != Pass::kForward || operation.type->role != OperatorRole::kAttention) continue;
    const std::optional<std::uint32_t> heads = operation.rule.find("g");
    if (!heads || operation.rule.factors[*heads].size % devices != 0) return false;
  }
  return true;
}

std::vector<std::string> other_exchanges(const Plan& plan, const GlobalDegrees& degrees, ContextExchange exchange) {
  std::vector<ExportedEntry> entries;
  const std::int64_t context = num_pieces(degrees.context);
  for (const OperatorId id : plan.graph->operators().ids()) {
    const std::optional<AttentionCut> cut = attention_cut(plan, id, degrees.context);
    if (!cut || exchanges(*cut, exchange, context)) continue;
    entries.push_back({plan.graph->operators()[id].name, cut_text(*cut, context), ""});
  }
  std::vector<std::string> texts;
  for (const ExportedEntry& entry : fold_entries(entries)) {
    texts.push_back(fmt::format("{}: {}", entry.name, entry.value));
  }
  return texts;
}

}  // namespace shardplan
