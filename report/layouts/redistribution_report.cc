#include "report/layouts/redistribution_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json_text.h"
#include "layouts/redistribution/permutation.h"
#include "report/text/strategy_text.h"
#include "report/text/text_table.h"

namespace shardplan {
namespace {

/// Devices that communicate in one step: groups, or pairs of sender and receiver.
using Lists = std::vector<std::vector<std::int64_t>>;

Lists groups_of(const CollectiveStep& step, const DeviceMesh& mesh) {
  Lists lists;
  if (step.kind == CollectiveKind::kCollectivePermute) {
    const std::vector<std::int64_t> sources = permute_sources(step, mesh);
    for (std::size_t point = 0; point < sources.size(); ++point) {
      const auto to = static_cast<std::int64_t>(point);
      if (sources[point] != to) lists.push_back({device_at(mesh, sources[point]), device_at(mesh, to)});
    }
  } else if (step.kind != CollectiveKind::kSlice && step.kind != CollectiveKind::kToPartial) {
    lists = mesh.groups(step.axes);
    for (std::vector<std::int64_t>& group : lists) {
      for (std::int64_t& point : group) point = device_at(mesh, point);
    }
  }
  return lists;
}

/// The bytes that one device sends to another, all boxes together.
struct PairBytes {
  std::int64_t from = 0;
  std::int64_t to = 0;
  Bytes bytes = 0;
};
std::vector<PairBytes> pairs_of(const RedistributionReport::Sends& sends) {
  std::vector<PairBytes> pairs;
  for (const BoxSend& box : sends.boxes) {
    if (box.from_device == box.to_device) continue;
    const bool is_new = pairs.empty() || pairs.back().from != box.from_device || pairs.back().to != box.to_device;
    if (is_new) pairs.push_back({box.from_device, box.to_device, 0});
    pairs.back().bytes += box.num_elements() * sends.cell_bytes;
  }
  return pairs;
}

/// "{0,1} {2,3}" or "2<->4, 0->1", shortened to a few entries.
std::string short_text(const Lists& lists, bool are_pairs) {
  constexpr std::size_t kMostWidth = 40;
  std::string text;
  const auto is_there = [&](std::int64_t from, std::int64_t to) {
    return std::find(lists.begin(), lists.end(), std::vector{from, to}) != lists.end();
  };
  const auto add = [&](const std::string& item) {
    const std::string separator = text.empty() ? "" : are_pairs ? ", " : " ";
    const bool fits = text.size() + separator.size() + item.size() <= kMostWidth;
    text += separator + (fits ? item : "...");
    return fits;
  };
  for (const std::vector<std::int64_t>& list : lists) {
    std::string item;
    if (!are_pairs) {
      if (list.size() > kMostWidth) return text + (text.empty() ? "..." : " ...");
      item = fmt::format("{{{}}}", fmt::join(list, ","));
    } else {
      const bool is_swap = lists.size() < 1000 && is_there(list[1], list[0]);
      if (is_swap && list[0] > list[1]) continue;
      item = fmt::format("{}{}{}", list[0], is_swap ? "<->" : "->", list[1]);
    }
    if (!add(item)) break;
  }
  return text.empty() ? "-" : text;
}

std::string dimensions_text(const CollectiveStep& step) {
  if (step.from_dim && step.to_dim) return fmt::format("{} -> {}", *step.from_dim, *step.to_dim);
  if (step.from_dim) return std::to_string(*step.from_dim);
  if (step.to_dim) return std::to_string(*step.to_dim);
  return "-";
}

/// "devices 4 to 11" or the list.
std::string devices_text(const DeviceMesh& mesh) {
  std::vector<std::int64_t> devices;
  bool is_run = true;
  for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
    devices.push_back(device_at(mesh, point));
    is_run = is_run && device_at(mesh, point) == device_at(mesh, 0) + point;
  }
  if (is_run && devices.size() > 1) return fmt::format("devices {} to {}", devices.front(), devices.back());
  return fmt::format("{} {}", devices.size() == 1 ? "device" : "devices", fmt::join(devices, ", "));
}

bool is_above_larger_end(const Redistribution& plan, const Shape& shape) {
  const auto held = [&](const TensorLayout& layout) { return num_elements(local_shape(layout, shape)); };
  const std::int64_t larger = std::max(held(plan.from), held(plan.to));
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [&](const CollectiveStep& step) { return held(step.after) > larger; });
}

/// One line for each uneven dimension: "uneven: dimension 0 of 10 in 4 pieces of 3, 17 % of them padding".
std::string padding_text(const TensorLayout& layout, const Shape& shape) {
  const Shape local = local_shape(layout, shape);
  std::string text;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t pieces = layout.dimensions[d].num_pieces();
    if (shape[d] % pieces == 0) continue;
    const double padding =
        1 - static_cast<double>(shape[d]) / (static_cast<double>(pieces) * static_cast<double>(local[d]));
    text += fmt::format("  uneven: dimension {} of {} in {} pieces of {}, {:.0f} % of them padding\n", d, shape[d],
                        pieces, local[d], 100 * padding);
  }
  return text;
}

Json mesh_json(const DeviceMesh& mesh) {
  Json value;
  value["axes"] = Json::array();
  for (const MeshAxis& axis : mesh.axes()) value["axes"].push_back({{"name", axis.name}, {"size", axis.size}});
  if (!mesh.devices().empty()) value["devices"] = mesh.devices();
  return value;
}

Json dimension_json(const std::optional<std::size_t>& dimension) { return dimension ? Json(*dimension) : Json(); }

Json step_json(const CollectiveStep& step, const DeviceMesh& mesh) {
  Json value;
  value["collective"] = to_string(step.kind);
  value["axes"] = Json::array();
  for (const AxisRef& axis : step.axes) value["axes"].push_back(mesh.to_string(axis));
  value["from_dim"] = dimension_json(step.from_dim);
  value["to_dim"] = dimension_json(step.to_dim);
  const Lists groups = groups_of(step, mesh);
  if (!groups.empty()) value[step.kind == CollectiveKind::kCollectivePermute ? "pairs" : "groups"] = groups;
  value["local_shape"] = step.local_shape;
  value["bytes"] = step.sent;
  value["seconds"] = to_seconds(step.time);
  return value;
}

Json sends_json(const RedistributionReport::Sends& sends, const Shape& shape) {
  Json value;
  value["collective"] = "send";
  value["axes"] = Json::array();
  value["from_dim"] = Json();
  value["to_dim"] = Json();
  value["sends"] = Json::array();
  for (const PairBytes& pair : pairs_of(sends)) {
    value["sends"].push_back({{"from", pair.from}, {"to", pair.to}, {"bytes", pair.bytes}});
  }
  value["local_shape"] = local_shape(sends.to, shape);
  value["bytes"] = sends.sent;
  value["seconds"] = to_seconds(sends.time);
  return value;
}

}  // namespace

std::string text_report(const RedistributionReport& report) {
  const auto& [dtype, shape, mesh, spans, plan, sends, greedy, error] = report;
  const TensorLayout& to = sends ? sends->to : plan.to;
  const DeviceMesh& to_mesh = sends ? sends->mesh : mesh;
  std::string text =
      fmt::format("{} {} on {}: {} local {}  ->  {}{} local {}\n", dtype, to_string(shape),
                  mesh.devices().empty() && !sends ? spans : fmt::format("{}, {}", spans, devices_text(mesh)),
                  to_string(plan.from, mesh), to_string(local_shape(plan.from, shape)),
                  sends ? fmt::format("on {}, {}: ", to_mesh.to_string(), devices_text(to_mesh)) : "",
                  to_string(to, to_mesh), to_string(local_shape(to, shape)));
  if (plan.steps.empty() && !sends) {
    text += "\n  nothing to do: both layouts put the same elements on the same devices\n";
  } else {
    const ColumnUnit time = time_unit(report.time());
    const ColumnUnit sent = bytes_unit(report.sent());
    using Align = TextTable::Align;
    TextTable table({Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight,
                     Align::kRight});
    table.add({"step", "collective", "axes", "dims", "groups", "local", fmt::format("sent, {}", sent.name),
               fmt::format("time, {}", time.name)});
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const CollectiveStep& step = plan.steps[i];
      table.add({std::to_string(i + 1), std::string(to_string(step.kind)), axes_text(step.axes, mesh),
                 dimensions_text(step),
                 short_text(groups_of(step, mesh), step.kind == CollectiveKind::kCollectivePermute),
                 to_string(step.local_shape), sent.format(step.sent), time.format(step.time)});
    }
    if (sends) {
      Lists pairs;
      for (const PairBytes& pair : pairs_of(*sends)) pairs.push_back({pair.from, pair.to});
      table.add({std::to_string(plan.steps.size() + 1), "send", "", "-", short_text(pairs, true),
                 to_string(local_shape(to, shape)), sent.format(sends->sent), time.format(sends->time)});
    }
    table.add({"sum", "", "", "", "", "", sent.format(report.sent()), time.format(report.time())});
    text += "\n" + table.to_string(2);
  }
  const bool does_nothing = plan.steps.empty() && !sends;
  text += fmt::format("\n  peak {} per device{}", format_bytes(report.peak()),
                      does_nothing ? "" : ", input and output of a step");
  if (greedy && !greedy->steps.empty() && greedy->time > plan.time) {
    std::vector<std::string_view> kinds;
    for (const CollectiveStep& step : greedy->steps) kinds.push_back(to_string(step.kind));
    text += fmt::format("; greedily ({}) {} and {}", fmt::join(kinds, ", "), format_bytes(greedy->peak),
                        format_time(greedy->time));
  }
  text += "\n" + padding_text(plan.from, shape) + (sends ? std::string() : padding_text(plan.to, shape));
  if (is_above_larger_end(plan, shape))
    text += "  peak above the larger of the two ends: no sequence within that bound was found\n";
  if (error) {
    text += report.is_verified()
                ? fmt::format("  verified on {} simulated devices\n", to_mesh.num_devices())
                : fmt::format("  WRONG: off by up to {:.3g} on {} simulated devices\n", *error, to_mesh.num_devices());
  }
  return text;
}

std::string json_report(const RedistributionReport& report) {
  const std::optional<RedistributionReport::Sends>& sends = report.sends;
  Json document;
  document["schema"] = "shardplan.redistribution/1";
  document["mesh"] = mesh_json(report.mesh);
  if (sends) document["to_mesh"] = mesh_json(sends->mesh);
  document["shape"] = report.shape;
  document["dtype"] = report.dtype;
  document["from"] = to_string(report.plan.from, report.mesh);
  document["to"] = sends ? to_string(sends->to, sends->mesh) : to_string(report.plan.to, report.mesh);
  document["steps"] = Json::array();
  for (const CollectiveStep& step : report.plan.steps) document["steps"].push_back(step_json(step, report.mesh));
  if (sends) document["steps"].push_back(sends_json(*sends, report.shape));
  document["seconds"] = to_seconds(report.time());
  document["bytes"] = report.sent();
  document["peak_bytes"] = report.peak();
  document["verified"] = report.error ? Json(report.is_verified()) : Json();
  return json_document(document);
}

}  // namespace shardplan
