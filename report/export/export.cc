#include "report/export/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace shardplan {
namespace {

struct Target {
  const char* name;
  ExportedText (*write)(const Plan& plan);
};
constexpr Target kTargets[] = {
    {"mindspore", export_mindspore}, {"jax", export_jax},           {"dtensor", export_dtensor},
    {"shardy", export_shardy},       {"megatron", export_megatron}, {"torchtitan", export_torchtitan},
    {"deepspeed", export_deepspeed},
};

}  // namespace

std::vector<std::string> export_targets() {
  std::vector<std::string> names;
  for (const Target& target : kTargets) names.emplace_back(target.name);
  return names;
}

ExportedText export_plan(const Plan& plan, std::string_view target) {
  for (const Target& known : kTargets) {
    if (known.name != target) continue;
    if (plan.program.workers == 1) return known.write(plan);
    if (target == "mindspore" && plan.mesh.num_devices() == 1) return export_mindspore_place(plan);
    throw InputError({},
                     "--to {}: the plan is divided among {} workers of {} device{} (place); only mindspore takes "
                     "that, with one device each",
                     target, plan.program.workers, plan.mesh.num_devices(), plan.mesh.num_devices() == 1 ? "" : "s");
  }
  throw InputError({}, "--to takes {}; found '{}'", fmt::join(export_targets(), ", "), target);
}

}  // namespace shardplan
