#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "base/integer.h"
#include "base/random.h"
#include "cli/command.h"
#include "cli/tensor_arguments.h"
#include "costmodel/cluster.h"
#include "costmodel/cost_model.h"
#include "layouts/cross_mesh.h"
#include "layouts/greedy_redistribution.h"
#include "layouts/permutation.h"
#include "layouts/redistribution.h"
#include "mesh/collectives.h"
#include "operators/data_type.h"
#include "program/text_table.h"

namespace shardplan {
namespace {

/// `shardplan redistribute`: the cheapest way from one layout to another.
struct RedistributeArguments {
  std::string mesh;
  std::string to_mesh;  // empty: the same
  std::string shape;
  std::string dtype = "f32";
  std::string from;
  std::string to;
  std::string cluster = "ascend-910";
  std::string memory = "bounded";
  bool json = false;
  bool check = false;
};

/// What was asked, read and checked.
struct Question {
  Cluster cluster;
  DeviceMesh mesh;
  Shape shape;
  DataType dtype = DataType::kF32;
  TensorLayout from;
  TensorLayout to;
};

TensorLayout read_layout(const std::string& option, const std::string& text, const DeviceMesh& mesh,
                         const Shape& shape) {
  std::string note;
  const TensorLayout layout = parse_layout(text, mesh, &note);
  if (!note.empty()) notice("note: " + note);
  if (const std::string fault = check_layout(layout, mesh, shape); !fault.empty()) {
    throw InputError({}, "{} {}: {}", option, text, fault);
  }
  return canonical(layout, mesh, shape);
}

Question read_question(const RedistributeArguments& arguments) {
  Question question;
  const std::optional<DataType> dtype = parse_data_type(arguments.dtype);
  if (!dtype) throw InputError({}, "--dtype {}: there is no such type; f32, bf16, i32, ...", arguments.dtype);
  question.dtype = *dtype;
  question.shape = parse_shape("--shape", arguments.shape, element_bytes(*dtype));
  question.cluster = read_cluster(arguments.cluster);
  DeviceMesh mesh = DeviceMesh::parse(arguments.mesh);
  if (mesh.num_devices() != question.cluster.num_devices()) {
    question.cluster = take_devices(question.cluster, mesh.num_devices());
  }
  question.mesh = make_mesh(question.cluster, mesh.axes());
  question.from = read_layout("--from", arguments.from, question.mesh, question.shape);
  if (arguments.to_mesh.empty()) {
    question.to = read_layout("--to", arguments.to, question.mesh, question.shape);
    return question;
  }
  const DeviceMesh to_mesh = DeviceMesh::parse(arguments.to_mesh);
  if (to_mesh.num_devices() != mesh.num_devices()) {
    throw InputError({}, "--to-mesh {} has {} devices, --mesh {} has {}; expected as many", to_mesh.to_string(),
                     to_mesh.num_devices(), mesh.to_string(), mesh.num_devices());
  }
  const auto to = on_mesh(read_layout("--to", arguments.to, to_mesh, question.shape), to_mesh, question.mesh);
  if (!to) {
    throw InputError({}, "--to {}: the axes of {} have no common refinement with those of {}", arguments.to,
                     to_mesh.to_string(), mesh.to_string());
  }
  question.to = canonical(*to, question.mesh, question.shape);
  return question;
}

std::string list_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

std::string braces(const std::vector<std::int64_t>& points) { return fmt::format("{{{}}}", fmt::join(points, ",")); }

/// (from, to) of what is sent.
std::vector<std::pair<std::int64_t, std::int64_t>> permute_pairs(const CollectiveStep& step, const DeviceMesh& mesh) {
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  const std::vector<std::int64_t> sources = permute_sources(step, mesh);
  for (std::size_t point = 0; point < sources.size(); ++point) {
    if (sources[point] != static_cast<std::int64_t>(point)) {
      pairs.emplace_back(sources[point], static_cast<std::int64_t>(point));
    }
  }
  return pairs;
}

bool has_groups(const CollectiveStep& step) {
  return step.kind != CollectiveKind::kSlice && step.kind != CollectiveKind::kToPartial;
}

/// "{0,1} {2,3}", "2<->4, 0->1", shortened to a few.
std::string groups_text(const CollectiveStep& step, const DeviceMesh& mesh) {
  constexpr std::size_t kMostWidth = 40;
  if (!has_groups(step)) return "-";
  std::vector<std::string> items;
  const bool is_permute = step.kind == CollectiveKind::kCollectivePermute;
  if (is_permute) {
    const auto pairs = permute_pairs(step, mesh);
    for (const auto& [from, to] : pairs) {
      const bool is_swap = std::find(pairs.begin(), pairs.end(), std::pair(to, from)) != pairs.end();
      if (is_swap && from > to) continue;
      items.push_back(fmt::format("{}{}{}", from, is_swap ? "<->" : "->", to));
    }
    std::sort(items.begin(), items.end(), [](const std::string& a, const std::string& b) {
      return std::pair(a.size(), a) < std::pair(b.size(), b);
    });
  } else {
    for (const auto& group : mesh.groups(step.axes)) items.push_back(braces(group));
  }
  std::string text;
  for (const std::string& item : items) {
    const std::string separator = text.empty() ? "" : is_permute ? ", " : " ";
    if (text.size() + separator.size() + item.size() > kMostWidth) return text + separator + "...";
    text += separator + item;
  }
  return text;
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

std::string text_report(const Question& question, const Redistribution& plan,
                        const std::optional<Redistribution>& greedy, std::optional<double> error) {
  const DeviceMesh& mesh = question.mesh;
  std::string spans;
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    const std::vector<std::string> levels = spanned_levels(question.cluster, mesh, mesh.whole(axis));
    spans += fmt::format("{}{}={}", spans.empty() ? "" : ", ", mesh.axes()[axis].name, mesh.axes()[axis].size);
    if (!levels.empty()) spans += fmt::format(" ({})", fmt::join(levels, " x "));
  }
  std::string text =
      fmt::format("{} {} on {}: {} local {}  ->  {} local {}\n", to_string(question.dtype), list_text(question.shape),
                  spans, to_string(plan.from, mesh), list_text(local_shape(plan.from, question.shape)),
                  to_string(plan.to, mesh), list_text(local_shape(plan.to, question.shape)));
  if (plan.steps.empty()) {
    text += "\n  nothing to do: both place alike\n";
  } else {
    const ColumnUnit time = time_unit(plan.time);
    const ColumnUnit sent = bytes_unit(plan.sent);
    using Align = TextTable::Align;
    TextTable table({Align::kRight, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kRight,
                     Align::kRight});
    table.add({"step", "collective", "axes", "dims", "groups", "local", fmt::format("sent, {}", sent.name),
               fmt::format("time, {}", time.name)});
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const CollectiveStep& step = plan.steps[i];
      table.add({std::to_string(i + 1), std::string(to_string(step.kind)), axes_text(step.axes, mesh),
                 dimensions_text(step), groups_text(step, mesh), list_text(step.local_shape), sent.format(step.sent),
                 time.format(step.time)});
    }
    table.add({"sum", "", "", "", "", "", sent.format(plan.sent), time.format(plan.time)});
    text += "\n" + table.to_string(2);
  }
  text += fmt::format("\n  peak {} per device, input and output of a step", format_bytes(plan.peak));
  if (greedy && !greedy->steps.empty() && greedy->time > plan.time) {
    std::vector<std::string_view> kinds;
    for (const CollectiveStep& step : greedy->steps) kinds.push_back(to_string(step.kind));
    text += fmt::format("; greedily ({}) {} and {}", fmt::join(kinds, ", "), format_bytes(greedy->peak),
                        format_time(greedy->time));
  }
  text += "\n";
  if (error) {
    text += *error == 0 || *error <= 1e-9
                ? fmt::format("  verified on {} simulated devices\n", mesh.num_devices())
                : fmt::format("  WRONG: off by up to {:.3g} on {} simulated devices\n", *error, mesh.num_devices());
  }
  return text;
}

std::string json_report(const Question& question, const Redistribution& plan, std::optional<double> error) {
  const DeviceMesh& mesh = question.mesh;
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh.axes()) {
    axes.push_back(fmt::format(R"({{"name": "{}", "size": {}}})", axis.name, axis.size));
  }
  std::string text = fmt::format("{{\"schema\": \"shardplan.redistribution/1\",\n \"mesh\": {{\"axes\": [{}]}},\n",
                                 fmt::join(axes, ", "));
  text += fmt::format(" \"shape\": {}, \"dtype\": \"{}\", \"from\": \"{}\", \"to\": \"{}\",\n \"steps\": [",
                      list_text(question.shape), to_string(question.dtype), to_string(plan.from, mesh),
                      to_string(plan.to, mesh));
  const auto dimension = [](const std::optional<std::size_t>& d) { return d ? std::to_string(*d) : "null"; };
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const CollectiveStep& step = plan.steps[i];
    std::vector<std::string> names;
    for (const AxisRef& axis : step.axes) names.push_back("\"" + mesh.to_string(axis) + "\"");
    text += fmt::format("{}\n  {{\"collective\": \"{}\", \"axes\": [{}], \"from_dim\": {}, \"to_dim\": {},\n   ",
                        i == 0 ? "" : ",", to_string(step.kind), fmt::join(names, ", "), dimension(step.from_dim),
                        dimension(step.to_dim));
    std::vector<std::string> lists;
    if (step.kind == CollectiveKind::kCollectivePermute) {
      for (const auto& [from, to] : permute_pairs(step, mesh)) lists.push_back(fmt::format("[{}, {}]", from, to));
      text += fmt::format("\"pairs\": [{}],\n   ", fmt::join(lists, ", "));
    } else if (has_groups(step)) {
      for (const auto& group : mesh.groups(step.axes)) lists.push_back(list_text(group));
      text += fmt::format("\"groups\": [{}],\n   ", fmt::join(lists, ", "));
    }
    text += fmt::format("\"local_shape\": {}, \"bytes\": {}, \"seconds\": {}}}", list_text(step.local_shape), step.sent,
                        to_seconds(step.time));
  }
  text += fmt::format("],\n \"seconds\": {}, \"bytes\": {}, \"peak_bytes\": {}, \"verified\": {}}}\n",
                      to_seconds(plan.time), plan.sent, plan.peak,
                      !error           ? "null"
                      : *error <= 1e-9 ? "true"
                                       : "false");
  return text;
}

/// Executes the steps on random values; the largest error on any device.
double largest_error_of(const Question& question, const Redistribution& plan) {
  constexpr std::int64_t kMostElements = 1 << 26;
  std::int64_t elements = 1;
  for (const std::int64_t extent : question.shape) elements *= extent;
  const std::int64_t held = std::max(elements / num_shards(plan.from), elements / num_shards(plan.to));
  if (elements > kMostElements || held > kMostElements / question.mesh.num_devices()) {
    throw InputError(
        {}, "--check: the simulated devices would hold {} elements, at most {} are possible; give a smaller --shape",
        held * question.mesh.num_devices(), kMostElements);
  }
  Random random(1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < elements; ++i) values.push_back(random.unit() * 2 - 1);
  return largest_error(
      apply(plan, question.mesh, question.shape, scatter(values, question.shape, plan.from, question.mesh)), values,
      question.shape, plan.to, question.mesh);
}

int redistribute(const RedistributeArguments& arguments) {
  const Question question = read_question(arguments);
  const CostModel model(question.cluster, question.mesh);
  RedistributionPlanner planner(question.mesh, model.collectives(), {.bounded_memory = arguments.memory == "bounded"});
  const Bytes bytes = element_bytes(question.dtype);
  const Redistribution& plan = planner.plan(question.from, question.to, question.shape, bytes);
  std::optional<double> error;
  if (arguments.check) error = largest_error_of(question, plan);
  if (arguments.json) {
    print(json_report(question, plan, error));
  } else {
    const auto greedy =
        greedy_redistribution(question.from, question.to, question.shape, bytes, question.mesh, *model.collectives());
    print(text_report(question, plan, greedy, error));
  }
  return error && !(*error <= 1e-9) ? kDifferenceFound : kDone;
}

}  // namespace

void add_redistribute_command(CLI::App& app, CommandAction& action) {
  auto arguments = std::make_shared<RedistributeArguments>();
  CLI::App& command = *app.add_subcommand("redistribute", "the cheapest collectives from one layout to another");
  command.add_option("--mesh", arguments->mesh, "axes and sizes, major to minor, as x=2,y=4")->required();
  command.add_option("--to-mesh", arguments->to_mesh, "other axes over the same devices, for --to");
  command.add_option("--shape", arguments->shape, "of the whole tensor, as 16x8")->required();
  command.add_option("--dtype", arguments->dtype, "f32, bf16, i32, ...");
  command.add_option("--from", arguments->from, "layout, as '[{x}, {y}]' or '[{}, {}] unreduced={x}'")->required();
  command.add_option("--to", arguments->to, "layout")->required();
  command.add_option("--cluster", arguments->cluster, "a preset or a cluster file: its links set the prices");
  command.add_option("--memory", arguments->memory, "bounded: no shard on the way larger than the larger end")
      ->check(CLI::IsMember({"bounded", "unbounded"}));
  command.add_flag("--json", arguments->json, "one JSON document");
  command.add_flag("--check", arguments->check, "run it on simulated devices and compare");
  command.callback([arguments, &action] { action = [arguments] { return redistribute(*arguments); }; });
}

}  // namespace shardplan
