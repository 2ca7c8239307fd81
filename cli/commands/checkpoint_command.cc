#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "cli/commands/commands.h"
#include "cli/commands/local_model_command.h"
#include "cli/commands/planning_options.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "layouts/uneven.h"
#include "report/checkpoint_report.h"
#include "simulator/checkpoint/checkpoint_folder.h"
#include "simulator/checkpoint/training_checkpoint.h"

namespace shardplan {
namespace {

struct CheckpointArguments {
  std::string action;  // merge, transform, verify
  std::string from;
  std::string to;  // a folder; empty: nothing is written
  std::string prefix = "checkpoint";
  PlanningArguments planning;  // its model: the target plan
  std::optional<std::string> mesh;
  std::vector<std::string> layouts;
  bool json = false;
};

/// `*` matches any text.
bool matches(std::string_view name, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  for (std::size_t skip = star; skip <= name.size(); ++skip) {
    if (matches(name.substr(skip), pattern.substr(star + 1))) return true;
  }
  return false;
}

/// The checkpoint's tensors on another mesh, in the given layouts, replicated if none is given.
CheckpointForm form_on_mesh(const Checkpoint& checkpoint, const CheckpointArguments& arguments) {
  CheckpointForm form = integrated(checkpoint.form());
  form.is_integrated = false;
  form.mesh = DeviceMesh::parse(*arguments.mesh);
  for (const std::string& text : arguments.layouts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw InputError(SourcePlace{}, "--layout {}: expected NAME=LAYOUT, as '*.weight=[{{dp}}, {{}}]'", text);
    }
    const TensorLayout layout = parse_layout(text.substr(equals + 1), form.mesh);
    bool is_used = false;
    for (CheckpointTensor& tensor : form.tensors) {
      if (!matches(tensor.name, text.substr(0, equals))) continue;
      is_used = true;
      tensor.layout = layout;
      std::string fault = check_uneven_layout(layout, form.mesh, tensor.shape);
      if (fault.empty() && !layout.partial.empty()) fault = "a stored tensor is never partial";
      if (!fault.empty()) throw InputError(SourcePlace{}, "--layout {}: {}: {}", text, tensor.name, fault);
    }
    if (!is_used) throw InputError(SourcePlace{}, "--layout {}: the checkpoint has no such tensor", text);
  }
  return form;
}

/// The checkpoint's tensors as stored by a plan of the model of --plan; empty if no plan fits.
std::optional<CheckpointForm> form_of_model(const Checkpoint& checkpoint, const PlanningArguments& planning) {
  std::vector<std::string> notices;
  CheckpointForm form;
  try {
    const PreparedPlan planned = plan_or_load(planning);
    if (!planned.is_found()) return std::nullopt;
    form = form_for_plan(checkpoint, planned.plan.program, *planned.plan.graph, notices);
  } catch (const WrittenPerDevice& found) {
    form = local_model_form(found, planning, checkpoint, notices);
  }
  say_notices(notices);
  return form;
}

/// Refuses missing arguments, and those that have no effect on the action.
void check_arguments(const CheckpointArguments& arguments) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(SourcePlace{}, "checkpoint {}: {}", arguments.action, what);
  };
  const bool has_plan = !arguments.planning.model.empty();
  const bool is_transform = arguments.action == "transform";
  if (is_transform && has_plan == arguments.mesh.has_value()) refuse("expected either --plan or --mesh");
  std::vector<std::string> others;
  if (arguments.action == "verify" && !arguments.to.empty()) others.push_back("TO");
  if (!is_transform && has_plan) others.push_back("--plan");
  if (!is_transform && arguments.mesh) others.push_back("--mesh");
  if (!arguments.layouts.empty() && !(is_transform && arguments.mesh)) others.push_back("--layout");
  if (!(is_transform && has_plan)) {
    for (std::string& name : names_of(given_options(arguments.planning))) others.push_back(std::move(name));
  }
  if (!others.empty()) {
    refuse(fmt::format("{} {} no effect; {}", fmt::join(others, ", "), others.size() == 1 ? "has" : "have",
                       arguments.action == "verify"  ? "it takes only FROM and --prefix"
                       : arguments.action == "merge" ? "use transform for a plan or a mesh"
                       : has_plan                    ? "the plan has layouts of its own"
                                                     : "nothing is planned without --plan"));
  }
  if (arguments.action == "merge" && arguments.to.empty()) refuse("TO is missing");
}

int run(const CheckpointArguments& arguments) {
  check_arguments(arguments);
  check_prefix(arguments.prefix);
  Checkpoint checkpoint(find_checkpoint(arguments.from, arguments.prefix));
  if (!arguments.to.empty()) check_target(checkpoint, arguments.to);
  if (arguments.action == "verify") {
    const Checkpoint::Verification verification = checkpoint.verify();
    print(arguments.json ? verification_json(checkpoint, verification) : verification_text(checkpoint, verification));
    return kDone;
  }
  CheckpointForm form;
  if (arguments.action == "merge") {
    form = integrated(checkpoint.form());
  } else if (!arguments.planning.model.empty()) {
    const std::optional<CheckpointForm> found = form_of_model(checkpoint, arguments.planning);
    if (!found) {
      notice("no plan fits");
      return kNoFeasiblePlan;
    }
    form = *found;
  } else {
    form = form_on_mesh(checkpoint, arguments);
  }
  const std::vector<RankReads> reads = transform_checkpoint(checkpoint, form, arguments.to);
  print(arguments.json ? transformation_json(checkpoint, form, reads, arguments.to)
                       : transformation_text(checkpoint, form, reads, arguments.to));
  return kDone;
}

}  // namespace

Command checkpoint_command() {
  const auto arguments = std::make_shared<CheckpointArguments>();
  Command command;
  command.name = "checkpoint";
  command.topic = "Prove a plan";
  command.summary = "Merge, transform or verify what `simulate --save` wrote";
  command.description =
      "merge writes complete tensors into one file; transform writes a file for each rank of another plan, model "
      "(also one written per device) or mesh; verify reads everything and compares copies. Each rank's file is "
      "assembled from the parts it needs, one tensor at a time; FROM may also be a safetensors file of another "
      "program. Without TO, transform only prints what each rank would read.";
  command.examples = {
      {"verify saved", "the last checkpoint in a folder"},
      {"merge saved merged", "complete tensors in one file"},
      {"transform saved four --plan configs/mnist-train.yaml --device-num 4", "for a plan on other devices"},
      {"transform saved --mesh dp=4 --layout '*.weight=[{dp}, {}]'", "what each of four ranks would read"},
  };
  command.options = {
      {"",
       {argument("ACTION", &arguments->action, "what to do", one_of({"merge", "transform", "verify"})),
        argument("FROM", &arguments->from, "a checkpoint, a folder of them, or a safetensors file")
            .completed_by(Completion::kFolder),
        argument("TO", &arguments->to, "the checkpoint to write (atomically); an older one there is replaced")
            .optional()
            .completed_by(Completion::kFolder)}},
      {"Target of transform",
       {option("--plan", "MODEL", &arguments->planning.model, "a model file, or the plan.json of an earlier run")
            .completed_by(Completion::kFile),
        option("--mesh", "MESH", &arguments->mesh, "a mesh, as dp=2,mp=4"),
        option("--layout", "NAME=LAYOUT", &arguments->layouts,
               "layout on that mesh, as '*.weight=[{dp}, {}]'; the last match counts; replicated if not given"),
        option("--prefix", "PREFIX", &arguments->prefix, "name prefix of the checkpoints in a folder")}}};
  for (OptionGroup& group : planning_options(arguments->planning)) command.options.push_back(std::move(group));
  command.options.push_back({"Output", {flag("--json", arguments->json, "print one JSON document")}});
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
