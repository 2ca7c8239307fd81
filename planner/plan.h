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

/// By whose costs the strategies of the forward operators are chosen.
enum class StrategyCosts {
  kCluster,    // with all others, by the cluster's times
  kMindSpore,  // by MindSpore's weighted bytes (planner/mindspore_model.h); the others by the cluster's times
};
/// "cluster", "mindspore": of `--costs`.
std::string_view to_string(StrategyCosts costs);

/// What was asked for.
struct PlanOptions {
  Level level = Level::kRatio;
  StrategyCosts costs = StrategyCosts::kCluster;
  std::string search = "auto";
  bool uniform_layers = true;  // copies of a repeated block take one strategy
  std::uint64_t seed = 0;
  double time_limit = 0;         // seconds; 0: none
  double time_spent = 0;         // of that limit, before the planner was made: reading the model
  std::uint64_t work_limit = 0;  // 0: none
  int threads = 1;
  double memory_slack = 0.01;     // Level::kMemory: share of the least peak that may be given for time
  std::optional<Bytes> capacity;  // instead of the cluster's usable bytes
  bool bounded_redistribution = true;
  bool overlap = true;  // collectives run beside kernels, in the order that hides the most; else one after the other
  /// At level 2 kernels are reordered as well (program/list_order.h). False: they run as the systems of published runs do.
  bool reorders_kernels = true;
  /// Strategies to take (planner/problem/strategy_file.h); empty: none. Nothing: what the model says.
  std::optional<std::string> strategy_file = {};
  /// The pieces of the mesh that the search may use, major to minor; empty: `model_pieces`.
  std::vector<AxisRef> pieces = {};
  std::map<std::string, std::int64_t> dims;       // as overridden
  std::map<std::string, std::string> strategies;  // as overridden
};

/// Times of one step of one device; with several workers of the busiest one, and what is exposed is all that the step
/// takes beyond its computation: it also waits for others.
struct StepTime {
  Picoseconds computation = 0;
  Picoseconds communication = 0;
  Picoseconds exposed = 0;   // what the step takes beyond the computation; without overlap all communication
  Picoseconds repeated = 0;  // part of the computation that a plan without redundant contractions would not have
  Picoseconds step() const { return computation + exposed; }
  /// One after the other: what is searched, and what a bound is about.
  Picoseconds additive() const { return computation + communication; }
};

/// The times of a program whose instructions run one after the other.
StepTime time_in_sequence(const ParallelProgram& program);

/// What a level makes least.
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
  LevelValue bound;                                  // no plan in this shape has less
  std::optional<Picoseconds> overlapped_bound = {};  // no step in this shape is shorter, in whatever order
  std::optional<LevelValue> free_bound = {};         // as `Plan::free_bound`, of this shape
  bool is_bound_one_block_ahead = false;             // as `Plan::is_bound_one_block_ahead`
};

/// A plan and all that reports say of it. Made by `ModelPlanner` (planner/model_planner.h).
struct Plan {
  std::shared_ptr<const Model> model;          // as read (forward)
  std::shared_ptr<const OperatorGraph> graph;  // what is planned: with backward and update if trained
  Cluster cluster;
  DeviceMesh mesh;      // of one worker's devices: all, but for a model with `place`
  PlanOptions options;  // its level is the plan's
  PlanStatus status = PlanStatus::kNoPlanFound;
  bool candidates_complete = true;  // false: "candidates: restricted"
  LevelValue cost;                  // what the plan's level makes least
  LevelValue bound;                 // no plan has less; with `mindspore`: none with the same forward strategies; with
                                    // `has_uniform_layers`: none of such plans
  /// Copies of a repeated block have one strategy: as asked for, where there are copies.
  bool has_uniform_layers = false;
  /// With `has_uniform_layers`, where it was sought: no plan at all has less; where there is an `overlapped_bound`, no step in
  /// whatever order.
  std::optional<LevelValue> free_bound;
  /// Level kSpeed, where collectives run beside kernels: no plan that fits in the order of the graph takes a shorter step,
  /// in whatever order; of the same plans as `bound`, which is about the step one after the other.
  std::optional<Picoseconds> overlapped_bound = {};
  /// Whether that is of orders alone in which blocks are computed again at most one ahead (docs/cost-model.md).
  bool is_bound_one_block_ahead = false;
  /// With StrategyCosts::kMindSpore: what the forward strategies cost in MindSpore's model, and that none cost less.
  struct MindSporeResult {
    MindSporeValue cost;
    MindSporeValue bound;
  };
  std::optional<MindSporeResult> mindspore;
  StepTime time;
  Bytes usable = 0;
  IdVector<OperatorId, Strategy> strategies;
  IdVector<OperatorId, char> is_user_strategy;
  IdVector<OperatorId, char> is_by_mode;  // decided by the parallel mode, from what the user or the mode says elsewhere
  IdVector<VersionId, TensorLayout> versions;  // the layout of every version of every tensor (graph/tensor_versions.h)
  ParallelProgram program;
  bool is_overlapped = false;  // its collectives run beside its kernels
  OrderRule order_rule;        // with `is_overlapped`, of a plan that was not read from a file: how its order was made
  MemoryProfile memory;
  Bytes peak_in_sequence = 0;  // instructions one after the other, in the order of the graph: what level 1 makes least
  std::vector<Baseline> baselines;
  std::vector<TriedShape> tried_shapes;  // of `mesh: auto`, in the order of the trials; the bound is then that of all
  std::vector<StageStatistics> statistics;  // what the search did
  std::vector<std::string> notices;

  /// When each instruction runs first.
  std::vector<OverlappedTimeline::Span> spans() const;
  bool fits() const { return memory.peak <= usable; }
};

/// How far a plan is above what none can beat, as a share of that: its step where `overlapped_bound` is set, else its `cost`.
std::optional<double> open_gap(const Plan& plan);

/// Whether `plan` is better than `than` in what the level of `than` makes least, and `than` should have found it:
///   kRatio   less communication, or as much and less computation, without more work repeated
///   kMemory  a peak that is lower by more than the slack, or no higher at a shorter step; in the order of the graph
///   kSpeed   a shorter step
/// Steps are those that reports name: where the collectives of both run beside their kernels, as they then take. Else,
/// and for kMemory, as they are searched, one instruction after the other. Whatever fits is better than what does not;
/// what was not found or does not fit is never better.
bool is_better(const Plan& plan, const Plan& than);

}  // namespace shardplan
