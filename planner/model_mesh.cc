#include "planner/model_mesh.h"

#include <algorithm>
#include <optional>

#include "graph/batch_factors.h"
#include "layouts/uneven.h"
#include "strategies/enumerate.h"

namespace shardplan {
namespace {

/// The largest number of pieces into which some of `pieces` together can shard a batch.
std::int64_t most_cuts(const std::vector<AxisRef>& pieces, std::int64_t batch, bool allows_uneven) {
  std::int64_t most = 1;
  for (std::size_t chosen = 1; chosen < std::size_t{1} << pieces.size(); ++chosen) {
    std::int64_t cuts = 1;
    for (std::size_t i = 0; i < pieces.size(); ++i) cuts *= (chosen >> i & 1) != 0 ? pieces[i].size : 1;
    const bool is_uneven = allows_uneven && can_be_split(batch, cuts) && wastes_little(batch, cuts);
    if (batch % cuts == 0 || is_uneven) most = std::max(most, cuts);
  }
  return most;
}

/// The outermost axis in two pieces, the inner one being the largest that divides the batch; the others are not
/// split.
std::vector<AxisRef> cut_for_batch(const DeviceMesh& mesh, std::int64_t batch) {
  std::vector<AxisRef> pieces;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) pieces.push_back(mesh.whole(axis));
  const std::int64_t size = pieces[0].size;
  std::int64_t outer = 1;
  while (size % outer != 0 || batch % (size / outer) != 0) ++outer;
  if (outer == 1 || outer == size) return pieces;
  AxisRef inner = pieces[0];
  pieces[0].size = outer;
  inner.before *= outer;
  inner.size /= outer;
  pieces.insert(pieces.begin() + 1, inner);
  return pieces;
}

}  // namespace

DeviceMesh model_mesh(const Model& model, const Cluster& cluster) {
  if (model.parallel.mesh.empty()) return make_mesh(cluster);
  std::vector<MeshAxis> axes;
  for (const auto& [name, size] : model.parallel.mesh) axes.push_back({name, size});
  try {
    return make_mesh(cluster, axes);
  } catch (const InputError& error) {
    throw InputError(model.parallel.mesh_place, "{}", error.diagnostics().front().message);
  }
}

std::int64_t batch_size(const OperatorGraph& graph) {
  const BatchFactors batch = find_batch(graph);
  for (const OperatorId op : graph.operators().ids()) {
    if (const std::optional<std::uint32_t>& factor = batch.factors[op])
      return graph.operation(op).rule.factors[*factor].size;
  }
  return 1;
}

std::vector<AxisRef> model_pieces(const Model& model, const DeviceMesh& mesh, std::int64_t batch) {
  if (model.parallel.mesh.empty()) {
    std::vector<AxisRef> usual = search_pieces(mesh);
    if (mesh.axes().size() < 2) return usual;
    const bool allows_uneven = model.parallel.allows_uneven;
    std::vector<AxisRef> for_batch = cut_for_batch(mesh, batch);
    const bool cuts_more = most_cuts(for_batch, batch, allows_uneven) > most_cuts(usual, batch, allows_uneven);
    return cuts_more ? for_batch : usual;
  }
  std::vector<AxisRef> pieces;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) pieces.push_back(mesh.whole(axis));
  return pieces;
}

}  // namespace shardplan
