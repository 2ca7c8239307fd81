#include "report/layouts/layout_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/json_text.h"
#include "layouts/mindspore_layout.h"
#include "layouts/redistribution/permutation.h"
#include "layouts/uneven.h"
#include "report/text/layout_grid.h"

namespace shardplan {
namespace {

/// The devices that hold each shard, by the shard's number.
std::map<std::int64_t, std::vector<std::int64_t>> holders_of(const TensorLayout& layout, const DeviceMesh& mesh) {
  std::map<std::int64_t, std::vector<std::int64_t>> holders;
  for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
    holders[shard_number(layout, mesh, point)].push_back(point);
  }
  return holders;
}

/// A layout in MindSpore's two notations; both are empty if sizes do not divide.
struct MindSporeNotations {
  std::optional<MindSporeLayout> layout;
  std::optional<std::vector<std::int64_t>> tuple;
};

MindSporeNotations mindspore_notations(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape) {
  if (is_uneven(layout, shape)) return {};
  return {merged_mindspore_layout(layout, mesh, shape), tuple_of_layout(layout, mesh, shape)};
}

}  // namespace

std::string layout_report(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape) {
  constexpr std::size_t kMostWidth = 75;
  const auto [mindspore, tuple] = mindspore_notations(layout, mesh, shape);
  const auto holders = holders_of(layout, mesh);
  std::string text = fmt::format("[{}] on {}\n\n", fmt::join(shape, ", "), mesh.to_string());
  const auto line = [&](std::string_view key, const std::string& value) {
    text += fmt::format("  {:<15}{}\n", key, value);
  };
  line("layout", to_string(layout, mesh));
  line("device_matrix", mindspore ? tuple_text(mindspore->device_matrix) : "cannot express it");
  if (mindspore) line("tensor_map", tensor_map_text(*mindspore));
  line("strategy", tuple ? tuple_text(*tuple) : "cannot express it");
  const Shape slice = local_shape(layout, shape);
  line("slice", fmt::format("[{}]", fmt::join(slice, ", ")));
  for (std::size_t d = 0; d < slice.size(); ++d) {
    const std::int64_t pieces = layout.dimensions[d].num_pieces();
    if (shape[d] % pieces == 0) continue;
    line("uneven", fmt::format("dimension {}: the last of {} pieces has {} of {}", d, pieces,
                               shape[d] - (pieces - 1) * slice[d], slice[d]));
  }
  std::string groups;
  std::size_t shown = 0;
  for (const auto& [shard, ranks] : holders) {
    const std::string group = fmt::format("{}{{{}}}", groups.empty() ? "" : " ", fmt::join(ranks, ","));
    if (groups.size() + group.size() > kMostWidth) break;
    groups += group;
    ++shown;
  }
  if (shown < holders.size()) groups += fmt::format(" ... {} in all", holders.size());
  line("same slice", holders.size() == static_cast<std::size_t>(mesh.num_devices()) ? "no two ranks" : groups);
  if (is_uneven(layout, shape)) return text;  // the grid draws pieces of one size
  const std::string grid = layout_grid(layout, mesh, shape, 2);
  return grid.empty() ? text : text + '\n' + grid;
}

std::string layout_json(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape) {
  const auto [mindspore, tuple] = mindspore_notations(layout, mesh, shape);
  Json document;
  document["schema"] = "shardplan.layout/1";
  document["mesh"] = mesh.to_string();
  document["shape"] = shape;
  document["layout"] = to_string(layout, mesh);
  document["device_matrix"] = mindspore ? Json(mindspore->device_matrix) : Json();
  document["tensor_map"] = Json();
  if (mindspore) {
    document["tensor_map"] = Json::array();
    for (const std::vector<std::int64_t>& entry : mindspore->tensor_map) {
      document["tensor_map"].push_back(entry.empty() ? Json(-1) : entry.size() == 1 ? Json(entry[0]) : Json(entry));
    }
  }
  document["strategy"] = tuple ? Json(*tuple) : Json();
  document["slice_shape"] = local_shape(layout, shape);
  document["same_slice"] = Json::array();
  for (const auto& [shard, ranks] : holders_of(layout, mesh)) document["same_slice"].push_back(ranks);
  return json_document(document);
}

}  // namespace shardplan
