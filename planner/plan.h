#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/cluster/cluster.h"
#include "graph/tensor_versions.h"
#include "model/model.h"
#include "planner/level.h"
#include "planner/mindspore_model.h"
#include "program/memory_profile.h"
#include "program/order_rule.h"
#include "program/parallel_program.h"
#include "solver/search.h"
#include "strategies/strategy.h"

namespace shardplan {

/// The cost model by which the strategies of the forward operators are chosen.
enum class StrategyCosts {
  kCluster,    // together with all other strategies, by the cluster's times
  kMindSpore,  // by MindSpore's weighted bytes (planner/mindspore_model.h); the other strategies by the cluster's times
};
/// "cluster", "mindspore": the words of `--costs`.
std::string_view to_string(StrategyCosts costs);

/// What the user asked for.
struct PlanOptions {
  Level level = Level::kRatio;
  StrategyCosts costs = StrategyCosts::kCluster;
  std::string search = "auto";
  bool uniform_layers = true;  // copies of a repeated block take one strategy
  std::uint64_t seed = 0;
  double time_limit = 0;         // seconds; 0: none
  double time_spent = 0;         // part of that limit that reading the model used up before the planner was made
  std::uint64_t work_limit = 0;  // 0: none
  int threads = 1;
  double memory_slack = 0.0025;   // Level::kMemory: how far above the least peak the plan may be for a shorter step
  std::optional<Bytes> capacity;  // instead of the cluster's usable bytes
  bool bounded_redistribution = true;
  bool overlap =
      true;  // collectives overlap with kernels, in the order that hides the most communication; else no overlap
  /// Level 2 also reorders kernels (program/list_order.h). False: they keep the order in which the published runs ran
  /// them.
  bool reorders_kernels = true;
  /// File whose strategies are kept (planner/problem/strategy_file.h); empty: none; not set: the file that the model
  /// names.
  std::optional<std::string> strategy_file = {};
  /// The pieces of the mesh that the search may use, major to minor; empty: `model_pieces`.
  std::vector<AxisRef> pieces = {};
  std::map<std::string, std::int64_t> dims;       // as overridden
  std::map<std::string, std::string> strategies;  // as overridden
};

/// Times of one step on one device. With several workers they are those of the busiest one, and `exposed` includes
/// its waiting for the others.
struct StepTime {
  Picoseconds computation = 0;
  Picoseconds communication = 0;
  Picoseconds exposed = 0;   // what the step takes beyond the computation; without overlap all communication
  Picoseconds repeated = 0;  // part of the computation that a plan without redundant contractions would not have
  Picoseconds step() const { return computation + exposed; }
  /// Without overlap: what the additive search minimises and its bound refers to.
  Picoseconds additive() const { return computation + communication; }
};

/// The times of a program whose instructions run one after the other.
StepTime time_in_sequence(const ParallelProgram& program);

/// The value that a level minimises.
LevelValue value_at(Level level, const StepTime& time, Bytes peak);

/// Another plan of the same model, for comparison.
struct Baseline {
  std::string name;  // "data_parallel", "propagation", "stand_alone", ...
  StepTime time;
  Bytes peak = 0;
  bool fits = false;
  IdVector<OperatorId, Strategy> strategies = {};
};

/// What `mesh: auto` found in one shape of the mesh.
struct TriedShape {
  std::vector<AxisRef> pieces;
  PlanStatus status = PlanStatus::kNoPlanFound;
  StepTime time;  // if there is a plan
  Bytes peak = 0;
  LevelValue bound;  // lower bound over all plans in this shape
  std::optional<Picoseconds> overlapped_bound =
      {};                                     // lower bound on the overlapped step in this shape, over all orders
  std::optional<LevelValue> free_bound = {};  // as `Plan::free_bound`, of this shape
  bool is_bound_one_block_ahead = false;      // as `Plan::is_bound_one_block_ahead`
};

/// A plan and everything that reports need. Made by `ModelPlanner` (planner/model_planner.h).
struct Plan {
  std::shared_ptr<const Model> model;          // as read (forward)
  std::shared_ptr<const OperatorGraph> graph;  // what is planned: in training with backward and update operators
  Cluster cluster;
  DeviceMesh mesh;      // of all devices; with `place`, of the devices of one worker
  PlanOptions options;  // its level is the plan's
  PlanStatus status = PlanStatus::kNoPlanFound;
  bool candidates_complete = true;  // false: "candidates: restricted"
  LevelValue cost;                  // the value that the plan's level minimises
  LevelValue bound;  // lower bound on `cost`; with `mindspore` over plans with the same forward strategies,
                     // with `has_uniform_layers` over plans with uniform layers
  /// Copies of a repeated block take one strategy: requested, and there are copies.
  bool has_uniform_layers = false;
  /// With `has_uniform_layers`, if computed: a lower bound that also covers plans whose layers differ, on the
  /// overlapped step if there is an `overlapped_bound`, else on `cost`.
  std::optional<LevelValue> free_bound;
  /// Level kSpeed with overlap: a lower bound on the overlapped step, over all instruction orders and over the same
  /// plans as `bound` (which bounds the additive step), as far as they fit in memory in the order of the graph.
  std::optional<Picoseconds> overlapped_bound = {};
  /// Whether `overlapped_bound` only covers orders that recompute at most one block ahead (docs/cost-model.md).
  bool is_bound_one_block_ahead = false;
  /// With StrategyCosts::kMindSpore: the cost of the forward strategies in MindSpore's model, and a lower bound on
  /// it.
  struct MindSporeResult {
    MindSporeValue cost;
    MindSporeValue bound;
  };
  std::optional<MindSporeResult> mindspore;
  StepTime time;
  Bytes usable = 0;
  IdVector<OperatorId, Strategy> strategies;
  IdVector<OperatorId, char> is_user_strategy;
  IdVector<OperatorId, char>
      is_by_mode;  // decided by the parallel mode, from what the user or the mode says about other operators
  std::vector<AxisRef> pieces;  // of the mesh, that the search could use
  VersionLayouts versions;      // the layout of every version of every tensor (graph/tensor_versions.h)
  ParallelProgram program;
  bool is_overlapped = false;  // its collectives overlap with its kernels
  OrderRule order_rule;        // how its order was made; with `is_overlapped`, unless the plan was read from a file
  MemoryProfile memory;
  Bytes peak_in_sequence = 0;  // peak without overlap, in the order of the graph: what level 1 minimises
  std::vector<Baseline> baselines;
  std::vector<TriedShape> tried_shapes;  // of `mesh: auto`, in the order of the trials; `bound` then covers all of them
  std::vector<StageStatistics> statistics;  // what the search did
  std::vector<std::string> notices;
  bool ended_early = false;  // a time limit or an interruption ended the search

  /// The time span of each instruction's first run.
  std::vector<OverlappedTimeline::Span> spans() const;
  /// By instruction, the time from which its memory counts: once it and all instructions before it in the program have
  /// begun, because the profile counts them together. A collective may run before kernels that precede it in the program.
  std::vector<Picoseconds> counted_from() const;
  /// When the memory peaks: in the last run of the loop if only that reaches the peak, else in the first one, which then
  /// stands for all.
  Picoseconds time_of_peak() const;
  bool fits() const { return memory.peak <= usable; }
};

/// Whether the user, a strategy file or a parallel mode decides some layouts: the bounds of a plan then cover only plans
/// with these.
bool has_given_layouts(const Plan& plan);

/// The gap (value - bound) / bound: of the step if `overlapped_bound` is set, else of `cost`; 0 if it is closed,
/// nothing if the bound is 0.
std::optional<double> open_gap(const Plan& plan);

/// Whether `plan` is better than `than` in the objective of the level of `than`, so that the search for `than` should
/// have found it:
///   kRatio   less communication, or equal communication and less computation, without more repeated work
///   kMemory  a peak that is lower by more than the slack, or no higher with a shorter step; in the order of the graph
///   kSpeed   a shorter step
/// Steps are overlapped steps if the second plan is overlapped; otherwise, and for kMemory, additive ones. A plan that
/// fits is better than one that does not; a plan that was not found or does not fit is never better.
bool is_better(const Plan& plan, const Plan& than);

}  // namespace shardplan
