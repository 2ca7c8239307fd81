#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "costmodel/cost_model.h"
#include "graph/tensor_versions.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "planner/plan.h"
#include "planner/problem/model_problem.h"
#include "program/lower.h"
#include "solver/search.h"
#include "strategies/user_strategy.h"

namespace shardplan {

class GuidedSearch;
struct GlobalDegrees;
struct LevelOptions;

/// Plans one model on one cluster. What every plan shares is made once: the graph, the mesh, the versions of its tensors,
/// what is decided before the search, and the redistributions planned so far. It is then asked for several plans:
/// levels, baselines, forced alternatives.
///
/// With `place` all operators are planned as if one worker's devices ran them, without a limit of memory; then the program
/// is divided (program/place_program.h).
class ModelPlanner {
 public:
  /// Throws InputError: the mesh does not fit the devices, strategies are not legal, the cluster cannot compute a
  /// dtype, ...
  ModelPlanner(std::shared_ptr<const Model> model, const Cluster& cluster, PlanOptions options);

  const OperatorGraph& graph() const { return *graph_; }
  const TensorVersions& versions() const { return versions_; }
  const DeviceMesh& mesh() const { return costs_->mesh(); }
  const CostModel& costs() const { return *costs_; }
  RedistributionPlanner& redistributions() const { return *redistributions_; }
  const PlanOptions& options() const { return options_; }
  /// What is worth knowing of the model on this mesh, beside the model's own notices.
  const std::vector<std::string>& notices() const { return notices_; }
  Bytes usable() const;

  using Progress = std::function<void(const SearchProgress&)>;
  /// The plan of `level` found by the search of that name; with StrategyCosts::kMindSpore `mindspore_plan`. If nothing
  /// fits, the status says so and the plan holds the smallest one that was found. `known` are plans of this planner
  /// that were found otherwise: at other levels, by other searches. None of them `is_better` than the answer, unless it
  /// has strategies that are no candidates at this level.
  Plan plan(Level level, std::string_view search, std::stop_token stop = {}, const Progress& progress = {},
            std::span<const Plan> known = {}) const;

  /// The plan whose forward strategies are MindSpore's: the cheapest by its cost model, without its limit on memory.
  /// Everything else is found by the search of that name at `level`. Throws InputError where MindSpore has no plan.
  Plan mindspore_plan(Level level, std::string_view search, std::stop_token stop = {},
                      const Progress& progress = {}) const;
  /// What strategies cost in MindSpore's model; nothing, and why, where it has no such plan.
  std::optional<MindSporeValue> mindspore_value(const IdVector<OperatorId, Strategy>& strategies,
                                                std::string* why = nullptr) const;

  /// The plan of least memory, whether it fits or not; its bound says that no plan needs less.
  Plan smallest(std::stop_token stop = {}) const;

  /// A plan decided elsewhere, with the figures that follow from it; `like` says what was asked and proven.
  Plan decided(const Decisions& decisions, Plan like) const;

  /// A plan as the search begins it: all but what is found.
  Plan unsolved(Level level, std::string_view search) const;

  /// Pure data parallel (the batch over all devices, parameters everywhere) and all work on every device. User
  /// strategies do not bind them, nor does the memory.
  const Baseline& data_parallel() const;
  /// Finds it, or begins to, beside what is asked for next; of a deep model before that, since both would take too much
  /// memory together.
  void begin_data_parallel() const;
  Baseline stand_alone() const;
  /// What one worker would take for all that a plan with `place` divides.
  Baseline one_worker(const Plan& plan) const;

  /// The best plans at the level of `plan` with one operator's strategy forced in turn, the rest searched again from what
  /// the plan has there; nothing where there is none.
  std::vector<std::optional<Baseline>> forced(const Plan& plan, OperatorId op, const std::vector<Strategy>& strategies,
                                              std::stop_token stop = {}) const;

  /// The best plan at the level of `plan` of those that global degrees describe; nothing, and why, where there is none:
  /// "it does not fit: the smallest takes 40.1 of 26.9 GiB".
  std::optional<Plan> plan_of_degrees(const Plan& plan, const GlobalDegrees& degrees, std::string* why,
                                      std::stop_token stop = {}) const;

  /// The strategies that an operator could have in which every axis of the mesh does one thing.
  std::vector<Strategy> alternatives(OperatorId op) const;

 private:
  UnevenCuts uneven_cuts() const;
  /// A choice and the plan that it makes.
  struct Draft {
    Choice choice;
    Plan plan;
  };

  /// The plan as lowered, by `writer` where there is one: instructions one after the other; divided among the workers.
  Plan in_sequence(Decisions decisions, Plan like, ProgramWriter* writer = nullptr) const;
  /// The plan of a search that knew nothing of workers, with what that leaves of its figures.
  Plan placed(Plan plan, const ModelProblem& problem, std::stop_token stop) const;
  /// The same with its collectives beside its kernels, in the order that hides the most of those that fit; in a rough one where
  /// it cannot beat a step.
  Plan overlapped(Plan plan, std::optional<Picoseconds> step_to_beat = {}) const;
  Plan plan_within(Plan plan, Restrictions restrictions, std::stop_token stop, const Progress& progress,
                   std::span<const Plan> known = {}) const;
  /// `spent`: seconds of the time limit that have gone since this planner was asked.
  LevelOptions search_options(Level level, std::stop_token stop, const Progress& progress, double spent = 0) const;
  Restrictions restrictions(Level level) const;
  /// What a search begins at: the best of data parallelism and the known plans that is feasible in the problem.
  std::optional<Choice> start(const ModelProblem& problem, Level level, std::span<const Plan> known) const;
  /// The planner of redistributions is the thread's that asks.
  std::optional<Decisions> best_within(const Restrictions& restrictions, RedistributionPlanner& redistributions) const;
  using Found = std::shared_ptr<const std::optional<Decisions>>;
  Found find_data_parallel(RedistributionPlanner& redistributions) const;
  Found data_parallel_decisions() const;
  /// False where it is known, from what reports say of it beside the plan, that it is not.
  bool data_parallel_may_be_faster(const Plan& plan) const;
  Baseline baseline(std::string name, const std::optional<Decisions>& decisions,
                    RedistributionPlanner& redistributions) const;
  Decisions decisions_of(const ModelProblem& problem, const Choice& choice) const;
  /// Level kMemory is for the least true peak, but the search does not see what a redistribution holds while it runs:
  /// the limits of the times at which more is held than it sees are lowered and searched again, as long as that helps.
  Draft with_lower_peak(Draft draft, const ModelProblem& problem, const GuidedSearch& search) const;
  /// Where the peak lies far above the bound, a second search, whose problem holds the copies of operands as well, is for a
  /// lower one and for its bound.
  Draft or_from_counted_copies(Draft draft, const ModelProblem& problem, Restrictions restrictions,
                               std::string_view search_name, const LevelOptions& options) const;
  /// Where a redistribution holds more than fits, the limits are lowered and searched again: at those times, then, if
  /// that only moves the peak, at all.
  Draft with_repaired_limits(Draft draft, const ModelProblem& problem, const GuidedSearch& search) const;
  /// The choice of the smallest plan, if it fits and is one of the problem's.
  std::optional<Choice> smallest_choice(const ModelProblem& problem, std::stop_token stop) const;
  /// What no plan beats whose layers may differ, of which `free` is the problem; `known` is a choice of `problem`. Touches
  /// nothing that changes, so that another thread may seek it.
  LevelValue free_bound(const ModelProblem& problem, const Choice& known, const ModelProblem& free, Level level,
                        std::stop_token stop) const;
  /// The smallest plan instead of one that does not fit, if it does.
  Draft or_smallest(Draft draft, const ModelProblem& problem, std::stop_token stop) const;
  /// A known plan instead, if one is better when all that the program holds and takes is counted.
  Draft or_known(Draft draft, const ModelProblem& problem, std::span<const Plan> known) const;
  /// A plan whose step is shorter where collectives run beside kernels, if one is found, with a bound on that step.
  Plan with_overlap_searched(Plan plan, ModelProblem free, std::stop_token stop, double spent) const;
  /// A known plan or data parallelism instead, if its step is shorter where collectives run beside kernels: what is
  /// searched is their sum.
  Plan or_faster(Plan plan, const ModelProblem& problem, std::span<const Plan> known) const;

  std::shared_ptr<const Model> model_;
  Cluster cluster_;
  int workers_ = 1;  // that the operators are divided among (`place`); the mesh is of the devices of one
  PlanOptions options_;
  std::shared_ptr<const OperatorGraph> graph_;
  TensorVersions versions_;
  std::vector<AxisRef> pieces_;
  std::unique_ptr<CostModel> costs_;
  RedistributionOptions redistribution_options_;
  std::unique_ptr<RedistributionPlanner> redistributions_;
  UserStrategies decided_;
  IdVector<OperatorId, char> is_user_strategy_;
  IdVector<OperatorId, char> is_by_mode_;
  IdVector<VersionId, RareValue<TensorLayout>> decided_layouts_;  // empty: none is
  /// If copies of a repeated block, of which there are some, take one strategy.
  std::shared_ptr<const RepeatClasses> uniform_;
  std::vector<std::string> notices_;
  mutable Found data_parallel_;                             // once asked for
  mutable std::optional<Baseline> data_parallel_baseline_;  // likewise
  /// What `begin_data_parallel` has begun, which ends before all of the above.
  struct Beside {
    std::unique_ptr<RedistributionPlanner> redistributions;
    std::shared_future<Found> decisions;
    std::future<Baseline> baseline;
  };
  mutable Beside beside_;
};

}  // namespace shardplan
