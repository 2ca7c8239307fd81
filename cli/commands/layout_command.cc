#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/commands/tensor_arguments.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "layouts/mindspore_layout.h"
#include "layouts/uneven.h"
#include "report/layouts/layout_report.h"

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

/// The arguments, read and checked.
struct LayoutOnMesh {
  DeviceMesh mesh;
  Shape shape;
  TensorLayout layout;
};

LayoutOnMesh read(const LayoutArguments& arguments) {
  const int notations = (arguments.device_matrix.empty() ? 0 : 1) + (arguments.strategy.empty() ? 0 : 1) +
                        (arguments.layout.empty() ? 0 : 1);
  if (notations != 1 || arguments.device_matrix.empty() != arguments.tensor_map.empty()) {
    throw InputError(SourcePlace{},
                     "give one of --device-matrix with --tensor-map, --strategy with --mesh, --layout with --mesh");
  }
  if (arguments.device_matrix.empty() && arguments.mesh.empty()) {
    throw InputError(SourcePlace{}, "--mesh is missing; expected axes and sizes such as x=2,y=4");
  }
  LayoutOnMesh given;
  given.shape = parse_shape("--shape", arguments.shape, 1);
  if (!arguments.layout.empty()) {
    given.mesh = DeviceMesh::parse(arguments.mesh);
    std::string note;
    given.layout = parse_layout(arguments.layout, given.mesh, &note);
    if (!note.empty()) notice("notice: " + note);
  } else if (!arguments.strategy.empty()) {
    given.mesh = DeviceMesh::parse(arguments.mesh);
    const std::vector<std::int64_t> tuple = parse_integers("--strategy", arguments.strategy, 1);
    const auto layout = layout_of_tuple(tuple, given.mesh);
    if (!layout) {
      throw InputError({}, "--strategy {} cannot be formed from the {} devices of {}", tuple_text(tuple),
                       given.mesh.num_devices(), given.mesh.to_string());
    }
    given.layout = *layout;
  } else {
    const MindSporeLayout given_layout = mindspore_layout(parse_integers("--device-matrix", arguments.device_matrix, 1),
                                                          parse_integers("--tensor-map", arguments.tensor_map, -1));
    // Without names, the axes are the entries of the device matrix.
    std::vector<MeshAxis> axes;
    for (const std::int64_t size : given_layout.device_matrix) axes.push_back({fmt::format("d{}", axes.size()), size});
    given.mesh = arguments.mesh.empty() ? DeviceMesh(axes) : DeviceMesh::parse(arguments.mesh);
    given.layout = layout_of(given_layout, given.mesh);
  }
  constexpr std::int64_t kMostDevices = 1 << 20;
  if (given.mesh.num_devices() > kMostDevices) {
    throw InputError({}, "the mesh has {} devices; at most {} are listed", given.mesh.num_devices(), kMostDevices);
  }
  // MindSpore's notations require sizes that divide.
  const std::string fault = arguments.layout.empty() ? check_layout(given.layout, given.mesh, given.shape)
                                                     : check_uneven_layout(given.layout, given.mesh, given.shape);
  if (!fault.empty()) {
    const char* const option = !arguments.layout.empty()     ? "--layout"
                               : !arguments.strategy.empty() ? "--strategy"
                                                             : "--tensor-map";
    throw InputError({}, "{} {}: {}", option, to_string(given.layout, given.mesh), fault);
  }
  given.layout = canonical(given.layout, given.mesh, given.shape);
  return given;
}

int layout(const LayoutArguments& arguments) {
  const LayoutOnMesh given = read(arguments);
  print(arguments.json ? layout_json(given.layout, given.mesh, given.shape)
                       : layout_report(given.layout, given.mesh, given.shape));
  return kDone;
}

}  // namespace

Command layout_command() {
  auto arguments = std::make_shared<LayoutArguments>();
  Command command;
  command.name = "layout";
  command.topic = "Layouts";
  command.summary = "Show a layout in every notation, its local shape, and which devices hold the same data";
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
