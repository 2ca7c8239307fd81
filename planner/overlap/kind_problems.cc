#include "planner/overlap/kind_problems.h"

#include <algorithm>
#include <utility>

#include "graph/batch_factors.h"

namespace shardplan {
namespace {

/// With more pieces of the mesh there would be too many ways to use them.
constexpr std::size_t kMostPieces = 4;

/// Forbids those strategies of a node that are not kept.
void keep(StrategyProblem& problem, NodeId node, const std::vector<char>& is_kept) {
  StrategyTable table = problem.strategy_tables[problem.nodes[node].strategies];
  for (std::size_t i = 0; i < is_kept.size(); ++i) {
    if (is_kept[i] == 0) table.costs[i].communication = kForbidden;
  }
  problem.nodes[node].strategies = problem.strategy_tables.push_back(std::move(table));
}

/// The pieces of the mesh that a batch of this size is sharded over: those that divide it into the most parts.
std::vector<char> shards_of_batch(const std::vector<AxisRef>& pieces, std::int64_t batch) {
  std::vector<char> best(pieces.size(), 0);
  std::int64_t most = 1;
  for (std::uint32_t some = 0; some < std::uint32_t{1} << pieces.size(); ++some) {
    std::int64_t parts = 1;
    for (std::size_t i = 0; i < pieces.size(); ++i) parts *= (some >> i & 1) != 0 ? pieces[i].size : 1;
    if (batch % parts != 0 || parts <= most) continue;
    most = parts;
    for (std::size_t i = 0; i < pieces.size(); ++i) best[i] = static_cast<char>(some >> i & 1);
  }
  return best;
}

/// If the batch cannot be sharded over all devices outside of the innermost level: calls `add(tensor, context)` with
/// every way to use the pieces that it leaves.
template <class Add>
void add_beyond_batch(const std::vector<AxisRef>& pieces, std::int64_t batch, const Add& add) {
  if (pieces.empty() || pieces.size() > kMostPieces) return;
  std::int64_t outside = 1;
  for (const AxisRef& piece : pieces) outside *= piece.axis == pieces.back().axis ? 1 : piece.size;
  if (batch % outside == 0) return;
  const std::vector<char> of_batch = shards_of_batch(pieces, batch);
  std::vector<AxisRef> left;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (of_batch[i] == 0) left.push_back(pieces[i]);
  }
  for (std::uint32_t some = 0; some < std::uint32_t{1} << left.size(); ++some) {
    std::vector<AxisRef> tensor, context;
    for (std::size_t i = 0; i < left.size(); ++i) ((some >> i & 1) != 0 ? context : tensor).push_back(left[i]);
    add(tensor, context);
  }
}

}  // namespace

std::vector<GlobalDegrees> common_degrees(const OperatorGraph& graph, const std::vector<AxisRef>& pieces) {
  std::vector<std::vector<AxisRef>> tensors{{}};
  if (!pieces.empty()) {
    const std::uint32_t innermost = pieces.back().axis;
    for (const AxisRef& piece : pieces) {
      if (piece.axis == innermost) tensors.push_back({AxisRef{innermost, 1, piece.before * piece.size}});
    }
  }
  // A plan without ZeRO communicates at least as much as one with its first stage.
  std::vector<int> stages{0};
  if (graph.is_training()) stages = graph.micro_batches() > 1 ? std::vector<int>{3, 2, 1} : std::vector<int>{3, 1};
  std::vector<GlobalDegrees> all;
  const auto add = [&](const std::vector<AxisRef>& tensor, const std::vector<AxisRef>& context) {
    for (const bool sequence : {false, true}) {
      if (sequence && tensor.empty()) continue;
      for (const int zero : stages) all.push_back({tensor, context, sequence, zero, zero == 3});
    }
  };
  for (const std::vector<AxisRef>& tensor : tensors) add(tensor, {});
  add_beyond_batch(pieces, batch_size(graph), add);
  return all;
}

bool keep_degrees(StrategyProblem& problem, const IdVector<NodeId, NodeId>& node, const GlobalDegrees& degrees,
                  const ModelProblem& free, const OperatorGraph& graph, const TensorVersions& versions,
                  const DeviceMesh& mesh) {
  const DegreesKind kind(graph, versions, mesh, degrees);
  IdVector<NodeId, char> is_done(problem.nodes.size(), 0);
  std::vector<char> is_kept;
  for (const OperatorId op : graph.operators().ids()) {
    const NodeId decides = node[free.operator_nodes[op]];
    if (graph.operators()[op].is_copy || std::exchange(is_done[decides], 1) != 0) continue;
    is_kept.clear();
    for (const Strategy& strategy : *free.strategies[op]) is_kept.push_back(kind.allows(op, strategy) ? 1 : 0);
    const auto kept = std::count(is_kept.begin(), is_kept.end(), 1);
    if (kept == 0 && kind.is_demanded(op)) return false;
    if (kept > 0 && kept < std::ssize(is_kept)) keep(problem, decides, is_kept);
  }
  for (const VersionId id : versions.all.ids()) {
    if (!free.version_nodes[id]) continue;
    const NodeId decides = node[*free.version_nodes[id]];
    if (std::exchange(is_done[decides], 1) != 0) continue;
    is_kept.clear();
    for (const ModelProblem::VersionChoice& choice : *free.choices[id]) {
      is_kept.push_back(kind.allows(id, choice.layout) ? 1 : 0);
    }
    const auto kept = std::count(is_kept.begin(), is_kept.end(), 1);
    if (kept == 0 && is_kept.size() > 1) return false;  // with a single candidate: the user's
    if (kept > 0 && kept < std::ssize(is_kept)) keep(problem, decides, is_kept);
  }
  return true;
}

}  // namespace shardplan
