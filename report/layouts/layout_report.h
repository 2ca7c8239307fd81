#pragma once

#include <string>

#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// Output of `shardplan layout`: a layout in every notation (Shardy's, MindSpore's device matrix with tensor map, and
/// strategy tuple), the local shape, and which devices hold the same. Requires a canonical layout that fits `shape`.
std::string layout_report(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape);
/// The same as one JSON document, "schema": "shardplan.layout/1".
std::string layout_json(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape);

}  // namespace shardplan
