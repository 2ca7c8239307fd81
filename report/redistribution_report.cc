#include "report/redistribution_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layouts/redistribution/permutation.h"
#include "report/text_table.h"

namespace shardplan {
namespace {

/// Devices that exchange something in one step: groups, or pairs of sender and receiver.
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

/// What a device sends to another, all boxes together.
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

/// "{0,1} {2,3}" or "2<->4, 0->1", shortened to a few.
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

std::string axes_text(const std::vector<AxisRef>& axes, const DeviceMesh& mesh) {
  std::string text;
  for (const AxisRef& axis : axes) text += (text.empty() ? "" : ", ") + mesh.to_string(axis);
  return text;
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

std::string mesh_json(const DeviceMesh& mesh) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh.axes()) {
    axes.push_back(fmt::format(R"({{"name": "{}", "size": {}}})", axis.name, axis.size));
  }
  const std::string devices =
      mesh.devices().empty() ? "" : fmt::format(R"(, "devices": {})", to_string(mesh.devices()));
  return fmt::format(R"({{"axes": [{}]{}}})", fmt::join(axes, ", "), devices);
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
    text += "\n  nothing to do: both place alike\n";
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
  text += fmt::format("\n  peak {} per device, input and output of a step", format_bytes(report.peak()));
  if (greedy && !greedy->steps.empty() && greedy->time > plan.time) {
    std::vector<std::string_view> kinds;
    for (const CollectiveStep& step : greedy->steps) kinds.push_back(to_string(step.kind));
    text += fmt::format("; greedily ({}) {} and {}", fmt::join(kinds, ", "), format_bytes(greedy->peak),
                        format_time(greedy->time));
  }
  text += "\n" + padding_text(plan.from, shape) + (sends ? std::string() : padding_text(plan.to, shape));
  if (is_above_larger_end(plan, shape)) text += "  above the larger end on the way: no sequence within was found\n";
  if (error) {
    text += report.is_verified()
                ? fmt::format("  verified on {} simulated devices\n", to_mesh.num_devices())
                : fmt::format("  WRONG: off by up to {:.3g} on {} simulated devices\n", *error, to_mesh.num_devices());
  }
  return text;
}

std::string json_report(const RedistributionReport& report) {
  const auto& [dtype, shape, mesh, spans, plan, sends, greedy, error] = report;
  const TensorLayout& to = sends ? sends->to : plan.to;
  const DeviceMesh& to_mesh = sends ? sends->mesh : mesh;
  std::string text = fmt::format("{{\"schema\": \"shardplan.redistribution/1\",\n \"mesh\": {},\n", mesh_json(mesh));
  if (sends) text += fmt::format(" \"to_mesh\": {},\n", mesh_json(to_mesh));
  text += fmt::format(" \"shape\": {}, \"dtype\": \"{}\", \"from\": \"{}\", \"to\": \"{}\",\n \"steps\": [",
                      to_string(shape), dtype, to_string(plan.from, mesh), to_string(to, to_mesh));
  const auto dimension = [](const std::optional<std::size_t>& d) { return d ? std::to_string(*d) : "null"; };
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const CollectiveStep& step = plan.steps[i];
    std::vector<std::string> names;
    for (const AxisRef& axis : step.axes) names.push_back("\"" + mesh.to_string(axis) + "\"");
    text += fmt::format("{}\n  {{\"collective\": \"{}\", \"axes\": [{}], \"from_dim\": {}, \"to_dim\": {},\n   ",
                        i == 0 ? "" : ",", to_string(step.kind), fmt::join(names, ", "), dimension(step.from_dim),
                        dimension(step.to_dim));
    std::vector<std::string> lists;
    for (const auto& list : groups_of(step, mesh)) lists.push_back(to_string(list));
    if (!lists.empty()) {
      text += fmt::format("\"{}\": [{}],\n   ", step.kind == CollectiveKind::kCollectivePermute ? "pairs" : "groups",
                          fmt::join(lists, ", "));
    }
    text += fmt::format("\"local_shape\": {}, \"bytes\": {}, \"seconds\": {}}}", to_string(step.local_shape), step.sent,
                        to_seconds(step.time));
  }
  if (sends) {
    std::vector<std::string> pairs;
    for (const PairBytes& pair : pairs_of(*sends)) {
      pairs.push_back(fmt::format(R"({{"from": {}, "to": {}, "bytes": {}}})", pair.from, pair.to, pair.bytes));
    }
    text += fmt::format(
        "{}\n  {{\"collective\": \"send\", \"axes\": [], \"from_dim\": null, \"to_dim\": null,\n"
        "   \"sends\": [{}],\n   \"local_shape\": {}, \"bytes\": {}, \"seconds\": {}}}",
        plan.steps.empty() ? "" : ",", fmt::join(pairs, ", "), to_string(local_shape(to, shape)), sends->sent,
        to_seconds(sends->time));
  }
  text += fmt::format("],\n \"seconds\": {}, \"bytes\": {}, \"peak_bytes\": {}, \"verified\": {}}}\n",
                      to_seconds(report.time()), report.sent(), report.peak(),
                      !error                 ? "null"
                      : report.is_verified() ? "true"
                                             : "false");
  return text;
}

}  // namespace shardplan
