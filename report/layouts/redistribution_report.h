#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layouts/redistribution/cross_mesh.h"
#include "layouts/redistribution/redistribution.h"

namespace shardplan {

/// Everything that `shardplan redistribute` reports: the collectives on the first mesh and, if the second has other
/// devices, the sends to them.
struct RedistributionReport {
  struct Sends {
    DeviceMesh mesh;  // the receivers'
    TensorLayout to;
    std::vector<BoxSend> boxes;  // boxes of cells
    Bytes cell_bytes = 0;
    Bytes sent = 0;  // by the busiest device
    Picoseconds time = 0;
    Bytes peak = 0;
  };

  std::string dtype;
  Shape shape;
  DeviceMesh mesh;
  std::string spans;  // the mesh's axes and the levels of links that they span
  Redistribution plan;
  std::optional<Sends> sends;
  std::optional<Redistribution> greedy;  // shown if it takes longer
  std::optional<double> error;           // the largest error of the check, if there was one

  Picoseconds time() const { return plan.time + (sends ? sends->time : 0); }
  Bytes sent() const { return plan.sent + (sends ? sends->sent : 0); }
  Bytes peak() const { return sends ? std::max(plan.peak, sends->peak) : plan.peak; }
  bool is_verified() const { return error && *error <= 1e-9; }
};

std::string text_report(const RedistributionReport& report);
std::string json_report(const RedistributionReport& report);

}  // namespace shardplan
