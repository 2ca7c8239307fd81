// Models with `place`: random divisions, what each worker holds, and that workers never deadlock.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/random.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"
#include "program/instruction_facts.h"
#include "program/loop_order.h"
#include "program/program_checker.h"
#include "program/worker_timeline.h"
#include "simulator/proof/prove.h"
#include "tests/support/marked_model.h"
#include "tests/support/proofs.h"
#include "tests/support/random_places.h"

namespace shardplan {
namespace {

Plan plan_of(const std::string& text, Level level = Level::kRatio) {
  const auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
  const JobCluster job = job_cluster(*model);
  PlanOptions options;
  options.level = level;
  options.work_limit = 20'000'000;
  return ModelPlanner(model, job.cluster, options).plan(level, "auto");
}

std::string fault_of(const std::string& text) {
  try {
    plan_of(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// --- blocking sends ----------------------------------------------------------------------------------------------------

/// A worker's next action: something of its own, or one end of a send.
struct Action {
  std::size_t instruction = 0;
  int other = -1;  // the worker at the other end; -1: none
};

/// Each worker's list of actions for a step, as a separate process would have it.
std::vector<std::vector<Action>> lists_of(const ParallelProgram& program) {
  std::vector<std::vector<Action>> lists(static_cast<std::size_t>(program.workers));
  const auto add = [&](std::size_t i) {
    const Instruction& instruction = program.instructions[i];
    const int result = program.values[instruction.outputs[0]].worker;
    if (instruction.kind != InstructionKind::kSend) {
      lists[static_cast<std::size_t>(result)].push_back({i});
      return;
    }
    const int from = program.values[instruction.inputs[0]].worker;
    lists[static_cast<std::size_t>(from)].push_back({i, result});
    lists[static_cast<std::size_t>(result)].push_back({i, from});
  };
  for (LoopWalk walk(program); !walk.is_done(); walk.next()) add(walk.instruction());
  for (std::size_t i = program.num_in_micro_batch(); i < program.instructions.size(); ++i) add(i);
  return lists;
}

/// Workers take their actions in any order, but a send and its receive happen together. Returns who waits for whom at
/// the end; nothing if all are done.
std::string waits(const std::vector<std::vector<Action>>& lists, Random& random) {
  std::vector<std::size_t> next(lists.size(), 0);
  while (true) {
    std::vector<std::size_t> able;
    std::string waiting;
    for (std::size_t w = 0; w < lists.size(); ++w) {
      if (next[w] == lists[w].size()) continue;
      const Action& action = lists[w][next[w]];
      const auto other = static_cast<std::size_t>(action.other);
      const bool is_met = action.other < 0 || (next[other] < lists[other].size() &&
                                               lists[other][next[other]].instruction == action.instruction &&
                                               lists[other][next[other]].other == static_cast<int>(w));
      if (is_met) able.push_back(w);
      waiting += std::to_string(w) + " waits for " + std::to_string(action.other) + "; ";
    }
    if (able.empty()) return waiting;
    const std::size_t w = able[random.below(able.size())];
    const int other = lists[w][next[w]].other;
    ++next[w];
    if (other >= 0) ++next[static_cast<std::size_t>(other)];
  }
}

TEST(PlaceTest, TheSimulationOfWaitingSeesACircle) {
  Random random(1);
  EXPECT_EQ(waits({{{0, 1}, {1, 1}}, {{0, 0}, {1, 0}}}, random), "");
  EXPECT_EQ(waits({{{0, 1}, {1, 1}}, {{1, 0}, {0, 0}}}, random), "0 waits for 1; 1 waits for 0; ");
}

// --- random divisions ------------------------------------------------------------------------------------------------

/// The peak of one worker's part on its own.
Bytes peak_alone(const ParallelProgram& program, int worker) {
  ParallelProgram own = program;
  own.workers = 1;
  own.instructions.clear();
  const auto is_here = [&](ValueId id) { return program.values[id].worker == worker; };
  for (ProgramValue& value : own.values) value.worker = 0;
  for (Instruction instruction : program.instructions) {
    for (auto* values : {&instruction.inputs, &instruction.outputs}) {
      values->erase(std::remove_if(values->begin(), values->end(), [&](ValueId id) { return !is_here(id); }),
                    values->end());
    }
    if (!instruction.inputs.empty() || !instruction.outputs.empty()) own.instructions.push_back(instruction);
  }
  for (auto* bindings : {&own.given, &own.outputs, &own.updates}) {
    std::erase_if(*bindings, [&](const Binding& binding) { return !is_here(binding.value); });
  }
  return memory_profile(own).peak;
}

void check_plan(const Plan& plan, Random& random) {
  const ParallelProgram& program = plan.program;
  const OperatorGraph& graph = *plan.graph;
  ASSERT_EQ(check_program(program, graph), "");
  for (int round = 0; round < 3; ++round) EXPECT_EQ(waits(lists_of(program), random), "");

  // Where things are: operators on their workers, parameters and states with the first operator that reads them.
  std::set<std::pair<ValueId, int>> sent;
  for (const Instruction& instruction : program.instructions) {
    const int worker = program.values[instruction.outputs[0]].worker;
    if (instruction.kind == InstructionKind::kSend) {
      EXPECT_TRUE(sent.emplace(instruction.inputs[0], worker).second) << instruction.name << " goes twice";
    } else if (instruction.op) {
      EXPECT_EQ(worker, graph.operators()[*instruction.op].worker) << instruction.name;
    }
  }
  for (const GraphOperator& op : graph.operators()) {
    if (op.forward) {
      EXPECT_EQ(op.worker, graph.operators()[*op.forward].worker) << op.name;
    }
    if (!op.is_placed && !op.parameter && op.pass != Pass::kUpdate) {
      EXPECT_EQ(op.worker, 0) << op.name;
    }
  }
  for (const Binding& given : program.given) {
    const GraphTensor& tensor = graph.tensor(given.tensor);
    if (tensor.kind == TensorKind::kInput) continue;
    const TensorId parameter = tensor.state_of.value_or(given.tensor);
    const Reader& first = graph.tensor(parameter).readers.front();
    EXPECT_EQ(program.values[given.value].worker, graph.operators()[first.op].worker) << tensor.name;
  }

  // What the workers hold, and when they are busy.
  Bytes largest = 0;
  for (int worker = 0; worker < program.workers; ++worker) {
    const Bytes peak = plan.memory.worker_peaks[static_cast<std::size_t>(worker)];
    if (program.loop_order.turns.empty()) {
      EXPECT_EQ(peak, peak_alone(program, worker)) << "worker " << worker;
    }
    largest = std::max(largest, peak);
  }
  EXPECT_EQ(plan.memory.peak, largest);
  const WorkerTimeline times = worker_timeline(program);
  Picoseconds all = 0;
  for (const Instruction& instruction : program.instructions) all += instruction.time_of_step();
  EXPECT_LE(times.end, all);
  EXPECT_EQ(plan.time.step(), times.end);
  for (const WorkerUse& use : times.workers) EXPECT_GE(times.end, use.busy());
  std::map<ValueId, Picoseconds> made;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    for (const ValueId input : program.instructions[i].inputs) EXPECT_GE(times.spans[i].begin, made[input]);
    for (const ValueId output : program.instructions[i].outputs) made[output] = times.spans[i].end;
  }
}

TEST(PlaceTest, RandomCutsComputeWhatOneDeviceDoesAndNeverWaitInACircle) {
  struct Case {
    const char* training;
    const char* parallel;
    int workers;
  };
  const Case cases[] = {
      {"", "{device_num: 5}", 5},
      {", micro_batches: 2", "{device_num: 3}", 3},
      {", clip_norm: 0.5, recompute: [layers.*]", "{device_num: 4}", 4},
      {", mixed_precision: bf16", "{device_num: 2}", 2},
      {"", "{workers: 2, device_num: 8}", 2},
      {", micro_batches: 2", "{workers: 4, device_num: 8, parallel_mode: data_parallel}", 4},
  };
  for (const Case& c : cases) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(fmt::format("training{}, parallel {}, seed {}", c.training, c.parallel, seed));
      Random random(seed);
      const Plan plan = plan_of(with_places(layered_model(c.training), c.parallel, c.workers, random));
      ASSERT_EQ(plan.program.workers, c.workers);
      check_plan(plan, random);
      EXPECT_EQ(outcome(prove(plan, {.validation = {.steps = 2}, .shrink = false})), "proven");
    }
  }
}

TEST(PlaceTest, EachSendThatIsLostIsCaught) {
  Random random(7);
  const Plan plan = plan_of(with_places(layered_model(""), "{device_num: 3}", 3, random));
  const Proof proof = prove(plan, {.validation = {.steps = 1}, .shrink = false, .mutations = true});
  std::size_t sends = 0;
  for (const MutationResult& result : proof.mutations) {
    if (!result.mutation.description.starts_with("send")) continue;
    ++sends;
    EXPECT_EQ(result.outcome, MutationOutcome::kCaught) << result.mutation.description;
  }
  EXPECT_GT(sends, 5u);
}

// --- small models ------------------------------------------------------------------------------------------------------

constexpr char kTwo[] = R"(shardplan: 1
model: two
cluster: dgx-a100
dims: {B: 32, H: 64}
inputs: {x: [B, H]}
operators:
  a: {block: nn.Dense, in: x, out_channels: H, place: ("MS_WORKER", 1)}
  b: {op: ReLU, in: a}
  c: {block: nn.Dense, in: x, out_channels: H, place: {role: MS_WORKER, rank: 2}}
  d: {op: Add, in: [b, c]}
  loss: {op: ReduceMean, in: d}
loss: loss
)";

TEST(PlaceTest, InputsAreLoadedWhereTheyAreReadAndBranchesRunSideBySide) {
  const Plan plan = plan_of(std::string(kTwo) + "parallel: {device_num: 3}\n");
  std::vector<int> loads;
  for (const Binding& given : plan.program.given) {
    if (given.is_input) loads.push_back(plan.program.values[given.value].worker);
  }
  EXPECT_EQ(loads, (std::vector<int>{1, 2}));
  std::vector<std::string> sends;
  std::map<std::string, OverlappedTimeline::Span> spans;
  const WorkerTimeline times = worker_timeline(plan.program);
  for (std::size_t i = 0; i < times.spans.size(); ++i) {
    const Instruction& instruction = plan.program.instructions[i];
    spans[instruction.name] = times.spans[i];
    if (instruction.kind == InstructionKind::kSend) sends.push_back(workers_text(plan.program, instruction));
  }
  std::sort(sends.begin(), sends.end());
  EXPECT_EQ(sends, (std::vector<std::string>{"worker 1 -> 0", "worker 2 -> 0"}));
  EXPECT_EQ(spans.at("a.matmul").begin, 0);
  EXPECT_EQ(spans.at("c.matmul").begin, 0);
  EXPECT_EQ(plan.status, PlanStatus::kOptimal);
}

TEST(PlaceTest, ASendTakesTheTimeOfTheLinkBetweenTheTwo) {
  std::string text = kTwo;
  text.replace(text.find("cluster: dgx-a100"), 17, "cluster: dgx-a100x2");
  text.replace(text.find("rank: 2"), 7, "rank: 9");  // on the second node
  const Plan plan = plan_of(text);
  std::map<std::string, Picoseconds> sends;
  for (const Instruction& instruction : plan.program.instructions) {
    if (instruction.kind == InstructionKind::kSend) {
      sends[workers_text(plan.program, instruction)] = instruction.time;
    }
  }
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_GT(sends.at("worker 9 -> 0"), sends.at("worker 1 -> 0"));
}

TEST(PlaceTest, WhatIsWrongIsSaidAtItsPlace) {
  const std::string two = kTwo;
  EXPECT_EQ(fault_of(two + "parallel: {device_num: 2}\n"),
            "m.yaml:9:55: error: place: rank is 2, but the workers are 0 to 1\n"
            "    each of the 2 devices is a worker; device_num: 3 has one of rank 2");
  EXPECT_EQ(fault_of(two + "parallel: {workers: 2}\n"),
            "m.yaml:9:55: error: place: rank is 2, but the workers are 0 to 1\n    workers: 3 has one of rank 2");
  EXPECT_EQ(fault_of(two + "parallel: {workers: 3}\n"),
            "m.yaml:13:21: error: workers is 3, which does not divide the 8 devices of dgx-a100");
  std::string without = two;
  without.replace(without.find(", place: (\"MS_WORKER\", 1)"), 25, "");
  without.replace(without.find(", place: {role: MS_WORKER, rank: 2}"), 35, "");
  EXPECT_EQ(
      fault_of(without + "parallel: {workers: 2}\n"),
      "m.yaml:13:21: error: parallel: workers divides the devices among the workers that place names; no operator "
      "has a place\n    place: {role: MS_WORKER, rank: 1} beside an operator or a block");
  EXPECT_EQ(
      fault_of(two + "parallel: {compat: mindspore-1.7, parallel_mode: data_parallel}\n"),
      "m.yaml:13:50: error: compat: mindspore-1.7: place is not mixed with a parallel_mode; every worker runs its "
      "part alone\n    leave out compat, or one of them");
  EXPECT_EQ(fault_of("mode: pynative\n" + two + "parallel: {compat: mindspore-1.7}\n"),
            "m.yaml:1:7: error: compat: mindspore-1.7: place is not mixed with mode pynative\n"
            "    leave out compat, or one of them");
}

TEST(PlaceTest, OneDeviceAloneDoesNotPlace) {
  const Plan plan = plan_of(std::string(kTwo) + "parallel: {parallel_mode: stand_alone}\n");
  EXPECT_EQ(plan.program.workers, 1);
  EXPECT_NE(std::find(plan.notices.begin(), plan.notices.end(),
                      "place has no effect in parallel_mode stand_alone: one device runs everything"),
            plan.notices.end());
}

TEST(PlaceTest, LenetIsCutAsTheDocumentCutsIt) {
  const Plan plan = plan_of(read_text_file("configs/lenet-place.yaml"));
  EXPECT_EQ(plan.program.workers, 5);
  const std::map<std::string, int> stored = {{"fc1.weight", 0},   {"fc2.weight", 1},   {"fc3.weight", 2},
                                             {"conv1.weight", 3}, {"conv2.weight", 4}, {"conv1.weight.momentum", 3}};
  for (const auto& [name, worker] : stored) {
    const TensorId tensor = *plan.graph->find_tensor(name);
    for (const Binding& given : plan.program.given) {
      if (given.tensor != tensor) continue;
      EXPECT_EQ(plan.program.values[given.value].worker, worker) << name;
    }
  }
  for (const Binding& output : plan.program.outputs) {
    EXPECT_EQ(plan.program.values[output.value].worker, 0);  // only worker 0's loss counts
  }
  Random random(3);
  check_plan(plan, random);
}

}  // namespace
}  // namespace shardplan
