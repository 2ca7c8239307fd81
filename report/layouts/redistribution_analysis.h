#pragma once

#include <optional>

#include "costmodel/cluster/cluster.h"
#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"
#include "operators/data_type.h"
#include "report/layouts/redistribution_report.h"

namespace shardplan {

/// How to redistribute a tensor from one layout to another: on the same mesh, or to the devices of another mesh.
struct RedistributionQuestion {
  Cluster cluster;
  DeviceMesh mesh;
  std::optional<DeviceMesh> to_mesh;  // set if the tensor moves to other devices; `to` is then a layout on this mesh
  Shape shape;
  DataType dtype = DataType::kF32;
  TensorLayout from;
  TensorLayout to;
  bool bounded_memory = true;

  Bytes tensor_bytes() const;
};

/// Plans the redistribution: collectives on the first mesh, then sends if there is a second mesh. With `check` it is
/// also executed on random values, on simulated devices. Throws InputError for more than 2^20 cells to send, or more
/// elements than the simulated devices can hold.
RedistributionReport answer(const RedistributionQuestion& question, bool check);

}  // namespace shardplan
