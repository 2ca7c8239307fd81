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
#include "costmodel/kernel_fusion.h"
#include "graph/tensor_versions.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "planner/overlap/ordered_plan.h"
#include "planner/plan.h"
#include "planner/problem/model_problem.h"
#include "program/lower.h"
#include "solver/search.h"
#include "strategies/user_strategy.h"

namespace shardplan {

class GuidedSearch;
struct GlobalDegrees;
struct LevelOptions;

/// Plans one model on one cluster. It computes once what all plans share: the graph, the mesh, the versions of its
/// tensors, the decisions made before the search, and the redistributions planned so far. It can then be asked for
/// several plans: levels, baselines, forced alternatives.
///
/// With `place`, all operators are planned as if one worker's devices ran them, without a memory limit; then the
/// program is divided among the workers (program/place_program.h).
class ModelPlanner {
 public:
  /// For models with more operators memory comes before time: no two programs or problems are held at once, each of
  /// which takes a fifth of it.
  static constexpr std::size_t kDeep = 100'000;

  /// Throws InputError: the mesh does not fit the devices, a strategy is not legal, the cluster cannot compute a
  /// dtype, ...
  ModelPlanner(std::shared_ptr<const Model> model, const Cluster& cluster, PlanOptions options);

  const OperatorGraph& graph() const { return *graph_; }
  const TensorVersions& versions() const { return versions_; }
  const DeviceMesh& mesh() const { return costs_->mesh(); }
  const CostModel& costs() const { return *costs_; }
  RedistributionPlanner& redistributions() const { return *redistributions_; }
  const PlanOptions& options() const { return options_; }
  /// Notices about the model on this mesh, in addition to the model's own.
  const std::vector<std::string>& notices() const { return notices_; }
  Bytes usable() const;

  using Progress = std::function<void(const SearchProgress&)>;
  /// The plan of `level` found by the search of that name; with StrategyCosts::kMindSpore `mindspore_plan`. If no
  /// plan fits, the status says so and the plan is the one with the least memory that was found. `known` are plans of
  /// this planner found otherwise, at other levels or by other searches. None of them `is_better` than the answer,
  /// except if it has strategies that are not candidates at this level.
  Plan plan(Level level, std::string_view search, std::stop_token stop = {}, const Progress& progress = {},
            std::span<const Plan> known = {}) const;

  /// The plan with the forward strategies that are cheapest in MindSpore's cost model, ignoring its memory limit.
  /// Everything else is found by the search of that name at `level`. Throws InputError if MindSpore has no plan.
  Plan mindspore_plan(Level level, std::string_view search, std::stop_token stop = {},
                      const Progress& progress = {}) const;
  /// The cost of the strategies in MindSpore's model; nothing, and the reason, if it cannot express them.
  std::optional<MindSporeValue> mindspore_value(const IdVector<OperatorId, Strategy>& strategies,
                                                std::string* why = nullptr) const;

  /// The plan with the least memory, whether it fits or not; its bound is a lower bound on the memory of any plan.
  Plan smallest(std::stop_token stop = {}) const;

  /// The plan that these decisions make, with its times and memory; options and bounds are taken from `like`.
  Plan decided(const Decisions& decisions, Plan like) const;
  /// The same in the order in which the plan of a whole search is reported.
  Plan reported(const Decisions& decisions, Plan like) const;

  /// An empty plan to be filled in by the search.
  Plan unsolved(Level level, std::string_view search) const;

  /// Baselines: pure data parallelism (the batch over as many devices as divide it, parameters replicated), and all
  /// work on every device. They ignore user strategies and the memory limit.
  const Baseline& data_parallel() const;
  /// The same with kernels in the order in which that level would run them.
  Baseline data_parallel(Level level) const;
  /// Computes data parallelism, or starts to compute it in the background; for a deep model it is computed right
  /// away, because both together would take too much memory.
  void begin_data_parallel() const;
  Baseline stand_alone() const;
  /// The time and memory that a single worker would take for everything that a plan with `place` divides.
  Baseline one_worker(const Plan& plan) const;

  /// For each of the given strategies of one operator: the best plan at the level of `plan` with this strategy
  /// forced, the rest searched again starting from `plan`; nothing if there is none.
  std::vector<std::optional<Baseline>> forced(const Plan& plan, OperatorId op, const std::vector<Strategy>& strategies,
                                              std::stop_token stop = {}) const;

  /// The best plan at the level of `plan` among those that the global degrees allow, whatever the user and parallel modes
  /// decide: frameworks with such degrees know no other setting. Nothing, and the reason, if there is none: "it does not
  /// fit: the smallest takes 40.1 of 26.9 GiB".
  std::optional<Plan> plan_of_degrees(const Plan& plan, const GlobalDegrees& degrees, std::string* why,
                                      std::stop_token stop = {}) const;

  /// The strategies that an operator could have in which each axis of the mesh is used for one purpose.
  std::vector<Strategy> alternatives(OperatorId op) const;

 private:
  UnevenCuts uneven_cuts() const;
  /// A choice and its plan.
  struct Draft {
    Choice choice;
    Plan plan;
  };

  /// The plan as lowered (by `writer` if given) and divided among the workers, without overlap.
  Plan in_sequence(Decisions decisions, Plan like, ProgramWriter* writer = nullptr) const;
  /// The plan of a search that ignored workers, divided among them; bounds that no longer hold are dropped.
  Plan placed(Plan plan, const ModelProblem& problem, std::stop_token stop) const;
  /// The plan with overlap, in the order that hides the most communication of those that fit; by default refined.
  Plan overlapped(Plan plan, const OrderEffort& effort = {}) const;
  Plan plan_within(Plan plan, Restrictions restrictions, std::stop_token stop, const Progress& progress,
                   std::span<const Plan> known = {}) const;
  /// Of level 0, if nothing fits in which contractions are not repeated; `none` if nothing fits at all.
  Plan plan_with_repeated_work(Plan none, std::string_view search, std::stop_token stop, const Progress& progress,
                               std::span<const Plan> known) const;
  /// `spent`: seconds of the time limit used since this planner was asked.
  /// Whether the search for a plan is followed by one for its overlapped step.
  bool searches_overlapped(Level level) const;
  Restrictions restrictions(Level level) const;
  /// The same without what the user and parallel modes decide.
  Restrictions undecided(Level level) const;
  /// The starting point of a search: the best feasible choice of data parallelism and the known plans.
  std::optional<Choice> start(const ModelProblem& problem, Level level, std::span<const Plan> known) const;
  /// The planner of redistributions belongs to the calling thread.
  std::optional<Decisions> best_within(Restrictions restrictions, RedistributionPlanner& redistributions) const;
  using Found = std::shared_ptr<const std::optional<Decisions>>;
  Found find_data_parallel(RedistributionPlanner& redistributions) const;
  Found data_parallel_decisions() const;
  /// False if the figures that reports show of data parallelism prove that it is not.
  bool data_parallel_may_be_faster(const Plan& plan) const;
  Baseline baseline(std::string name, const std::optional<Decisions>& decisions, RedistributionPlanner& redistributions,
                    std::optional<Level> level = {}) const;
  Decisions decisions_of(const ModelProblem& problem, const Choice& choice) const;
  /// For level kMemory. The search does not see what a redistribution holds while it runs. So where the program holds
  /// more than the search sees, the limits at those times are lowered and the search is repeated, as long as that
  /// reduces the true peak. If nothing is found below these limits, `kEveryLimit` also tries limits halfway up to the peak.
  enum class LowerPeak { kWhileFound, kEveryLimit };
  Draft with_lower_peak(Draft draft, const ModelProblem& problem, const GuidedSearch& search, LowerPeak limits) const;
  /// For level kMemory: lowers the peak in the problem; if it stays far above the bound, searches the problem that also
  /// contains the copies of operands; only if that finds no lower peak, tries every limit in the first problem. Small
  /// models that are still far from the bound are searched once more, with what redistributions hold while they run.
  Draft with_least_peak(Draft draft, const ModelProblem& problem, const GuidedSearch& search, Restrictions restrictions,
                        std::string_view search_name, LevelOptions options) const;
  /// If the peak is far above the bound, searches a second problem, with these restrictions, that counts more of a
  /// program's memory, for a lower peak and a better bound.
  Draft or_from_counted(Draft draft, const ModelProblem& problem, const Restrictions& restrictions,
                        std::string_view search_name, const LevelOptions& options) const;
  /// If a redistribution holds more than fits, the limits are lowered and the search is repeated: first at the times
  /// concerned, then, if that only moves the peak, at all times.
  Draft with_repaired_limits(Draft draft, const ModelProblem& problem, const GuidedSearch& search) const;
  /// The choice of the plan with the least memory, if it fits and is a choice of the problem.
  std::optional<Choice> smallest_choice(const ModelProblem& problem, std::stop_token stop) const;
  /// A lower bound over plans whose layers may differ, of which `free` is the problem; `known` is a choice of
  /// `problem`. Reads only constant state, so it can run in another thread.
  LevelValue free_bound(const ModelProblem& problem, const Choice& known, const ModelProblem& free, Level level,
                        std::stop_token stop) const;
  /// Replaces a plan that does not fit by the one with the least memory, if that fits.
  Draft or_smallest(Draft draft, const ModelProblem& problem, std::stop_token stop) const;
  /// Replaces the plan by a known one that is better once all memory and time of the program are counted.
  Draft or_known(Draft draft, const ModelProblem& problem, std::span<const Plan> known) const;
  /// The plan with the shortest overlapped step that is found, with a bound on that step.
  Plan with_overlap_searched(Plan plan, ModelProblem free, LevelOptions options) const;
  /// What a plan found by its additive step could be replaced by, since its overlapped step may be shorter.
  struct Alternative {
    const Plan* plan = nullptr;  // the known one; null: data parallelism
    Found decisions;             // as a choice of the problem, which they outlive
  };
  /// Determined before the plan has a program: only the options of `plan` matter.
  std::vector<Alternative> alternatives_of(const Plan& plan, const ModelProblem& problem,
                                           std::span<const Plan> known) const;
  /// Replaces the plan by an alternative whose overlapped step is shorter.
  Plan or_faster(Plan plan, const std::vector<Alternative>& alternatives) const;

  std::shared_ptr<const Model> model_;
  Cluster cluster_;
  int workers_ = 1;  // workers that the operators are divided among (`place`); the mesh is that of one worker
  PlanOptions options_;
  std::shared_ptr<const OperatorGraph> graph_;
  TensorVersions versions_;
  std::vector<AxisRef> pieces_;
  std::unique_ptr<CostModel> costs_;
  std::shared_ptr<const KernelFusion> fusion_;  // of the graph
  RedistributionOptions redistribution_options_;
  std::unique_ptr<RedistributionPlanner> redistributions_;
  UserStrategies decided_;
  IdVector<OperatorId, char> is_user_strategy_;
  IdVector<OperatorId, char> is_by_mode_;
  IdVector<VersionId, RareValue<TensorLayout>> decided_layouts_;  // empty: none is
  /// Set if copies of a repeated block take one strategy and there are such copies.
  std::shared_ptr<const RepeatClasses> uniform_;
  std::vector<std::string> notices_;
  mutable Found data_parallel_;                             // once asked for
  mutable std::optional<Baseline> data_parallel_baseline_;  // likewise
  /// Computations that `begin_data_parallel` has started; destroyed before everything above.
  struct Beside {
    std::unique_ptr<RedistributionPlanner> redistributions;
    std::shared_future<Found> decisions;
    std::future<Baseline> baseline;
  };
  mutable Beside beside_;
};

}  // namespace shardplan
