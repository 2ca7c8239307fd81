#include "planner/problem/decided_strategies.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "planner/problem/mode_strategies.h"

namespace shardplan {

namespace {

bool uses_strategies(ParallelMode mode) {
  return mode == ParallelMode::kAutoParallel || mode == ParallelMode::kSemiAutoParallel;
}

/// The pieces, with each axis that strategies divide otherwise divided as they do. It stays as it is if some of their
/// parts of it overlap.
std::vector<AxisRef> as_strategies_divide(const std::vector<AxisRef>& pieces, const UserStrategies& strategies,
                                          const DeviceMesh& mesh) {
  std::vector<std::set<std::int64_t>> ends(mesh.axes().size());  // of parts, by axis
  const auto add = [&](const std::vector<AxisRef>& axes) {
    for (const AxisRef& part : axes) ends[part.axis].insert({part.before, part.end()});
  };
  for (const SharedVector<Strategy>& of_operator : strategies.operators) {
    if (of_operator.size() != 1) continue;  // open
    for (const std::vector<AxisRef>& axes : of_operator.front().factors) add(axes);
  }
  for (const RareValue<TensorLayout>& stored : strategies.stored) {
    if (!stored) continue;
    for (const DimensionLayout& dimension : stored->dimensions) {
      for (const DimensionPart& part : dimension.parts) add(part.axes);
    }
  }
  std::vector<AxisRef> result;
  for (std::uint32_t axis = 0; axis < mesh.axes().size(); ++axis) {
    std::vector<AxisRef> usual, divided;
    std::set<std::int64_t> known{1};
    for (const AxisRef& piece : pieces) {
      if (piece.axis != axis) continue;
      usual.push_back(piece);
      known.insert(piece.end());
    }
    ends[axis].insert(mesh.axes()[axis].size);
    bool is_chain = true;
    std::int64_t before = 1;
    for (const std::int64_t end : ends[axis]) {
      is_chain = is_chain && end % before == 0;
      if (end > before) divided.push_back({axis, before, end / before});
      before = end;
    }
    const bool is_new = !std::includes(known.begin(), known.end(), ends[axis].begin(), ends[axis].end());
    const std::vector<AxisRef>& taken = is_new && is_chain ? divided : usual;
    result.insert(result.end(), taken.begin(), taken.end());
  }
  return result;
}

}  // namespace

DecidedStrategies decided_strategies(const Model& model, const OperatorGraph& graph, const DeviceMesh& mesh,
                                     const SearchPieces& search, const std::optional<std::string>& strategy_file) {
  const SourcePlace key = strategy_file ? SourcePlace{} : model.parallel.strategy_load_file.place;
  const std::string path = strategy_file.value_or(model.parallel.strategy_load_file.value);
  if (!path.empty() && !uses_strategies(model.parallel.parallel_mode)) {
    throw InputError(model.parallel.parallel_mode_place,
                     "parallel_mode: it uses no strategies, but those of {} are given; they are for auto_parallel and "
                     "semi_auto_parallel",
                     path);
  }
  const auto named = [&](const std::vector<AxisRef>& pieces) {
    DecidedStrategies result;
    result.pieces = pieces;
    result.strategies = resolve_user_strategies(
        graph, mesh, pieces, model.parallel.allows_uneven ? UnevenCuts::kWhereNothingElseFits : UnevenCuts::kNone);
    if (path.empty()) {
      result.loaded.is_loaded.resize(graph.operators().size(), 0);
      return result;
    }
    try {
      result.loaded = load_strategy_file(path, graph, mesh, result.strategies);
    } catch (const InputError& error) {
      throw named_at(key, error);
    }
    return result;
  };
  DecidedStrategies decided = named(search.pieces);
  if (search.follows_strategies) {
    const std::vector<AxisRef> divided = as_strategies_divide(search.pieces, decided.strategies, mesh);
    if (divided != search.pieces) decided = named(divided);
  }
  for (const OperatorId op : graph.operators().ids()) {
    if (model.parallel.allows_uneven || decided.loaded.is_loaded[op] == 0) continue;
    for (const Strategy& strategy : decided.strategies.operators[op]) {
      if (!is_uneven(graph.operation(op), strategy)) continue;
      throw InputError({}, "{}: the strategy of {} cuts it in unequal pieces, but all are to be equal", path,
                       graph.operators()[op].name);
    }
  }
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    RareValue<TensorLayout>& stored = decided.strategies.stored[id];
    if (tensor.kind == TensorKind::kInput && model.parallel.full_batch && !stored) {
      stored = TensorLayout::replicated(tensor.type.shape.size());
    }
  }
  decided.is_final = decide_by_mode(decided.strategies, model, graph, mesh, decided.pieces, decided.notices);
  return decided;
}

}  // namespace shardplan
