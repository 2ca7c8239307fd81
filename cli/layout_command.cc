#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/tensor_arguments.h"
#include "cli/terminal.h"
#include "layouts/mindspore_layout.h"
#include "layouts/redistribution/permutation.h"

namespace shardplan {
namespace {

/// `shardplan layout`: one layout in all notations. Given as one of: device matrix and tensor map, strategy, layout.
struct LayoutArguments {
  std::string mesh;  // empty: one axis, d
  std::string device_matrix;
  std::string tensor_map;
  std::string strategy;
  std::string layout;
  std::string shape;
  bool json = false;
};

struct ParsedLayout {
  DeviceMesh mesh;
  Shape shape;
  TensorLayout layout;
};

ParsedLayout read(const LayoutArguments& arguments) {
  const int given = (arguments.device_matrix.empty() ? 0 : 1) + (arguments.strategy.empty() ? 0 : 1) +
                    (arguments.layout.empty() ? 0 : 1);
  if (given != 1 || arguments.device_matrix.empty() != arguments.tensor_map.empty()) {
    throw InputError(SourcePlace{},
                     "give one of --device-matrix with --tensor-map, --strategy with --mesh, --layout with --mesh");
  }
  if (arguments.device_matrix.empty() && arguments.mesh.empty()) {
    throw InputError(SourcePlace{}, "--mesh is missing; expected axes and sizes such as x=2,y=4");
  }
  ParsedLayout parsed;
  parsed.shape = parse_shape("--shape", arguments.shape, 1);
  if (!arguments.layout.empty()) {
    parsed.mesh = DeviceMesh::parse(arguments.mesh);
    std::string note;
    parsed.layout = parse_layout(arguments.layout, parsed.mesh, &note);
    if (!note.empty()) notice("note: " + note);
  } else if (!arguments.strategy.empty()) {
    parsed.mesh = DeviceMesh::parse(arguments.mesh);
    const std::vector<std::int64_t> tuple = parse_integers("--strategy", arguments.strategy, 1);
    const auto layout = layout_of_tuple(tuple, parsed.mesh);
    if (!layout) {
      throw InputError({}, "--strategy {} cannot be cut from the {} devices of {}", tuple_text(tuple),
                       parsed.mesh.num_devices(), parsed.mesh.to_string());
    }
    parsed.layout = *layout;
  } else {
    const MindSporeLayout given_layout = mindspore_layout(parse_integers("--device-matrix", arguments.device_matrix, 1),
                                                          parse_integers("--tensor-map", arguments.tensor_map, -1));
    // Without names the entries of the matrix are the axes.
    std::vector<MeshAxis> axes;
    for (const std::int64_t size : given_layout.device_matrix) axes.push_back({fmt::format("d{}", axes.size()), size});
    parsed.mesh = arguments.mesh.empty() ? DeviceMesh(axes) : DeviceMesh::parse(arguments.mesh);
    parsed.layout = layout_of(given_layout, parsed.mesh);
  }
  constexpr std::int64_t kMostDevices = 1 << 20;
  if (parsed.mesh.num_devices() > kMostDevices) {
    throw InputError({}, "the mesh has {} devices; at most {} are listed", parsed.mesh.num_devices(), kMostDevices);
  }
  if (const std::string fault = check_layout(parsed.layout, parsed.mesh, parsed.shape); !fault.empty()) {
    throw InputError({}, "{}: {}", to_string(parsed.layout, parsed.mesh), fault);
  }
  parsed.layout = canonical(parsed.layout, parsed.mesh, parsed.shape);
  return parsed;
}

int layout(const LayoutArguments& arguments) {
  const ParsedLayout parsed = read(arguments);
  const auto mindspore = merged_mindspore_layout(parsed.layout, parsed.mesh, parsed.shape);
  const auto tuple = tuple_of_layout(parsed.layout, parsed.mesh, parsed.shape);
  const Shape slice = local_shape(parsed.layout, parsed.shape);
  std::map<std::int64_t, std::vector<std::int64_t>> holders;  // by shard
  for (std::int64_t point = 0; point < parsed.mesh.num_devices(); ++point) {
    holders[shard_number(parsed.layout, parsed.mesh, point)].push_back(point);
  }
  if (arguments.json) {
    std::vector<std::string> groups;
    for (const auto& [shard, ranks] : holders) groups.push_back(to_string(ranks));
    std::string text = fmt::format("{{\"schema\": \"shardplan.layout/1\", \"mesh\": \"{}\", \"shape\": {},\n",
                                   parsed.mesh.to_string(), to_string(parsed.shape));
    text += fmt::format(" \"layout\": \"{}\",\n", to_string(parsed.layout, parsed.mesh));
    if (mindspore) {
      std::vector<std::string> entries;
      for (const auto& entry : mindspore->tensor_map) {
        entries.push_back(entry.empty()       ? "-1"
                          : entry.size() == 1 ? std::to_string(entry[0])
                                              : fmt::format("[{}]", fmt::join(entry, ", ")));
      }
      text += fmt::format(" \"device_matrix\": [{}], \"tensor_map\": [{}],\n",
                          fmt::join(mindspore->device_matrix, ", "), fmt::join(entries, ", "));
    } else {
      text += " \"device_matrix\": null, \"tensor_map\": null,\n";
    }
    text += tuple ? fmt::format(" \"strategy\": [{}],\n", fmt::join(*tuple, ", ")) : " \"strategy\": null,\n";
    text += fmt::format(" \"slice_shape\": [{}], \"same_slice\": [{}]}}\n", fmt::join(slice, ", "),
                        fmt::join(groups, ", "));
    print(text);
    return kDone;
  }
  std::string text = fmt::format("{} on {}\n\n", to_string(parsed.shape), parsed.mesh.to_string());
  const auto line = [&](std::string_view key, const std::string& value) {
    text += fmt::format("  {:<15}{}\n", key, value);
  };
  line("layout", to_string(parsed.layout, parsed.mesh));
  line("device_matrix", mindspore ? tuple_text(mindspore->device_matrix) : "cannot say it");
  if (mindspore) line("tensor_map", tensor_map_text(*mindspore));
  line("strategy", tuple ? tuple_text(*tuple) : "cannot say it");
  line("slice", fmt::format("[{}]", fmt::join(slice, ", ")));
  std::string groups;
  std::size_t shown = 0;
  for (const auto& [shard, ranks] : holders) {
    const std::string group = fmt::format("{}{{{}}}", groups.empty() ? "" : " ", fmt::join(ranks, ","));
    if (groups.size() + group.size() > 75) break;
    groups += group;
    ++shown;
  }
  if (shown < holders.size()) groups += fmt::format(" ... {} in all", holders.size());
  line("same slice", holders.size() == static_cast<std::size_t>(parsed.mesh.num_devices()) ? "no two ranks" : groups);
  print(text);
  return kDone;
}

}  // namespace

Command layout_command() {
  auto arguments = std::make_shared<LayoutArguments>();
  Command command;
  command.name = "layout";
  command.topic = "Layouts";
  command.summary = "Show one layout in every notation, its local shape, and which devices hold the same";
  command.description =
      "The layout is given in one of three notations: --layout with --mesh, --strategy with --mesh, or --device-matrix "
      "with --tensor-map, where --mesh may name the axes.";
  command.examples = {
      {"--mesh x=2,y=4 --shape 16x8 --layout '[{x}, {y}]'", "axes by name"},
      {"--mesh x=2,y=4 --shape 16x8 --strategy 4,2", "MindSpore's strategy tuple"},
      {"--device-matrix 8,4 --tensor-map 1,-1 --shape 512x1024", "MindSpore's device matrix and tensor map"},
  };
  command.options = {
      {"The tensor",
       {option("--shape", "SHAPE", &arguments->shape, "shape of the whole tensor, as 512x1024").required(),
        option("--mesh", "AXES", &arguments->mesh,
               "axes and sizes, major to minor, as x=2,y=4; without it the device matrix names them d0, d1, ...")}},
      {"Its layout, one of",
       {option("--layout", "LAYOUT", &arguments->layout, "axes of each dimension, as '[{x}, {y}]'"),
        option("--strategy", "CUTS", &arguments->strategy, "pieces of each dimension, as 2,4"),
        option("--device-matrix", "SIZES", &arguments->device_matrix, "MindSpore's, as 8,4; with --tensor-map"),
        option("--tensor-map", "ENTRIES", &arguments->tensor_map,
               "positions in the device matrix counted from the right, -1 for replicated, as 1,-1")}},
      {"Output", {flag("--json", arguments->json, "print one JSON document")}},
  };
  command.action = [arguments] { return layout(*arguments); };
  return command;
}

}  // namespace shardplan
