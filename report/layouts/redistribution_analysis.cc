// Redistributions are planned with the costs of the cluster's links. The check runs them on the simulator's buffers,
// which share nothing with the planner but the meaning of layouts.

#include "report/layouts/redistribution_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/hierarchical_costs.h"
#include "costmodel/send_costs.h"
#include "layouts/redistribution/greedy_redistribution.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "layouts/uneven.h"
#include "simulator/execute/sends.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMostCells = std::int64_t{1} << 20;

std::string spans_of(const Cluster& cluster, const DeviceMesh& mesh) {
  std::string spans;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    spans += fmt::format("{}{}={}", spans.empty() ? "" : ", ", mesh.axes()[axis].name, mesh.axes()[axis].size);
    std::string levels;
    for (const std::string& level : spanned_levels(cluster, mesh, mesh.whole(axis))) {
      levels += (levels.empty() ? "" : " x ") + level;
    }
    if (!levels.empty()) spans += fmt::format(" ({})", levels);
  }
  return spans;
}

/// Requires that partial values have been reduced.
RedistributionReport::Sends plan_sends_of(const RedistributionQuestion& question, const TensorLayout& reduced) {
  const DeviceMesh& to_mesh = *question.to_mesh;
  const TensorCells cells = cells_of(reduced, question.to, question.shape);
  std::int64_t positions = 0;
  for (const std::int64_t extent : cells.shape) positions += extent;
  if (positions > kMostCells / std::max(question.mesh.num_devices(), to_mesh.num_devices())) {
    throw InputError({}, "the two layouts divide the tensor into {} cells, too many for planning the sends", positions);
  }
  RedistributionReport::Sends sends;
  sends.mesh = to_mesh;
  sends.to = question.to;
  sends.boxes = plan_sends(cells.from, question.mesh, cells.to, to_mesh, cells.shape);
  sends.cell_bytes = cells.elements * element_bytes(question.dtype);
  std::vector<DeviceSend> list;
  std::map<std::int64_t, Bytes> sent;
  for (const BoxSend& box : sends.boxes) {
    if (box.from_device == box.to_device) continue;
    const Bytes bytes = box.num_elements() * sends.cell_bytes;
    list.push_back({box.from_device, box.to_device, bytes});
    sends.sent = std::max(sends.sent, sent[box.from_device] += bytes);
  }
  sends.time = sends_time(question.cluster, list);
  const Bytes input = question.tensor_bytes() / num_shards(reduced);
  const Bytes output = question.tensor_bytes() / num_shards(question.to);
  sends.peak = std::max(input, output);
  std::vector<std::int64_t> senders;
  for (std::int64_t point = 0; point < question.mesh.num_devices(); ++point) {
    senders.push_back(device_at(question.mesh, point));
  }
  for (std::int64_t point = 0; point < to_mesh.num_devices(); ++point) {
    const bool is_both = std::find(senders.begin(), senders.end(), device_at(to_mesh, point)) != senders.end();
    if (is_both) sends.peak = input + output;
  }
  return sends;
}

/// Executes everything on random values and returns the largest error on any device.
double largest_error_of(const RedistributionQuestion& question, const Redistribution& plan) {
  const bool has_sends = question.to_mesh.has_value();
  const std::int64_t most_elements = has_sends ? std::int64_t{1} << 22 : std::int64_t{1} << 26;
  const DeviceMesh& to_mesh = has_sends ? *question.to_mesh : question.mesh;
  const std::int64_t elements = num_elements(question.shape);
  const std::int64_t held = std::max(elements / num_shards(plan.from), elements / num_shards(question.to));
  const std::int64_t devices = std::max(question.mesh.num_devices(), to_mesh.num_devices());
  if (elements > most_elements || held > most_elements / devices) {
    throw InputError(
        {}, "--check: the simulated devices would hold {} elements, at most {} are possible; give a smaller --shape",
        held * devices, most_elements);
  }
  Random random(1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < elements; ++i) values.push_back(random.unit() * 2 - 1);
  DeviceBuffers buffers =
      apply(plan, question.mesh, question.shape, scatter(values, question.shape, plan.from, question.mesh));
  if (has_sends) {
    buffers = apply(plan_sends(plan.to, question.mesh, question.to, to_mesh, question.shape), plan.to, question.mesh,
                    question.to, to_mesh, question.shape, buffers);
  }
  return largest_error(buffers, values, question.shape, question.to, to_mesh);
}

}  // namespace

Bytes RedistributionQuestion::tensor_bytes() const {
  Bytes bytes = element_bytes(dtype);
  for (const std::int64_t extent : shape) bytes *= extent;
  return bytes;
}

RedistributionReport answer(const RedistributionQuestion& question, bool check) {
  const auto costs = std::make_shared<const HierarchicalCosts>(question.cluster, question.mesh);
  RedistributionPlanner planner(question.mesh, costs, {.bounded_memory = question.bounded_memory});
  const Bytes bytes = element_bytes(question.dtype);
  // Only whole values are sent; partial values are first reduced on their own mesh.
  TensorLayout to = question.to;
  if (question.to_mesh) {
    to = question.from;
    to.partial.clear();
    to.reduction = Reduction::kSum;
  }
  RedistributionReport report;
  report.dtype = to_string(question.dtype);
  report.shape = question.shape;
  report.mesh = question.mesh;
  report.spans = spans_of(question.cluster, question.mesh);
  report.plan = planner.plan(question.from, to, question.shape, bytes);
  if (question.to_mesh) {
    report.sends = plan_sends_of(question, to);
  } else if (!is_uneven(question.from, question.shape) && !is_uneven(to, question.shape)) {
    report.greedy = greedy_redistribution(question.from, to, question.shape, bytes, question.mesh, *costs);
  }
  if (check) report.error = largest_error_of(question, report.plan);
  return report;
}

}  // namespace shardplan
