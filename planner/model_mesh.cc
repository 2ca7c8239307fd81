#include "planner/model_mesh.h"

#include <algorithm>

#include "costmodel/cluster/cluster_mesh.h"
#include "layouts/uneven.h"
#include "planner/mesh_shapes.h"
#include "strategies/enumerate.h"

namespace shardplan {
namespace {

std::int64_t most_cuts(const std::vector<AxisRef>& pieces, std::int64_t batch, bool allows_uneven) {
  return num_pieces(batch_pieces(pieces, batch, allows_uneven));
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

/// Of the usual pieces, the outermost level in two, and all other shapes: the first that shards the batch the most.
std::vector<AxisRef> best_for_batch(const DeviceMesh& mesh, std::int64_t batch, bool allows_uneven) {
  std::vector<std::vector<AxisRef>> candidates{search_pieces(mesh)};
  if (mesh.axes().size() > 1) candidates.push_back(cut_for_batch(mesh, batch));
  std::vector<std::vector<AxisRef>> shapes = mesh_shapes(mesh);
  // Those whose outer pieces are the largest first: they leave the outer levels whole.
  std::stable_sort(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) {
    return std::ranges::lexicographical_compare(b, a, {}, &AxisRef::size, &AxisRef::size);
  });
  candidates.insert(candidates.end(), shapes.begin(), shapes.end());
  const auto cuts = [&](const std::vector<AxisRef>& pieces) { return most_cuts(pieces, batch, allows_uneven); };
  return *std::ranges::max_element(candidates, {}, cuts);  // the first of equals
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

std::vector<AxisRef> batch_pieces(const std::vector<AxisRef>& pieces, std::int64_t batch, bool allows_uneven) {
  std::vector<AxisRef> best;
  // From the set of all pieces to the empty one, so that of equally many cuts those by the first pieces win.
  for (std::size_t chosen = std::size_t{1} << pieces.size(); chosen-- > 0;) {
    std::vector<AxisRef> some;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if ((chosen >> (pieces.size() - 1 - i) & 1) != 0) some.push_back(pieces[i]);
    }
    const std::int64_t cuts = num_pieces(some);
    const bool is_uneven = allows_uneven && can_be_split(batch, cuts) && wastes_little(batch, cuts);
    if ((batch % cuts == 0 || is_uneven) && cuts > num_pieces(best)) best = std::move(some);
  }
  return best;
}

std::vector<AxisRef> model_pieces(const Model& model, const DeviceMesh& mesh, std::int64_t batch) {
  if (model.parallel.mesh.empty()) {
    return best_for_batch(mesh, batch, model.parallel.allows_uneven);
  }
  std::vector<AxisRef> pieces;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    // An axis of size 1 shards nothing, but every candidate would exist once with and once without it.
    if (mesh.axes()[axis].size > 1) pieces.push_back(mesh.whole(axis));
  }
  return pieces;
}

}  // namespace shardplan
