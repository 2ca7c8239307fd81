// `shardplan redistribute`: the cheapest way from one layout to another, on the same devices or on others.

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/integer.h"
#include "base/shortened.h"
#include "cli/commands/commands.h"
#include "cli/commands/tensor_arguments.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "costmodel/cluster/cluster.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "layouts/redistribution/cross_mesh.h"
#include "layouts/uneven.h"
#include "operators/data_type.h"
#include "report/layouts/redistribution_analysis.h"

namespace shardplan {
namespace {

constexpr const char* kDefaultCluster = "ascend-910";

struct RedistributeArguments {
  std::string mesh;
  std::string devices;     // empty: 0, 1, 2, ...
  std::string to_mesh;     // empty: the same as `mesh`
  std::string to_devices;  // empty: the same as `devices`
  std::string shape;
  std::string dtype = "f32";
  std::string from;
  std::string to;
  std::string cluster = kDefaultCluster;
  std::string memory = "bounded";
  bool json = false;
  bool check = false;
};

/// Sends are planned device by device.
constexpr std::int64_t kMostSenders = 1024;
/// Limit on the tensor's bytes times devices, so that sums of what devices send fit in 64 bits.
constexpr Bytes kMostBytes = std::int64_t{1} << 58;

TensorLayout read_layout(const std::string& option, const std::string& text, const DeviceMesh& mesh,
                         const Shape& shape) {
  std::string note;
  const TensorLayout layout = parse_layout(text, mesh, &note);
  if (!note.empty()) notice("notice: " + note);
  if (const std::string fault = check_uneven_layout(layout, mesh, shape); !fault.empty()) {
    throw InputError({}, "{} {}: {}", option, shortened(text), fault);
  }
  return canonical(layout, mesh, shape);
}

DeviceMesh read_mesh(const std::string& axes, const std::string& option, const std::string& devices) {
  const DeviceMesh mesh = DeviceMesh::parse(axes);
  if (devices.empty()) return mesh;
  const std::vector<std::int64_t> list = parse_ranges(option, devices, mesh.num_devices());
  return DeviceMesh(mesh.axes(), list);
}

bool are_whole_groups(const Cluster& cluster, std::int64_t devices) {
  for (std::size_t level = cluster.levels.size(); level-- > 0;) {
    const std::int64_t count = cluster.levels[level].count;
    if (devices > count && devices % count != 0) return false;
    devices /= std::min(devices, count);
  }
  return true;
}

RedistributionQuestion read_question(const RedistributeArguments& arguments) {
  RedistributionQuestion question;
  const std::optional<DataType> dtype = parse_data_type(arguments.dtype);
  if (!dtype) throw InputError({}, "--dtype {}: expected {}", arguments.dtype, data_type_list());
  question.dtype = *dtype;
  question.bounded_memory = arguments.memory == "bounded";
  question.shape = parse_shape("--shape", arguments.shape, element_bytes(*dtype));
  question.mesh = read_mesh(arguments.mesh, "--devices", arguments.devices);
  const std::string& to_axes = arguments.to_mesh.empty() ? arguments.mesh : arguments.to_mesh;
  DeviceMesh to_mesh = DeviceMesh::parse(to_axes);
  if (!arguments.to_devices.empty()) {
    to_mesh = read_mesh(to_axes, "--to-devices", arguments.to_devices);
  } else if (to_mesh.num_devices() != question.mesh.num_devices()) {
    throw InputError({},
                     "--to-mesh {} has {} devices, --mesh {} has {}; say which they are with --to-devices, as {}-{}",
                     to_mesh.to_string(), to_mesh.num_devices(), question.mesh.to_string(), question.mesh.num_devices(),
                     question.mesh.num_devices(), question.mesh.num_devices() + to_mesh.num_devices() - 1);
  } else {
    to_mesh = DeviceMesh(to_mesh.axes(), question.mesh.devices());
  }
  const bool are_named = !arguments.devices.empty() || !arguments.to_devices.empty();
  question.cluster = read_cluster(arguments.cluster);
  if (!are_named && arguments.cluster == kDefaultCluster &&
      question.mesh.num_devices() > question.cluster.num_devices()) {
    const std::int64_t nodes = (question.mesh.num_devices() - 1) / question.cluster.num_devices() + 1;
    const std::string larger = fmt::format("{}x{}", kDefaultCluster, nodes);
    notice(fmt::format("notice: {} devices need --cluster {}, which is used", question.mesh.num_devices(), larger));
    question.cluster = read_cluster(larger);
  }
  // Without names the mesh takes the first devices; if these are whole groups, they form a cluster of their own.
  if (!are_named && (question.mesh.num_devices() > question.cluster.num_devices() ||
                     are_whole_groups(question.cluster, question.mesh.num_devices()))) {
    question.cluster = take_devices(question.cluster, question.mesh.num_devices());
  }
  for (const DeviceMesh* mesh : {&question.mesh, &to_mesh}) {
    for (std::int64_t point = 0; point < mesh->num_devices(); ++point) {
      if (device_at(*mesh, point) < question.cluster.num_devices()) continue;
      const bool is_first = mesh == &question.mesh;
      const bool is_listed = !(is_first ? arguments.devices : arguments.to_devices).empty();
      throw InputError({}, "--{}{}: device {} does not exist: {} has devices 0 to {}", is_first ? "" : "to-",
                       is_listed ? "devices" : "mesh", device_at(*mesh, point), question.cluster.name,
                       question.cluster.num_devices() - 1);
    }
  }
  std::int64_t bytes = element_bytes(*dtype) * std::max(question.mesh.num_devices(), to_mesh.num_devices());
  for (const std::int64_t extent : question.shape) bytes = checked_multiply(bytes, extent).value_or(kMostBytes);
  if (bytes >= kMostBytes) {
    throw InputError({}, "--shape {}: {} devices times the tensor's bytes must stay below 2^58",
                     shortened(arguments.shape), std::max(question.mesh.num_devices(), to_mesh.num_devices()));
  }
  question.from = read_layout("--from", arguments.from, question.mesh, question.shape);
  question.to = read_layout("--to", arguments.to, to_mesh, question.shape);
  // Collectives suffice on the same devices, if the axes have a common refinement; otherwise sends.
  if (to_mesh == question.mesh) return question;
  if (const std::optional<TensorLayout> to = on_mesh(question.to, to_mesh, question.mesh)) {
    question.to = canonical(*to, question.mesh, question.shape);
    return question;
  }
  if (is_uneven(question.from, question.shape) || is_uneven(question.to, question.shape)) {
    throw InputError({}, "sends between meshes need dimensions that are divisible by their axes; change --shape");
  }
  if (std::max(question.mesh.num_devices(), to_mesh.num_devices()) > kMostSenders) {
    throw InputError({}, "sends are planned between at most {} devices", kMostSenders);
  }
  question.to_mesh = std::move(to_mesh);
  return question;
}

int redistribute(const RedistributeArguments& arguments) {
  const RedistributionReport report = answer(read_question(arguments), arguments.check);
  print(arguments.json ? json_report(report) : text_report(report));
  return report.error && !report.is_verified() ? kDifferenceFound : kDone;
}

}  // namespace

Command redistribute_command() {
  auto arguments = std::make_shared<RedistributeArguments>();
  Command command;
  command.name = "redistribute";
  command.topic = "Layouts";
  command.summary = "Find the cheapest collectives from one layout to another";
  command.description =
      "On the same devices the result is a sequence of collectives; to other devices (--to-devices) it ends with "
      "sends. If an axis does not divide a dimension, the last pieces are smaller.";
  command.examples = {
      {"--mesh x=2,y=4 --shape 16x8 --from '[{x}, {y}]' --to '[{y}, {x}]' --check", "also run it on simulated devices"},
      {"--mesh x=8 --shape 4096x4096 --from '[{}, {}] unreduced={x}' --to '[{x}, {}]'",
       "a partial sum is reduce-scattered"},
      {"--mesh x=4 --shape 10x6 --from '[{x}, {}]' --to '[{}, {}]' --check", "pieces of 3, 3, 3 and 1 rows"},
      {"--mesh dp=4 --shape 64x8 --from '[{dp}, {}]' --to-mesh mp=2 --to-devices 4-5 --to '[{}, {mp}]'",
       "from four devices to two others"},
  };
  command.options = {
      {"The tensor",
       {option("--shape", "SHAPE", &arguments->shape, "shape of the global tensor, as 16x8").required(),
        option("--dtype", "TYPE", &arguments->dtype, "data type: f32, bf16, i32, ...")}},
      {"Source and target",
       {option("--mesh", "AXES", &arguments->mesh, "axes and sizes, major to minor, as x=2,y=4").required(),
        option("--from", "LAYOUT", &arguments->from, "layout, as '[{x}, {y}]' or '[{}, {}] unreduced={x}'").required(),
        option("--to", "LAYOUT", &arguments->to, "layout").required(),
        option("--devices", "DEVICES", &arguments->devices,
               "the cluster's devices at the points of the mesh, as 0-3 or 0,2,4-7")
            .with_default("0, 1, ..."),
        option("--to-mesh", "AXES", &arguments->to_mesh, "mesh of --to").with_default("that of --mesh"),
        option("--to-devices", "DEVICES", &arguments->to_devices, "the devices of --to-mesh, as 4-11")
            .with_default("those of --mesh")}},
      {"Costs",
       {option("--cluster", "CLUSTER", &arguments->cluster, "a preset or a cluster file, whose links set the costs")
            .completed_by(Completion::kCluster),
        option("--memory", "MODE", &arguments->memory,
               "bounded: no shard on the way is larger than the larger of the two ends",
               one_of({"bounded", "unbounded"}))}},
      {"Output",
       {flag("--check", arguments->check, "run it on simulated devices and compare"),
        flag("--json", arguments->json, "print one JSON document")}},
  };
  command.action = [arguments] { return redistribute(*arguments); };
  return command;
}

}  // namespace shardplan
