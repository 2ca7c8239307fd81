#include "planner/model_mesh.h"

namespace shardplan {

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

std::vector<AxisRef> model_pieces(const Model& model, const DeviceMesh& mesh) {
  if (model.parallel.mesh.empty()) return search_pieces(mesh);
  std::vector<AxisRef> pieces;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) pieces.push_back(mesh.whole(axis));
  return pieces;
}

}  // namespace shardplan
