#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "planner/model_planner.h"
#include "planner/plan.h"
#include "planner/problem/global_degrees.h"
#include "report/export/uniform_plan.h"

namespace shardplan {

/// What the best plan of some degrees costs.
struct KindCost {
  bool is_found = false;  // and fits
  Picoseconds step = 0;
  Bytes peak = 0;
  bool reduces_short = false;  // faster than the framework: `reduces_wide`, but its sums only take two-byte gradients
  std::string why;             // there is none
};

/// The costs of the plans of some degrees with several forms of ZeRO, each planned once.
class KindCosts {
 public:
  KindCosts(const Plan& plan, const ModelPlanner& planner) : plan_(plan), planner_(planner) {}
  const Plan& plan() const { return plan_; }
  const KindCost& of(const GlobalDegrees& degrees);

 private:
  const Plan& plan_;
  const ModelPlanner& planner_;
  std::map<std::tuple<int, bool, bool>, KindCost> known_;  // by stage, whether gathered weights are kept, and in copies
};

/// "data 2 x tensor 4, sequence parallel, ZeRO-1".
std::string degrees_text(const UniformPlan& uniform, const GlobalDegrees& degrees);

/// The degrees at the other ZeRO stages, each over all devices. Without micro-batches the first two are one.
std::vector<GlobalDegrees> other_stages(const Plan& plan, const GlobalDegrees& degrees, std::vector<int> stages);

/// `degrees`; or, if no plan of theirs fits, the first that does of: without gathered weights kept; without copies of what
/// ZeRO shards; at the next stages of ZeRO among `others`, with one of which it then changes places.
void take_fitting(GlobalDegrees& degrees, std::vector<GlobalDegrees>& others, KindCosts& costs);

/// "takes 58.1 ms a step and 5.2 GiB at level 2, this plan 50.6 ms and 4.0 GiB", or why the nearest plan cannot be run;
/// and which other stage is faster.
std::string cost_text(const GlobalDegrees& degrees, const std::vector<GlobalDegrees>& others, KindCosts& costs);

}  // namespace shardplan
