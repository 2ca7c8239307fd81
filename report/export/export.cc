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
    if (known.name == target) return known.write(plan);
  }
  throw InputError({}, "--to takes {}; found '{}'", fmt::join(export_targets(), ", "), target);
}

}  // namespace shardplan
