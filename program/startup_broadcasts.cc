// A broadcast of n bytes runs along a ring of its p devices: it takes p - 1 start-ups, and every link but the last
// carries all n bytes. An all_gather of m bytes has as many start-ups and carries (p - 1)/p m over every link, so a
// broadcast takes the time of one with m = p/(p - 1) n. NCCL's ring does the same: its bus bandwidth of a broadcast
// is n over the time (nccl-tests, PERFORMANCE.md); a reduction to one device takes as long, in the other direction.
#include "program/startup_broadcasts.h"

#include <algorithm>

#include "base/integer.h"
#include "layouts/layout_axes.h"

namespace shardplan {

std::vector<AxisRef> repeated_axes(const TensorLayout& layout, const DeviceMesh& mesh) {
  std::vector<AxisRef> used = cutting_axes(layout);
  std::sort(used.begin(), used.end(), [](const AxisRef& a, const AxisRef& b) {
    return a.axis != b.axis ? a.axis < b.axis : a.before < b.before;
  });
  std::vector<AxisRef> repeated;
  auto next = used.begin();
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    AxisRef rest = mesh.whole(axis);
    const std::int64_t size = mesh.axes()[axis].size;
    std::int64_t before = 1;
    const auto add = [&](std::int64_t end) {
      if (end == before) return;
      rest.before = before;
      rest.size = end / before;
      repeated.push_back(rest);
    };
    for (; next != used.end() && next->axis == rest.axis; ++next) {
      add(next->before);
      before = next->before * next->size;
    }
    add(size);
  }
  return repeated;
}

Picoseconds broadcast_time(const std::vector<AxisRef>& axes, Bytes bytes, const CollectiveCosts& costs) {
  const std::int64_t members = num_pieces(axes);
  return costs.time(CollectiveKind::kAllGather, axes, multiply_divide(bytes, members, members - 1));
}

std::vector<StartupBroadcast> startup_broadcasts(const ParallelProgram& program, const OperatorGraph& graph,
                                                 const CollectiveCosts& costs) {
  std::vector<StartupBroadcast> broadcasts;
  for (std::size_t i = 0; i < program.given.size(); ++i) {
    const Binding& given = program.given[i];
    if (graph.tensor(given.tensor).kind == TensorKind::kInput) continue;
    const ProgramValue& value = program.values[given.value];
    StartupBroadcast broadcast{i, repeated_axes(value.layout, program.mesh), 0};
    if (num_pieces(broadcast.axes) == 1) continue;
    broadcast.time = broadcast_time(broadcast.axes, value.bytes, costs);
    broadcasts.push_back(std::move(broadcast));
  }
  return broadcasts;
}

Bytes startup_bytes(const ParallelProgram& program) {
  Bytes bytes = 0;
  for (const StartupBroadcast& broadcast : program.broadcasts) {
    bytes += program.values[program.given[broadcast.given].value].bytes;
  }
  return bytes;
}

Picoseconds startup_time(const ParallelProgram& program) {
  Picoseconds time = 0;
  for (const StartupBroadcast& broadcast : program.broadcasts) time += broadcast.time;
  return time;
}

}  // namespace shardplan
