#include "report/export/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace shardplan {
namespace {

struct Target {
  const char* name;
  ExportedText (*write)(const Plan& plan, const ModelPlanner* planner);
};
template <ExportedText (*kWrite)(const Plan& plan)>
ExportedText by_plan(const Plan& plan, const ModelPlanner* /*planner*/) {
  return kWrite(plan);
}
constexpr Target kTargets[] = {
    {"mindspore", by_plan<export_mindspore>}, {"jax", by_plan<export_jax>},  {"dtensor", by_plan<export_dtensor>},
    {"shardy", by_plan<export_shardy>},       {"megatron", export_megatron}, {"torchtitan", export_torchtitan},
    {"deepspeed", export_deepspeed},          {"vllm", export_vllm},
};

}  // namespace

std::vector<std::string> export_targets() {
  std::vector<std::string> names;
  for (const Target& target : kTargets) names.emplace_back(target.name);
  return names;
}

ExportedText export_plan(const Plan& plan, std::string_view target, const ModelPlanner* planner) {
  for (const Target& known : kTargets) {
    if (known.name != target) continue;
    if (plan.program.workers == 1) return known.write(plan, planner);
    if (target == "mindspore" && plan.mesh.num_devices() == 1) return export_mindspore_place(plan);
    throw InputError({},
                     "--to {}: the plan is divided among {} workers of {} device{} (place); only mindspore supports "
                     "that, with one device per worker",
                     target, plan.program.workers, plan.mesh.num_devices(), plan.mesh.num_devices() == 1 ? "" : "s");
  }
  throw InputError({}, "--to takes {}; found '{}'", fmt::join(export_targets(), ", "), target);
}

}  // namespace shardplan
