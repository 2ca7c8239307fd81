// The bound on the overlapped step, compared with steps of all choices and orders of small models, or of many of them.
// Choices come from the problem, programs from lowering, orders and buckets from this test, times from the timeline: it
// shares only the costs of operators and collectives with the bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "costmodel/cluster/cluster.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "planner/overlap/bound_matrices.h"
#include "planner/problem/plan_choice.h"
#include "program/buckets.h"
#include "program/overlapped_timeline.h"
#include "program/schedule.h"
#include "tests/fuzz/random_model.h"
#include "tests/support/planned_model.h"
#include "tests/support/problems.h"

namespace shardplan {
namespace {

/// Two to four devices on one or two levels of links, slow or fast, beside which kernels keep some of their speed.
std::string random_cluster(Random& random, bool collective_matmul, std::uint64_t most_latency = 2) {
  const auto together = [&] {
    return random.below(2) == 0 ? std::string()
                                : fmt::format(", together: {{kernels: 0.{}, collectives: 0.{}}}", 50 + random.below(50),
                                              50 + random.below(50));
  };
  const auto level = [&](const char* name, int count) {
    const char* rates[] = {"10 MB/s", "100 MB/s", "1 GB/s"};
    return fmt::format("  - {{name: {}, count: {}, latency: {} us, bandwidth: {}{}}}\n", name, count,
                       random.below(most_latency + 1), rates[random.below(3)], together());
  };
  const bool has_two = random.below(2) == 0;
  return fmt::format(
      "shardplan: 1\ncluster: small\ndevice:\n  name: d\n  memory: {{capacity: 1 GiB, bandwidth: 10 GB/s}}\n"
      "  flops: {{f32: 10 GFLOP/s, f64: 1 GFLOP/s, f16: 10 GFLOP/s, bf16: 10 GFLOP/s, i8: 10 GFLOP/s}}\n  start: {} "
      "us\n{}levels:\n{}{}",
      random.below(2), collective_matmul ? "collectives: {collective_matmul: true}\n" : "",
      has_two ? level("outer", 2) : "", level("inner", has_two || random.below(2) == 0 ? 2 : 4));
}

/// For each instruction what must come before it, in addition to the producers of its inputs: a new value overwrites
/// the old one, so the kernels that read the old one, directly or gathered, come first.
std::vector<std::vector<std::size_t>> readers_of_overwritten(const ParallelProgram& program) {
  std::vector<std::vector<std::size_t>> result(program.instructions.size());
  for (const Binding& update : program.updates) {
    std::set<ValueId> old;
    for (const Binding& one : program.given) {
      if (one.tensor == update.tensor) old.insert(one.value);
    }
    std::vector<std::size_t> readers;
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      const Instruction& instruction = program.instructions[i];
      const bool reads = std::any_of(instruction.inputs.begin(), instruction.inputs.end(),
                                     [&](ValueId input) { return old.count(input) > 0; });
      if (!reads) continue;
      const bool writes =
          std::find(instruction.outputs.begin(), instruction.outputs.end(), update.value) != instruction.outputs.end();
      if (writes) result[i] = readers;
      if (instruction.kind == InstructionKind::kOperator) {
        readers.push_back(i);
      } else {
        old.insert(instruction.outputs.begin(), instruction.outputs.end());
      }
    }
  }
  return result;
}

/// A random order: each instruction is drawn from those that can be issued; the loop comes before what follows it.
std::vector<std::size_t> random_order(const ParallelProgram& program, Random& random) {
  IdVector<ValueId, char> is_there(program.values.size(), 1);
  for (const Instruction& instruction : program.instructions) {
    for (const ValueId output : instruction.outputs) is_there[output] = 0;
  }
  const std::vector<std::vector<std::size_t>> before = readers_of_overwritten(program);
  std::vector<std::size_t> order;
  std::vector<char> is_issued(program.instructions.size(), 0);
  const std::size_t loop = program.num_in_micro_batch();
  while (order.size() < program.instructions.size()) {
    std::vector<std::size_t> ready;
    const std::size_t end = order.size() < loop ? loop : program.instructions.size();
    for (std::size_t i = 0; i < end; ++i) {
      const std::vector<ValueId>& inputs = program.instructions[i].inputs;
      const bool can =
          std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) { return is_there[input] != 0; }) &&
          std::all_of(before[i].begin(), before[i].end(), [&](std::size_t j) { return is_issued[j] != 0; });
      if (is_issued[i] == 0 && can) ready.push_back(i);
    }
    const std::size_t next = ready[random.below(ready.size())];
    is_issued[next] = 1;
    order.push_back(next);
    for (const ValueId output : program.instructions[next].outputs) is_there[output] = 1;
  }
  return order;
}

/// Gathers of stored tensors, which may be joined if they are issued before their readers (program/schedule.h).
std::vector<std::size_t> gathers_of_stored(const ParallelProgram& program) {
  IdVector<ValueId, char> is_made(program.values.size(), 0);
  for (const Instruction& instruction : program.instructions) {
    for (const ValueId output : instruction.outputs) is_made[output] = 1;
  }
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const bool gathers = instruction.kind == InstructionKind::kCollective &&
                         instruction.step->kind == CollectiveKind::kAllGather && is_made[instruction.inputs[0]] == 0;
    if (gathers) result.push_back(i);
  }
  return result;
}

/// The user's fusion id of the parameter that a collective is about.
std::optional<int> fusion_id(const PlannedModel& planned, const ParallelProgram& program, std::size_t instruction) {
  const auto parameter = parameter_of(planned.graph, program, program.instructions[instruction]);
  return parameter ? planned.graph.tensor(*parameter).comm_fusion : std::nullopt;
}

/// Puts compatible gathers of stored tensors into one bucket each.
void join_gathers(const PlannedModel& planned, const ParallelProgram& program, IssueOrder& order) {
  std::uint32_t last = *std::max_element(order.buckets.begin(), order.buckets.end());
  std::map<std::tuple<std::vector<AxisRef>, DataType, std::int64_t, std::optional<int>>, std::uint32_t> numbers;
  for (const std::size_t i : gathers_of_stored(program)) {
    const std::optional<int> id = fusion_id(planned, program, i);
    if (order.buckets[i] != 0 || id == 0) continue;
    const Instruction& gather = program.instructions[i];
    const std::tuple key(gather.step->axes, program.values[gather.inputs[0]].type.dtype, gather.runs, id);
    const auto [number, is_new] = numbers.try_emplace(key, last + 1);
    if (is_new) ++last;
    order.buckets[i] = number->second;
  }
}

/// The shortest steps of many orders.
struct Shortest {
  Picoseconds usual = std::numeric_limits<Picoseconds>::max();  // some with buckets of gradients and new weights
  Picoseconds any = std::numeric_limits<Picoseconds>::max();    // gathers of stored tensors are joined too
};

Shortest best_of_orders(const ParallelProgram& program, const PlannedModel& planned, Random& random, int count) {
  Shortest best;
  best.usual = overlapped_timeline(program).end;
  const auto step = [&](const IssueOrder& order) {
    return overlapped_timeline(in_order(program, order, *planned.costs->collectives())).end;
  };
  for (int i = 0; i < count; ++i) {
    IssueOrder order;
    const std::vector<std::size_t> sequence = random_order(program, random);
    order.sequence.assign(sequence.begin(), sequence.end());
    order.buckets.resize(order.sequence.size(), 0);
    order.reduces_in_last_run = program.num_in_micro_batch() > 0 && random.below(2) == 0;
    if (random.below(2) == 0) {
      const std::size_t parts = 1 + random.below(2);
      std::map<std::tuple<std::size_t, std::size_t, std::optional<int>>, std::uint32_t> numbers;
      for (const JoinableCollective& one : joinable_collectives(program, planned.graph, order.sequence)) {
        const std::tuple key(one.key, random.below(parts), fusion_id(planned, program, one.instruction));
        if (std::get<2>(key) == 0) continue;
        order.buckets[one.instruction] =
            numbers.try_emplace(key, static_cast<std::uint32_t>(numbers.size() + 1)).first->second;
      }
      IssueOrder joined = order;
      join_gathers(planned, program, joined);
      order = with_buckets(InstructionReads(program), order);
      best.any = std::min(best.any, step(with_buckets(InstructionReads(program), joined)));
    }
    best.usual = std::min(best.usual, step(order));
  }
  best.any = std::min(best.any, best.usual);
  return best;
}

double num_choices(const StrategyProblem& problem) {
  double count = 1;
  for (const NodeId node : problem.nodes.ids()) count *= static_cast<double>(problem.num_strategies(node));
  return count;
}

constexpr std::uint64_t kModels = 120;

struct Tried {
  std::uint64_t models = 0, all_choices = 0;
};

void compare(std::uint64_t seed, Tried& tried) {
  Random random(seed);
  const std::string text = random_model(random, 1 + random.below(10));
  const std::string cluster_text = random_cluster(random, seed % 2 == 0);
  SCOPED_TRACE(fmt::format("seed {}\n{}\n{}", seed, cluster_text, text));
  const Cluster cluster = read_cluster_text(cluster_text, "small.yaml");
  std::optional<PlannedModel> planned;
  PlanOptions options;
  options.level = Level::kSpeed;
  const auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
  planned.emplace(*model, cluster, std::vector<MeshAxis>{}, UnevenCuts::kWhereNothingElseFits);
  const ModelPlanner planner(model, cluster, options);
  const Plan plan = planner.plan(Level::kSpeed, "auto");
  if (!plan.overlapped_bound) return;
  ++tried.models;
  const StrategyProblem& problem = planned->problem.problem;
  Shortest best;
  const auto see = [&](const Choice& choice, int orders) {
    if (evaluate(problem, choice).forbidden_count > 0) return;
    const Shortest found = best_of_orders(planned->lowered(choice), *planned, random, orders);
    best.usual = std::min(best.usual, found.usual);
    best.any = std::min(best.any, found.any);
  };
  if (num_choices(problem) <= 300) {
    ++tried.all_choices;
    for_each_choice(problem, [&](const Choice& choice) { see(choice, 20); });
  } else {
    for (int i = 0; i < 40; ++i) see(planned->random_choice(random), 10);
  }
  const std::optional<Choice> found = find_choice(planned->versions, planned->problem, plan.strategies, plan.versions);
  ASSERT_TRUE(found.has_value());
  see(*found, 300);
  EXPECT_LE(*plan.overlapped_bound, best.any);
  EXPECT_LE(*plan.overlapped_bound, plan.time.step());
  if (best.usual == 0) return;  // all of it is free
  const double ratio = static_cast<double>(plan.time.step()) / static_cast<double>(best.usual);
  EXPECT_LE(ratio, 1.01);
}

/// The bound of one choice, with the best weights for it.
Picoseconds own_bound(const StepBound& bound, const Choice& choice) { return bound.least_step(bound.times_of(choice)); }

/// A model on a small cluster and its bound, which is coarse at first.
struct OwnBound {
  OwnBound(const std::string& text, const std::string& cluster_text, Random& random)
      : cluster(read_cluster_text(cluster_text, "small.yaml")),
        planned(read_model_text(text, "m.yaml"), cluster, std::vector<MeshAxis>{}, UnevenCuts::kWhereNothingElseFits),
        counted{*planned.costs, options(planned), false,
                has_two() ? std::optional(static_cast<int>(random.below(2))) : std::nullopt},
        bound(planned.graph, planned.versions, planned.problem,
              coarse_matrices(planned.problem, planned.graph, planned.versions, counted), own_ties(), speeds(), false) {
  }

  static RedistributionOptions options(const PlannedModel& planned) {
    RedistributionOptions result;
    result.pieces = planned.restrictions.pieces;
    return result;
  }
  bool has_two() const {
    std::vector<AxisRef> axes;
    for (std::size_t axis = 0; axis < planned.costs->mesh().axes().size(); ++axis) {
      axes.push_back(planned.costs->mesh().whole(axis));
    }
    return std::popcount(planned.costs->links(axes)) > 1;
  }
  IdVector<NodeId, NodeId> own_ties() const {
    IdVector<NodeId, NodeId> ties;
    for (const NodeId node : planned.problem.problem.nodes.ids()) ties.push_back(node);
    return ties;
  }
  std::vector<SpeedsTogether> speeds() const {
    std::vector<SpeedsTogether> result = planned.costs->speeds_together();
    result.resize(has_two() ? 2 : 1);
    return result;
  }

  Cluster cluster;
  PlannedModel planned;
  CountedLevels counted;
  StepBound bound;
};

struct Compared {
  int tried = 0, near = 0;  // choices, and those for which the bound nearly reaches the best order
};

/// Compares coarse and fine bounds of random choices of a model with the steps of random orders.
void compare_own_bounds(const std::string& text, const std::string& cluster_text, Random& random, Compared& compared) {
  OwnBound own(text, cluster_text, random);
  PlannedModel& planned = own.planned;
  ModelProblem& problem = planned.problem;
  StepBound& bound = own.bound;
  std::vector<Choice> choices;
  for (int i = 0; i < 10; ++i) choices.push_back(planned.random_choice(random));
  std::vector<Picoseconds> coarse;
  for (const Choice& choice : choices) coarse.push_back(own_bound(bound, choice));
  bound.refine(fine_matrices(problem, planned.graph, planned.versions, own.counted, {choices.front()}));
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (evaluate(problem.problem, choices[i]).forbidden_count > 0) continue;
    const Shortest best = best_of_orders(planned.lowered(choices[i]), planned, random, 30);
    const Picoseconds fine = own_bound(bound, choices[i]);
    EXPECT_LE(coarse[i], best.any);
    EXPECT_LE(fine, best.any);
    ++compared.tried;
    if (20 * fine >= 19 * best.any) ++compared.near;
  }
}

TEST(OverlapBoundTest, NoOrderOfAChoiceIsBelowWhatIsSaidOfIt) {
  Compared compared;
  for (std::uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    Random random(seed);
    const std::string text = random_model(random, 2 + random.below(9));
    const std::string cluster_text = random_cluster(random, false);
    SCOPED_TRACE(fmt::format("seed {}\n{}\n{}", seed, cluster_text, text));
    compare_own_bounds(text, cluster_text, random, compared);
  }
  EXPECT_GT(compared.tried, 300);
  EXPECT_GT(compared.near, compared.tried / 4);
}

/// The shortest of the orders that the scheduler tries; gathers of stored tensors are joined only as it joins them.
Picoseconds shortest_by_rules(const ParallelProgram& program, const PlannedModel& planned) {
  ScheduleOptions options;
  options.most_memory = Bytes{1} << 30;
  Picoseconds shortest = std::numeric_limits<Picoseconds>::max();
  const auto see = [&](const OrderRule& rule, bool is_refined) {
    const std::optional<Picoseconds> step =
        step_by_rule(program, planned.graph, *planned.costs->collectives(), options, rule, is_refined);
    if (step) shortest = std::min(shortest, *step);
  };
  using Sequence = OrderRule::Sequence;
  for (const Sequence sequence :
       {Sequence::kGiven, Sequence::kEarly, Sequence::kDelayed, Sequence::kListed, Sequence::kListedFromEnd}) {
    for (std::size_t buckets = 0; buckets < 4; ++buckets) see({sequence, buckets}, buckets == 0);
  }
  ParallelProgram best = program;
  schedule(best, planned.graph, *planned.costs->collectives(), options);
  return std::min(shortest, overlapped_timeline(best).end);
}

/// Perceptrons of small layers, with two optimizer states or without, and with fusion ids or without.
std::string small_layers(Random& random, bool has_ids = false) {
  std::string operators, parameters;
  const std::size_t layers = 2 + random.below(3);
  const auto shape = [&](const char* sizes) {
    const auto id = random.below(4);  // 3: none
    return !has_ids || id == 3 ? std::string(sizes) : fmt::format("{{shape: {}, comm_fusion: {}}}", sizes, id);
  };
  for (std::size_t i = 0; i < layers; ++i) {
    parameters += fmt::format("{}w{}: {}, b{}: {}", i == 0 ? "" : ", ", i, shape("[16, 16]"), i, shape("[16]"));
    operators += fmt::format("  m{0}: {{op: MatMul, in: [{1}, w{0}]}}\n  a{0}: {{op: Add, in: [m{0}, b{0}]}}\n", i,
                             i == 0 ? "x" : fmt::format("a{}", i - 1));
  }
  return fmt::format(
      "shardplan: 1\nmodel: m\ninputs: {{x: [16, 16]}}\nparameters: {{{}}}\noperators:\n{}"
      "  c: {{op: ReduceMean, in: a{}}}\nloss: c\ntraining: {{optimizer: {}}}\n",
      parameters, operators, layers - 1, random.below(2) == 0 ? "sgd" : "adam");
}

// If collectives take hardly longer than their start-ups, one start-up per bucket counts.
TEST(OverlapBoundTest, NoOrderIsBelowWhatIsSaidOfStartUps) {
  int tried = 0, near = 0;
  for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    Random random(seed);
    const std::string text = small_layers(random, seed % 2 == 0);
    const std::string cluster_text = random_cluster(random, false, 100);
    SCOPED_TRACE(fmt::format("seed {}\n{}\n{}", seed, cluster_text, text));
    OwnBound own(text, cluster_text, random);
    PlannedModel& planned = own.planned;
    Choice leading = planned.random_choice(random);
    for (int i = 0; i < 10; ++i) {
      Choice choice = leading;
      const Choice other = planned.random_choice(random);
      for (const NodeId node : planned.problem.problem.nodes.ids()) {
        if (i % 2 == 1 && random.below(16) == 0) choice.strategy[node] = other.strategy[node];
      }
      if (evaluate(planned.problem.problem, choice).forbidden_count > 0) continue;
      own.bound.refine(fine_matrices(planned.problem, planned.graph, planned.versions, own.counted, {leading}));
      const ParallelProgram program = planned.lowered(choice);
      const Picoseconds shortest =
          std::min(shortest_by_rules(program, planned), best_of_orders(program, planned, random, 10).any);
      const Picoseconds least = own_bound(own.bound, choice);
      EXPECT_LE(least, shortest);
      ++tried;
      if (20 * least >= 19 * shortest) ++near;
      if (i % 2 == 1) leading = planned.random_choice(random);
    }
  }
  EXPECT_GT(tried, 200);
  EXPECT_GT(near, tried / 20);
}

TEST(OverlapBoundTest, NoClassOfBucketsLeadsTwice) {
  int num_leaders = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    OwnBound own(small_layers(random), random_cluster(random, false, 100), random);
    PlannedModel& planned = own.planned;
    const Choice choice = planned.random_choice(random);
    const LeadingChoice leading{choice};
    const LeadingEdges leads = leading_edges(planned.problem, planned.graph, planned.versions,
                                             {*planned.costs, own.counted.options}, &leading);
    num_leaders += static_cast<int>(leads.classes.size()) - 3;
    EXPECT_FALSE(leads.classes[0].are_all_others);
    EXPECT_TRUE(leads.classes[0].classes.empty());
    std::vector<AloneClasses> joined = leads.classes;
    joined.erase(joined.begin() + 2);  // what is never joined
    for (const AloneClasses& of : joined) {
      for (const BucketClass& one : of.classes) {
        EXPECT_EQ(std::ranges::count_if(joined, [&](const auto& other) { return other.contains(one.kind, one.axes); }),
                  1);
      }
    }
    for (const EdgeId id : leads.alone.ids()) EXPECT_EQ(leads.alone[id] == 1, leads.on_path[id] != 0);
  }
  EXPECT_GT(num_leaders, 60);
}

// Sums that one phase of an operator leaves to the next one.
TEST(OverlapBoundTest, NoOrderIsBelowWhatIsSaidOfOperatorsInPhases) {
  const std::pair<const char*, const char*> operators[] = {
      {"{block: nn.BatchNorm2d, in: a}", ""},
      {"{op: InstanceNorm, in: [a, g, h]}", ", g: [4], h: [4]"},
      {"{block: nn.LayerNorm, in: a}", ""},
      {"{op: Softmax, in: a, axis: 1}", ""},
  };
  Compared compared;
  for (std::uint64_t seed = 1; seed <= 24 && !HasFailure(); ++seed) {
    Random random(seed);
    const auto& [of_a, parameters] = operators[seed % std::size(operators)];
    const std::string text = fmt::format(
        "shardplan: 1\nmodel: m\ninputs: {{x: [4, 4, 4, 4]}}\nparameters: {{w: [4, 4, 4, 4]{}}}\noperators:\n"
        "  a: {{op: Mul, in: [x, w]}}\n  b: {}\n  c: {{op: Tanh, in: b}}\n  d: {{block: nn.BatchNorm2d, in: c}}\n"
        "  e: {{op: ReduceMean, in: d}}\nloss: e\ntraining: {{optimizer: sgd}}\n",
        parameters, of_a);
    const std::string cluster_text = random_cluster(random, false);
    SCOPED_TRACE(fmt::format("seed {}\n{}\n{}", seed, cluster_text, text));
    compare_own_bounds(text, cluster_text, random, compared);
  }
  EXPECT_GT(compared.tried, 180);
  EXPECT_GT(compared.near, compared.tried / 8);
}

/// Perceptrons with recomputed layers or single operators of them, with or without micro-batches.
std::string computed_again(Random& random) {
  std::string operators, names;
  const std::size_t layers = 2 + random.below(3);
  for (std::size_t i = 0; i < layers; ++i) {
    operators += fmt::format("  l{}: {{block: layer, in: {}}}\n", i, i == 0 ? "x" : fmt::format("l{}", i - 1));
    constexpr const char* kMarked[] = {"", "", ".act", ".up, l{0}.act"};
    names += fmt::format("{}l{}{}", i == 0 ? "" : ", ", i, fmt::format(fmt::runtime(kMarked[random.below(4)]), i));
  }
  const std::size_t hidden = 8 << random.below(3);
  return fmt::format(
      "shardplan: 1\nmodel: m\ndims: {{B: 16}}\ninputs: {{x: [B, 32]}}\nblocks:\n  layer:\n    inputs: {{a: [B, 32]}}\n"
      "    parameters: {{v: [32, {0}], w: [{0}, 32]}}\n    operators:\n      up: {{op: MatMul, in: [a, v]}}\n"
      "      act: {{op: {1}, in: up}}\n      down: {{op: MatMul, in: [act, w]}}\n"
      "operators:\n{2}  s: {{op: Mul, in: [l{3}, l{3}]}}\n  c: {{op: ReduceMean, in: s}}\nloss: c\n"
      "training: {{optimizer: sgd, recompute: [{4}]{5}}}\n",
      hidden, random.below(2) == 0 ? "Tanh" : "GeLU", operators, layers - 1, names,
      random.below(2) == 0 ? ", micro_batches: 2" : "");
}

// Only orders that the scheduler tries: which kernels come before recomputed ones is known of these alone.
TEST(OverlapBoundTest, NoOrderThatIsTriedIsBelowWhatIsSaidOfWhatIsComputedAgain) {
  int tried = 0, near = 0;
  for (std::uint64_t seed = 1; seed <= 30 && !HasFailure(); ++seed) {
    Random random(seed);
    const std::string text = computed_again(random);
    const std::string cluster_text = random_cluster(random, false);
    SCOPED_TRACE(fmt::format("seed {}\n{}\n{}", seed, cluster_text, text));
    OwnBound own(text, cluster_text, random);
    PlannedModel& planned = own.planned;
    own.bound.refine(
        fine_matrices(planned.problem, planned.graph, planned.versions, own.counted, {planned.random_choice(random)}));
    for (int i = 0; i < 10; ++i) {
      const Choice choice = planned.random_choice(random);
      if (evaluate(planned.problem.problem, choice).forbidden_count > 0) continue;
      const Picoseconds least = own.bound.least_step(own.bound.times_of(choice));
      const Picoseconds shortest = shortest_by_rules(planned.lowered(choice), planned);
      EXPECT_LE(least, shortest);
      ++tried;
      if (20 * least >= 19 * shortest) ++near;
    }
  }
  EXPECT_GT(tried, 200);
  EXPECT_GT(near, tried / 5);
}

TEST(OverlapBoundTest, NoChoiceAndNoOrderOfSmallModelsIsBelowItAndThePlanIsNearTheBest) {
  Tried tried;
  for (std::uint64_t seed = 1; seed <= kModels && !HasFailure(); ++seed) compare(seed, tried);
  EXPECT_GT(tried.models, 9 * kModels / 10);
  EXPECT_GT(tried.all_choices, kModels / 20);
}

}  // namespace
}  // namespace shardplan
