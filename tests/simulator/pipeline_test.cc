// Micro-batches that overlap on workers: the order, its time and memory, and that no number changes.

#include <fmt/format.h>
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
#include "simulator/execute/simulate.h"
#include "simulator/proof/prove.h"
#include "tests/support/marked_model.h"
#include "tests/support/proofs.h"
#include "tests/support/random_places.h"

namespace shardplan {
namespace {

Plan pipelined_plan(const std::string& text, Level level = Level::kRatio, bool overlap = true) {
  const auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
  const JobCluster job = job_cluster(*model);
  PlanOptions options;
  options.level = level;
  options.overlap = overlap;
  options.work_limit = 20'000'000;
  return ModelPlanner(model, job.cluster, options).plan(level, "auto");
}

/// This many stages with equal work, one on each worker.
std::string equal_stages(int count, const std::string& training, const std::string& parallel) {
  std::string operators;
  std::string before = "x";
  for (int i = 0; i < count; ++i) {
    operators +=
        fmt::format("  s{}: {{block: nn.Dense, in: {}, out_channels: H, place: (\"MS_WORKER\", {})}}\n", i, before, i);
    operators += fmt::format("  r{}: {{op: ReLU, in: s{}, place: (\"MS_WORKER\", {})}}\n", i, i, i);
    before = fmt::format("r{}", i);
  }
  return fmt::format(
      "shardplan: 1\nmodel: stages\ncluster: dgx-a100\ndims: {{B: 65536, H: 4096}}\ninputs: {{x: [B, H]}}\n"
      "operators:\n{}  loss: {{op: ReduceMean, in: {}, place: (\"MS_WORKER\", {})}}\nloss: loss\nparallel: {}\n"
      "training: {{optimizer: sgd, learning_rate: 0.01{}}}\n",
      operators, before, count - 1, parallel, training);
}

/// One position in the whole step: an instruction in one run of the loop (0: after the loop).
struct Position {
  std::size_t instruction = 0;
  std::int64_t run = 0;
};

std::vector<Position> positions_of(const ParallelProgram& program) {
  std::vector<Position> positions;
  for (LoopWalk walk(program); !walk.is_done(); walk.next()) positions.push_back({walk.instruction(), walk.run()});
  for (std::size_t i = program.num_in_micro_batch(); i < program.instructions.size(); ++i) positions.push_back({i, 0});
  return positions;
}

/// What every instruction reads has been produced: in the same run, by all runs if it is a sum, or by the run before if
/// that stores it.
void expect_inputs_are_there(const ParallelProgram& program) {
  const std::size_t loop = program.num_in_micro_batch();
  const std::int64_t runs = program.micro_batches;
  std::map<ValueId, std::size_t> maker;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    for (const ValueId output : program.instructions[i].outputs) maker[output] = i;
  }
  std::map<TensorId, ValueId> update;
  for (const Binding& binding : program.updates) update[binding.tensor] = binding.value;
  std::map<ValueId, ValueId> stored;
  for (const Binding& given : program.given) {
    if (update.contains(given.tensor)) stored[given.value] = update[given.tensor];
  }
  std::vector<std::int64_t> sums(program.instructions.size(), 0);
  std::set<std::pair<std::size_t, std::int64_t>> done;
  for (const Position& at : positions_of(program)) {
    const Instruction& instruction = program.instructions[at.instruction];
    for (const ValueId input : instruction.inputs) {
      if (stored.contains(input) && maker.at(stored[input]) < loop && at.instruction < loop && at.run > 0) {
        EXPECT_TRUE(done.contains({maker.at(stored[input]), at.run - 1})) << instruction.name;
      }
      if (!maker.contains(input)) continue;
      const std::size_t from = maker.at(input);
      const bool is_sum = from < loop && is_accumulating(program.instructions[from]);
      if (is_sum) {
        EXPECT_EQ(sums[from], runs) << instruction.name;
      } else {
        const std::int64_t run = from >= loop ? 0 : at.instruction < loop ? at.run : runs - 1;
        EXPECT_TRUE(done.contains({from, run})) << instruction.name << " of run " << at.run;
      }
    }
    if (at.instruction < loop && is_accumulating(instruction)) {
      EXPECT_EQ(sums[at.instruction]++, at.run) << instruction.name;
    }
    EXPECT_TRUE(done.emplace(at.instruction, at.run).second);
  }
  EXPECT_EQ(done.size(), loop * static_cast<std::size_t>(runs) + program.instructions.size() - loop);
}

/// The peak of each worker, from the first and last place in the step that needs each value of each run.
std::vector<Bytes> peaks_by_positions(const ParallelProgram& program) {
  const std::size_t loop = program.num_in_micro_batch();
  const std::vector<Position> positions = positions_of(program);
  const std::size_t end = positions.size() - 1;
  std::map<ValueId, std::size_t> last_reader;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    for (const ValueId input : program.instructions[i].inputs) last_reader[input] = i;
  }
  std::map<ValueId, ValueId> old_of, home;  // a view, or what overwrites a stored tensor: in whose memory it is
  for (const Binding& update : program.updates) {
    for (const Binding& given : program.given) {
      if (given.tensor == update.tensor) old_of.emplace(update.value, given.value);
    }
  }
  const auto memory_of = [&](ValueId id) { return home.contains(id) ? home.at(id) : id; };
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    for (const ValueId output : instruction.outputs) {
      if (old_of.contains(output) && last_reader[old_of.at(output)] <= i) {
        home[output] = old_of.at(output);
      } else if (instruction.kind == InstructionKind::kOperator &&
                 instruction.operation->type->work == WorkKind::kView) {
        home[output] = memory_of(instruction.inputs[0]);
      }
    }
  }
  struct Life {
    std::size_t begin = 0, end = 0;
  };
  std::map<std::pair<ValueId, std::int64_t>, Life> lives;  // run -1: of all runs
  std::set<ValueId> of_all, inputs, kept;
  for (std::size_t i = 0; i < loop; ++i) {
    if (is_accumulating(program.instructions[i])) of_all.insert(program.instructions[i].outputs[0]);
  }
  for (const Binding& given : program.given) (given.is_input ? inputs : of_all).insert(given.value);
  for (const auto* bindings : {&program.outputs, &program.updates}) {
    for (const Binding& binding : *bindings) kept.insert(memory_of(binding.value));
  }
  std::map<std::pair<int, std::int64_t>, std::size_t> begin_of_run;
  const auto touch = [&](ValueId id, const Position& at, std::size_t position) {
    const ValueId memory = memory_of(id);
    const std::int64_t run = of_all.contains(memory) ? -1 : at.instruction < loop ? at.run : program.micro_batches - 1;
    const std::size_t begin =
        inputs.contains(memory) ? begin_of_run.at({program.values[memory].worker, run}) : position;
    const auto [life, is_new] = lives.try_emplace({memory, run}, Life{run < 0 ? 0 : begin, position});
    life->second.end = position;
  };
  std::map<ValueId, char> is_loop_made;
  for (std::size_t i = 0; i < loop; ++i) {
    for (const ValueId output : program.instructions[i].outputs) is_loop_made[output] = 1;
  }
  for (std::size_t position = 0; position < positions.size(); ++position) {
    const Position& at = positions[position];
    const Instruction& instruction = program.instructions[at.instruction];
    if (at.instruction < loop) {
      begin_of_run.try_emplace({worker_of(program, instruction), at.run}, position);
      begin_of_run.try_emplace({result_worker(program, instruction), at.run}, position);
    }
    for (const ValueId input : instruction.inputs) touch(input, at, position);
    for (const ValueId output : instruction.outputs) touch(output, at, position);
  }
  for (auto& [key, life] : lives) {
    const bool is_last = key.second < 0 || key.second + 1 == program.micro_batches || !is_loop_made.contains(key.first);
    if (kept.contains(key.first) && is_last) life.end = end;
    if (of_all.contains(key.first) && !is_loop_made.contains(key.first)) life.end = end;
  }
  for (const Binding& given : program.given) {
    if (!given.is_input) lives.try_emplace({given.value, -1}, Life{0, end});
  }
  std::vector<std::vector<Bytes>> change(static_cast<std::size_t>(program.workers),
                                         std::vector<Bytes>(positions.size() + 1, 0));
  for (const auto& [key, life] : lives) {
    const ProgramValue& value = program.values[key.first];
    if (value.in_registers) continue;
    change[static_cast<std::size_t>(value.worker)][life.begin] += value.bytes;
    change[static_cast<std::size_t>(value.worker)][life.end + 1] -= value.bytes;
  }
  std::vector<Bytes> peaks;
  for (const std::vector<Bytes>& of : change) {
    Bytes now = 0, most = 0;
    for (const Bytes by : of) most = std::max(most, now += by);
    peaks.push_back(most);
  }
  return peaks;
}

/// The losses on the mesh.
std::vector<double> mesh_losses(const ParallelProgram& program, const OperatorGraph& graph) {
  std::vector<double> found;
  for (const SimulatedScalar& scalar : simulate(program, graph, {.seed = 3, .steps = 3})) {
    for (const SimulatedStep& step : scalar.steps) found.push_back(step.mesh);
  }
  return found;
}

void check_pipeline(const Plan& plan) {
  const ParallelProgram& program = plan.program;
  ASSERT_EQ(check_program(program, *plan.graph), "");
  ASSERT_EQ(check_loop_order(program), "");
  expect_inputs_are_there(program);
  EXPECT_EQ(plan.memory.worker_peaks, peaks_by_positions(program));
  EXPECT_EQ(plan.memory.peak, *std::max_element(plan.memory.worker_peaks.begin(), plan.memory.worker_peaks.end()));
  const WorkerTimeline times = worker_timeline(program);
  EXPECT_EQ(plan.time.step(), times.end);
  EXPECT_LE(least_step(program), times.end);
  for (const WorkerUse& use : times.workers) EXPECT_LE(use.busy(), least_step(program));
  ParallelProgram in_turn = program;
  in_turn.loop_order = {};
  EXPECT_EQ(least_step(in_turn), least_step(program));
  EXPECT_LE(times.end, worker_timeline(in_turn).end);
  EXPECT_EQ(peaks_by_positions(in_turn), memory_profile(in_turn).worker_peaks);
}

TEST(PipelineTest, EqualStagesOverlap) {
  const Plan plan = pipelined_plan(equal_stages(4, ", micro_batches: 8", "{device_num: 4}"), Level::kSpeed);
  check_pipeline(plan);
  const WorkerTimeline times = worker_timeline(plan.program);
  ParallelProgram in_turn = plan.program;
  in_turn.loop_order = {};
  // Eight micro-batches through four stages: 8 + 3 turns of one stage, instead of 8 * 4.
  const double faster = static_cast<double>(worker_timeline(in_turn).end) / static_cast<double>(times.end);
  EXPECT_GT(faster, 2.3);
  EXPECT_LT(static_cast<double>(times.end), 1.5 * static_cast<double>(least_step(plan.program)));
  EXPECT_GE(times.workers.front().in_flight, 4);
  EXPECT_EQ(plan.bound.amount, least_step(plan.program));
  EXPECT_EQ(plan.status, PlanStatus::kFeasible);
}

TEST(PipelineTest, LittleMemoryLetsFewerOverlap) {
  const std::string text = equal_stages(4, ", micro_batches: 8", "{device_num: 4}");
  const auto plan_in = [&](Bytes capacity) {
    const auto model = std::make_shared<const Model>(read_model_text(text, "m.yaml"));
    PlanOptions options;
    options.level = Level::kSpeed;
    options.capacity = capacity;
    return ModelPlanner(model, job_cluster(*model).cluster, options).plan(Level::kSpeed, "auto");
  };
  const Plan free = plan_in(Bytes{80} << 30);
  const Plan tight = plan_in(free.memory.peak - 1);
  EXPECT_TRUE(tight.fits());
  EXPECT_LT(tight.program.loop_order.in_flight, free.program.loop_order.in_flight);
  EXPECT_GE(tight.time.step(), free.time.step());
  check_pipeline(tight);
}

TEST(PipelineTest, LeastMemoryAndNoOverlapKeepThemInTurn) {
  const std::string text = equal_stages(3, ", micro_batches: 4", "{device_num: 3}");
  EXPECT_FALSE(pipelined_plan(text).program.loop_order.turns.empty());
  EXPECT_TRUE(pipelined_plan(text, Level::kMemory).program.loop_order.turns.empty());
  EXPECT_TRUE(pipelined_plan(text, Level::kRatio, false).program.loop_order.turns.empty());
}

TEST(PipelineTest, RandomCutsComputeTheSameNumbersInAnyOrder) {
  struct Case {
    const char* training;
    const char* parallel;
    int workers;
  };
  const Case cases[] = {
      {", micro_batches: 4", "{device_num: 5}", 5},
      {", micro_batches: 8, clip_norm: 0.5", "{device_num: 3}", 3},
      {", micro_batches: 2, recompute: [layers.*]", "{device_num: 2}", 2},
      {", micro_batches: 4", "{workers: 2, device_num: 4}", 2},
  };
  int overlapped = 0;
  for (const Case& c : cases) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SCOPED_TRACE(fmt::format("training{}, parallel {}, seed {}", c.training, c.parallel, seed));
      Random random(seed);
      Plan plan = pipelined_plan(with_places(layered_model(c.training), c.parallel, c.workers, random));
      check_pipeline(plan);
      if (!plan.program.loop_order.turns.empty()) ++overlapped;
      ParallelProgram in_turn = plan.program;
      in_turn.loop_order = {};
      const std::vector<double> expected = mesh_losses(in_turn, *plan.graph);
      // Any valid order, not only the one that was chosen.
      for (const int in_flight : {2, 3, 7}) {
        plan.program.loop_order =
            overlapped_runs(in_turn, std::vector<int>(static_cast<std::size_t>(in_turn.workers), in_flight));
        ASSERT_EQ(check_loop_order(plan.program), "");
        expect_inputs_are_there(plan.program);
        EXPECT_EQ(mesh_losses(plan.program, *plan.graph), expected) << in_flight << " in flight";
        EXPECT_EQ(memory_profile(plan.program).worker_peaks, peaks_by_positions(plan.program));
      }
      EXPECT_EQ(outcome(prove(plan, {.validation = {.steps = 2}, .shrink = false})), "proven");
    }
  }
  EXPECT_GT(overlapped, 8);
}

/// Each micro-batch reads what the one before stored: running statistics keep their order.
TEST(PipelineTest, RunningStatisticsAreHandedOn) {
  const std::string text = R"(shardplan: 1
model: norms
cluster: dgx-a100
dims: {B: 8, C: 4, side: 6}
inputs: {x: [B, C, side, side]}
operators:
  a: {block: nn.Conv2d, in: x, out_channels: C, kernel_size: 3}
  n: {block: nn.BatchNorm2d, in: a, place: ("MS_WORKER", 1)}
  b: {block: nn.Conv2d, in: n, out_channels: C, kernel_size: 3, place: ("MS_WORKER", 2)}
  m: {block: nn.BatchNorm2d, in: b, place: ("MS_WORKER", 0)}
  loss: {op: ReduceMean, in: m}
loss: loss
parallel: {device_num: 3}
training: {optimizer: sgd, learning_rate: 0.01, micro_batches: 4}
)";
  Plan plan = pipelined_plan(text);
  ParallelProgram in_turn = plan.program;
  in_turn.loop_order = {};
  std::set<ValueId> made_by_loop;
  for (std::size_t i = 0; i < in_turn.num_in_micro_batch(); ++i) {
    made_by_loop.insert(in_turn.instructions[i].outputs.begin(), in_turn.instructions[i].outputs.end());
  }
  const auto stored_by_loop = std::count_if(in_turn.updates.begin(), in_turn.updates.end(),
                                            [&](const Binding& update) { return made_by_loop.contains(update.value); });
  EXPECT_GT(stored_by_loop, 0);
  for (const int in_flight : {2, 3, 4}) {
    plan.program.loop_order =
        overlapped_runs(in_turn, std::vector<int>(static_cast<std::size_t>(in_turn.workers), in_flight));
    ASSERT_EQ(check_program(plan.program, *plan.graph), "");
    expect_inputs_are_there(plan.program);
    EXPECT_EQ(memory_profile(plan.program).worker_peaks, peaks_by_positions(plan.program));
    EXPECT_EQ(mesh_losses(plan.program, *plan.graph), mesh_losses(in_turn, *plan.graph));
    EXPECT_EQ(outcome(prove(plan, {.validation = {.steps = 2}, .shrink = false})), "proven");
  }
}

TEST(PipelineTest, WrongOrdersAreFound) {
  const Plan plan = pipelined_plan(equal_stages(3, ", micro_batches: 4", "{device_num: 3}"));
  Random random(11);
  ParallelProgram wrong = plan.program;
  std::vector<Turn>& turns = wrong.loop_order.turns;
  ASSERT_FALSE(turns.empty());
  const std::vector<Turn> right = turns;
  turns.pop_back();
  EXPECT_NE(check_loop_order(wrong), "");
  turns = right;
  turns.push_back(right.front());
  EXPECT_NE(check_loop_order(wrong), "");
  turns = right;
  std::reverse(turns.begin(), turns.end());
  EXPECT_NE(check_loop_order(wrong), "");
  turns = right;
  wrong.loop_order.in_flight = 1;
  EXPECT_NE(check_loop_order(wrong), "");
}

}  // namespace
}  // namespace shardplan
