// Random graphs with random plans: every operator and every version of a tensor takes a random candidate, which gives
// redistributions that no search would choose. The plan is lowered, checked, executed and compared.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "model/read_model.h"
#include "planner/model_planner.h"
#include "program/program_checker.h"
#include "simulator/proof/prove.h"
#include "tests/fuzz/random_model.h"
#include "tests/fuzz/targets.h"
#include "tests/support/planned_model.h"

namespace shardplan {
namespace {

/// How to plan a graph; written in the first line of the case, so that a case is one text.
struct GraphCase {
  std::uint64_t seed = 0;
  std::string cluster = "ascend-910";
  int level = -1;           // -1: a random plan; else the plan of this level
  bool is_uneven = false;   // random plans may shard sizes that the number of devices does not divide
  bool has_faults = false;  // faults are injected too
  bool is_padded = false;   // some dims are padded: such a model may be rejected

  std::string line() const {
    return fmt::format("# seed {} cluster {} level {} uneven {} faults {} padded {}\n", seed, cluster, level,
                       int{is_uneven}, int{has_faults}, int{is_padded});
  }
  static GraphCase of(const std::string& text) {
    GraphCase result;
    unsigned long long seed = 0;
    char cluster[32] = "";
    int uneven = 0;
    int faults = 0;
    int padded = 0;
    if (std::sscanf(text.c_str(), "# seed %llu cluster %31s level %d uneven %d faults %d padded %d", &seed, cluster,
                    &result.level, &uneven, &faults, &padded) != 6) {
      return result;
    }
    result.seed = seed;
    result.cluster = cluster;
    result.is_uneven = uneven != 0;
    result.has_faults = faults != 0;
    result.is_padded = padded != 0;
    return result;
  }
};

constexpr const char* kClusters[] = {"ascend-910", "ascend-910",   "dgx-a100",
                                     "dgx-a100x6", "ascend-910x8", "dgx-h100x3"};

Plan random_plan_of(const GraphCase& c, const std::string& text) {
  const PlannedModel planned(read_model_text(text, "graph.yaml"), c.cluster, {},
                             c.is_uneven ? UnevenCuts::kWhereNothingElseFits : UnevenCuts::kNone);
  Random random(c.seed);
  const Choice choice = planned.random_choice(random);
  Plan plan;
  plan.model = std::make_shared<const Model>(planned.model);
  plan.graph = std::make_shared<const OperatorGraph>(planned.graph);
  plan.mesh = planned.costs->mesh();
  if (evaluate(planned.problem.problem, choice).forbidden_count > 0) return plan;  // no operators: nothing was drawn
  for (const OperatorId op : planned.graph.operators().ids()) {
    plan.strategies.push_back(planned.problem.strategy(op, choice));
  }
  plan.program = planned.lowered(choice);
  return plan;
}

Plan searched_plan(const GraphCase& c, const std::string& text) {
  const auto model = std::make_shared<const Model>(read_model_text(text, "graph.yaml"));
  PlanOptions options;
  options.seed = c.seed;
  options.work_limit = 3'000'000;
  return ModelPlanner(model, read_cluster(c.cluster), options).plan(level_of(c.level), "auto");
}

CaseResult proven(const GraphCase& c, const Plan& plan) {
  using Kind = CaseResult::Kind;
  if (plan.strategies.empty()) return {Kind::kUncertain, "no plan"};
  if (const std::string fault = check_program(plan.program, *plan.graph); !fault.empty()) {
    return {Kind::kFault, "the program is wrong\n" + fault};
  }
  const Proof proof = prove(plan, {.validation = {.seed = c.seed, .steps = 2},
                                   .mutations = c.has_faults,
                                   .most_devices = c.seed % 4 == 0 ? 8 : 32});
  if (!proof.shrinking.refusal.empty()) return {Kind::kUncertain, proof.shrinking.refusal};
  if (!proof.validation.without_kernel.empty()) return {Kind::kFault, "an operator has no kernel"};
  if (const auto& wrong = proof.validation.first_wrong) {
    return {Kind::kFault,
            fmt::format("a right plan is called different\n{} made by {} in step {} of {}: found {}, should be {}, {} "
                        "allowed; scale {}; {}",
                        wrong->tensor, wrong->instruction, wrong->step,
                        wrong->precision == Precision::kFloat64 ? "float64" : "float32", wrong->comparison.found,
                        wrong->comparison.should_be, wrong->allowed, wrong->comparison.scale, wrong->looks_like)};
  }
  if (proof.unpadded && !proof.unpadded->is_equal()) {
    const auto& wrong = proof.unpadded->first_wrong;
    return {Kind::kFault, "the padded model computes something else\n" +
                              (wrong ? fmt::format("{} at {} in step {}: found {}, should be {}", wrong->tensor,
                                                   to_string(wrong->index), wrong->step, wrong->found, wrong->should_be)
                                     : fmt::format("without {}", fmt::join(proof.unpadded->missing, ", ")))};
  }
  for (const MutationResult& result : proof.mutations) {
    if (result.outcome == MutationOutcome::kUncaught) {
      return {Kind::kFault, "a fault made on purpose is not noticed\n" + result.mutation.description};
    }
  }
  return {};
}

CaseResult run_graph(const std::string& text) {
  const GraphCase c = GraphCase::of(text);
  try {
    return proven(c, c.level < 0 ? random_plan_of(c, text) : searched_plan(c, text));
  } catch (const InputError& error) {
    if (c.is_padded) return {CaseResult::Kind::kUncertain, error.diagnostics().front().message};
    return fault_of("a right model is refused", error, error.diagnostics().front());
  }
}

}  // namespace

FuzzTarget graph_target(int share_with_faults) {
  FuzzTarget target;
  target.name = "graphs";

  target.batch = 40;
  target.make = [share_with_faults](Random& random) {
    GraphCase c;
    c.seed = random.next() >> 32;
    c.cluster = kClusters[random.below(std::size(kClusters))];
    if (random.below(3) == 0) c.level = static_cast<int>(random.below(3));
    c.is_uneven = random.below(2) == 0;
    c.has_faults = static_cast<int>(random.below(100)) < share_with_faults;
    c.is_padded = random.below(4) == 0;
    const std::string model = random_model(random);
    return c.line() + (c.is_padded ? with_random_padding(model, random) : model);
  };
  target.run = run_graph;
  return target;
}

}  // namespace shardplan
