// Which plan of a framework's kind is written for a plan that is not of it, and what that costs. The nearest one has the
// degrees that most of the plan follows. It may need more memory than the plan, which shards the rest as no framework
// does; then the next form of ZeRO that fits is nearest, since it only changes where states and weights are stored.
#include "report/export/nearest_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/units.h"
#include "report/export/kept_types.h"

namespace shardplan {
namespace {

/// "; with ZeRO-1 it would take 702 ms and 9.6 GiB", if one of `others` is clearly faster than the nearest plan.
std::string faster_text(const KindCost& nearest, const std::vector<GlobalDegrees>& others, KindCosts& costs) {
  constexpr int kClearly = 99;  // per cent
  if (costs.plan().options.level != Level::kSpeed) return "";
  const KindCost* fastest = nullptr;
  int zero = 0;
  for (const GlobalDegrees& degrees : others) {
    const KindCost& cost = costs.of(degrees);
    if (!cost.is_found || cost.reduces_short || (fastest != nullptr && cost.step >= fastest->step)) continue;
    fastest = &cost;
    zero = degrees.zero;
  }
  if (fastest == nullptr || (nearest.is_found && fastest->step > nearest.step / 100 * kClearly)) return "";
  const std::string stage = zero == 0 ? "without ZeRO" : fmt::format("with ZeRO-{}", zero);
  return fmt::format("; {} it would take {} and {}", stage, format_time(fastest->step), format_bytes(fastest->peak));
}

}  // namespace

const KindCost& KindCosts::of(const GlobalDegrees& degrees) {
  const auto [found, is_new] = known_.try_emplace({degrees.zero, degrees.must_keep, !degrees.replicas.empty()});
  KindCost& cost = found->second;
  if (!is_new) return cost;
  const std::optional<Plan> best = planner_.plan_of_degrees(plan_, degrees, &cost.why);
  if (!best) return cost;
  cost.is_found = true;
  cost.step = best->time.step();
  cost.peak = best->memory.peak;
  // Sums over micro-batches that are sharded have no cast before them.
  cost.reduces_short = degrees.reduces_wide && short_sums(*best, kept_types(*best->graph));
  return cost;
}

std::string degrees_text(const UniformPlan& uniform, const GlobalDegrees& degrees) {
  std::string text = fmt::format("data {} x tensor {}", uniform.data, uniform.tensor);
  if (uniform.context > 1) text += fmt::format(" x context {}", uniform.context);
  if (uniform.experts > 1) text += fmt::format(", experts in {}", uniform.experts);
  if (degrees.sequence) text += ", sequence parallel";
  if (degrees.zero > 0) text += fmt::format(", ZeRO-{}", degrees.zero);
  if (!degrees.replicas.empty()) text += fmt::format(" in {} copies", num_pieces(degrees.replicas));
  if (degrees.must_keep) text += ", weights kept gathered";
  return text;
}

std::vector<GlobalDegrees> other_stages(const Plan& plan, const GlobalDegrees& degrees, std::vector<int> stages) {
  std::vector<GlobalDegrees> others;
  if (!plan.graph->is_training()) return others;
  if (plan.graph->micro_batches() == 1) std::erase(stages, 1);
  for (const int zero : stages) {
    if (zero == degrees.zero) continue;
    others.push_back(degrees);
    others.back().zero = zero;
    others.back().must_keep = false;
    others.back().replicas.clear();
  }
  return others;
}

void take_fitting(GlobalDegrees& degrees, std::vector<GlobalDegrees>& others, KindCosts& costs) {
  if (others.empty() || uniform_plan(costs.plan(), degrees).differences.empty() || costs.of(degrees).is_found) return;
  GlobalDegrees leaner = degrees;
  leaner.must_keep = false;
  if (!costs.of(leaner).is_found) leaner.replicas.clear();
  if (costs.of(leaner).is_found) {
    degrees = std::move(leaner);
    return;
  }
  const auto fits = [&](const GlobalDegrees& other) { return other.zero > degrees.zero && costs.of(other).is_found; };
  std::ranges::sort(others, {}, &GlobalDegrees::zero);
  const auto found = std::ranges::find_if(others, fits);
  if (found != others.end()) std::swap(degrees, *found);
}

std::string cost_text(const GlobalDegrees& degrees, const std::vector<GlobalDegrees>& others, KindCosts& costs) {
  const Plan& plan = costs.plan();
  const KindCost& nearest = costs.of(degrees);
  const std::string faster = faster_text(nearest, others, costs);
  if (!nearest.is_found) return fmt::format("cannot be planned: {}{}", nearest.why, faster);
  const char* const longer = nearest.reduces_short ? "; gradients reduced as f32, as there, take longer" : "";
  return fmt::format("takes {} a step and {} at level {}, this plan {} and {}{}{}", format_time(nearest.step),
                     format_bytes(nearest.peak), number_of(plan.options.level), format_time(plan.time.step()),
                     format_bytes(plan.memory.peak), longer, faster);
}

}  // namespace shardplan
