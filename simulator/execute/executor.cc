// One instruction at a time, on all devices.
//
// A program is one sequence for the whole job, so the simulated devices need no threads or messages: an instruction
// runs on every device before the next one starts, and a collective reads the buffers of its groups. The inputs of each
// step ensure that no device uses what it could not know: an operator's kernel gets this device's buffers and boxes of
// the iteration space, and `apply` (collectives.h) reads within groups only.
//
// Values are shared and never changed once written. So copying an executor is cheap, and the proof that faults are
// caught makes hundreds of copies: each branches off the correct run at its fault and continues separately.
//
// The members of a bucket run as one collective when the first of them is next; each then takes its part of the result.
//
// A micro-batch is one run over the instructions of the loop; then the inputs of the next one are drawn, and sums over
// the loop become operands of the next run.

#include "simulator/execute/executor.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "base/side_by_side.h"
#include "layouts/uneven.h"
#include "operators/phases.h"
#include "program/instruction_facts.h"
#include "simulator/execute/joined_collectives.h"
#include "simulator/execute/padding.h"

namespace shardplan {
namespace {

/// Calls `work` for 0 .. count - 1, on threads only if there is enough work for them.
template <class Work>
void for_each_device(std::size_t count, std::size_t work_per_device, int threads, const Work& work) {
  constexpr std::size_t kWorthThreads = 1u << 20;
  if (threads <= 1 || count < 2 || count * work_per_device < kWorthThreads) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  side_by_side(static_cast<std::size_t>(threads), count, [&](std::size_t, std::size_t i) { work(i); });
}

DeviceBuffers sum_of(const DeviceBuffers& a, const DeviceBuffers& b) {
  DeviceBuffers sum(a.size());
  AlikeDevices alike;
  for (std::size_t device = 0; device < a.size(); ++device) {
    const std::size_t first =
        alike.first_with({AlikeDevices::memory(a[device]), AlikeDevices::memory(b[device])}, device);
    if (first != device) {
      sum[device] = sum[first];
      continue;
    }
    TensorValues values = a[device];
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += b[device][i];
    sum[device] = std::move(values);
  }
  return sum;
}

/// Draws new numbers from the same range: the initial values of a device that draws them itself.
void draw_again(TensorValues& values, DataType dtype, std::uint64_t seed) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const double value : values) {
    if (std::isnan(value)) continue;  // padding stays NaN
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low == high) high = low + 1;
  Random random(mix(seed));
  for (double& value : values) {
    if (std::isnan(value)) continue;
    value = low + (high - low) * random.unit();
    if (!is_floating(dtype)) value = std::floor(value);
  }
}

/// The shape of a device's piece of a value whose buffer has shape `buffer_shape`; smaller if the device's piece of an
/// uneven dimension is a shorter one.
Shape own_shape(const ProgramValue& value, const DeviceMesh& mesh, std::int64_t point, const Shape& buffer_shape) {
  Shape shape = buffer_shape;
  const Shape held = held_shape(value.layout, mesh, value.type.shape, point);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (held[d] < value.local_shape[d]) shape[d] = held[d];
  }
  return shape;
}

/// The global position of an operand's first element by dimension, as kernels expect it (`OperandView::begin`).
Shape operand_begin(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh, std::int64_t point,
                    const std::vector<Box>& boxes, std::size_t operand, const Shape* before) {
  const TensorWalk& walk = operation.rule.operands[operand];
  const Shape& shape = operation.operands[operand].shape;
  Shape begin(walk.size(), 0);
  for (std::size_t d = 0; d < walk.size(); ++d) {
    if (walk[d].window) {
      const std::vector<AxisRef>& axes = strategy.factors[walk[d].window->output];
      begin[d] = mesh.coordinate(point, axes) * (shape[d] / num_pieces(axes));
    } else if (walk[d].factors.size() == 1) {
      begin[d] = boxes[walk[d].factors.front()].begin;
    }
    if (before != nullptr) begin[d] -= (*before)[d];
  }
  return begin;
}

}  // namespace

Executor::DeviceCall Executor::call_of(const Instruction& instruction, std::size_t device, const Fault* fault) const {
  const Operation& operation = *instruction.operation;
  const bool trims = fault == nullptr || fault->kind != FaultKind::kUntrimmed;
  const bool is_shifted = fault != nullptr && fault->kind == FaultKind::kShifted;
  DeviceCall call;
  call.believed = static_cast<std::int64_t>(device);
  if (is_shifted) call.believed = (call.believed + 1) % program_->mesh.num_devices();
  call.boxes = boxes(operation, instruction.strategy, program_->mesh, call.believed);
  if (!trims) {
    const std::vector<std::int64_t> largest = local_extents(operation, instruction.strategy);
    for (std::size_t f = 0; f < largest.size(); ++f) call.boxes[f].end = call.boxes[f].begin + largest[f];
  }
  for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
    const ProgramValue& value = program_->values[instruction.inputs[i]];
    const PlacedValue& placed = *at(instruction.inputs[i]);
    const bool has_halo = !placed.shapes.empty();
    DeviceCall::Operand operand;
    operand.buffer = &placed.data[device];
    operand.buffer_shape = has_halo ? placed.shapes[device] : value.local_shape.items();
    operand.shape =
        trims ? own_shape(value, program_->mesh, call.believed, operand.buffer_shape) : operand.buffer_shape;
    operand.begin = operand_begin(operation, instruction.strategy, program_->mesh, call.believed, call.boxes, i,
                                  has_halo ? &placed.before[device] : nullptr);
    call.operands.push_back(std::move(operand));
  }
  for (const ValueId id : instruction.outputs) {
    const ProgramValue& value = program_->values[id];
    call.held.push_back(own_shape(value, program_->mesh, call.believed, value.local_shape));
    call.results.push_back(trims ? call.held.back() : value.local_shape.items());
  }
  return call;
}

AlikeDevices::Key Executor::DeviceCall::key() const {
  AlikeDevices::Key key;
  const auto add = [&](const Shape& shape) { key.insert(key.end(), shape.begin(), shape.end()); };
  for (const Box& box : boxes) key.insert(key.end(), {box.begin, box.end, box.extent});
  for (const Operand& operand : operands) {
    key.push_back(AlikeDevices::memory(*operand.buffer));
    add(operand.buffer_shape);
    add(operand.shape);
    add(operand.begin);
  }
  for (const Shape& shape : results) add(shape);
  for (const Shape& shape : held) add(shape);
  return key;
}

Executor::Executor(const ParallelProgram& program, const OperatorGraph& graph, const ExecutionOptions& options)
    : program_(&program), graph_(&graph), options_(options) {
  constexpr std::size_t kNever = static_cast<std::size_t>(-1);
  IdVector<ValueId, std::size_t> last_use(program.values.size(), 0);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    for (const ValueId id : program.instructions[i].outputs) last_use[id] = i;
    for (const ValueId id : program.instructions[i].inputs) last_use[id] = i;
  }
  for (const auto* bindings : {&program.given, &program.outputs, &program.updates}) {
    for (const Binding& binding : *bindings) last_use[binding.value] = kNever;
  }
  num_in_micro_batch_ = program.num_in_micro_batch();
  auto freed = std::make_shared<std::vector<std::vector<ValueId>>>(program.instructions.size());
  for (std::size_t i = 0; i < num_in_micro_batch_; ++i) {
    if (!is_accumulating(program.instructions[i])) continue;
    for (const ValueId id : program.instructions[i].outputs) {
      if (last_use[id] < num_in_micro_batch_) last_use[id] = kNever;  // the next run adds to it
    }
  }
  for (const ValueId id : program.values.ids()) {
    if (last_use[id] < freed->size()) (*freed)[last_use[id]].push_back(id);
  }
  freed_after_ = std::move(freed);
  if (!program.loop_order.turns.empty() && num_in_micro_batch_ > 0) find_values_of_runs();
}

void Executor::find_values_of_runs() {
  is_of_run_ = IdVector<ValueId, char>(program_->values.size(), 0);
  std::map<TensorId, ValueId> stored_by_run;
  IdVector<ValueId, char> is_made(program_->values.size(), 0);
  for (std::size_t i = 0; i < num_in_micro_batch_; ++i) {
    for (const ValueId id : program_->instructions[i].outputs) {
      is_made[id] = 1;
      is_of_run_[id] = is_accumulating(program_->instructions[i]) ? 0 : 1;
    }
  }
  for (const Binding& update : program_->updates) {
    if (is_made[update.value]) stored_by_run.emplace(update.tensor, update.value);
  }
  for (const Binding& given : program_->given) {
    const auto stored = stored_by_run.find(given.tensor);
    if (stored != stored_by_run.end()) given_to_next_.emplace(stored->second, given.value);
    is_of_run_[given.value] = given.is_input || stored != stored_by_run.end() ? 1 : 0;
  }
  // One more than are in flight, since the values a run stores are given to the next run, which may not have begun.
  const auto runs = static_cast<std::size_t>(program_->micro_batches);
  of_runs_.resize(std::min(runs, static_cast<std::size_t>(program_->loop_order.in_flight) + 1));
}

void Executor::begin_walk() {
  walk_.emplace(*program_);
  last_ = std::nullopt;
  run_ = 0;
  next_ = num_in_micro_batch_ == 0 ? 0 : walk_->instruction();
  micro_batch_ = 0;
  values_ = Values(program_->values.size());
  for (Values& values : of_runs_) values = Values(program_->values.size());
  begun_.assign(static_cast<std::size_t>(program_->workers), std::vector<std::size_t>(of_runs_.size(), 0));
}

void Executor::begin_run(int worker, std::size_t run) {
  std::size_t& begun = begun_[static_cast<std::size_t>(worker)][run % of_runs_.size()];
  if (begun == run) return;
  begun = run;
  for (const Binding& binding : program_->given) {
    if (!binding.is_input || program_->values[binding.value].worker != worker || !is_here(binding.value)) continue;
    at(binding.value, run) = place(binding.value, inputs_(binding.tensor, draw_of(run)));
  }
}

bool Executor::is_here(ValueId id) const {
  return options_.channel == nullptr || program_->values[id].worker == options_.worker;
}

std::shared_ptr<const PlacedValue> Executor::place(ValueId id, TensorValues tensor) const {
  const ProgramValue& value = program_->values[id];
  round_to(options_.precision, value.type.dtype, tensor);
  PlacedValue placed;
  placed.data = scatter(tensor, value.type.shape, value.layout, program_->mesh);
  return std::make_shared<const PlacedValue>(std::move(placed));
}

void Executor::start(std::uint64_t step, const StoredValues& stored, const Fault* fault) {
  begin_walk();
  step_ = step;
  inputs_ = stored;
  for (std::size_t i = 0; i < program_->given.size(); ++i) {
    const Binding& binding = program_->given[i];
    if (!is_here(binding.value)) continue;
    at(binding.value) = place(binding.value, stored(binding.tensor, draw()));
    if (fault != nullptr && fault->given == i) {
      PlacedValue wrong = *at(binding.value);
      swap_unlike_buffers(wrong.data);
      at(binding.value) = std::make_shared<const PlacedValue>(std::move(wrong));
    }
  }
  for (std::size_t i = 0; i < program_->broadcasts.size(); ++i) {
    broadcast(i, fault != nullptr && fault->broadcast == i ? fault : nullptr);
  }
}

void Executor::broadcast(std::size_t number, const Fault* fault) {
  const StartupBroadcast& broadcast = program_->broadcasts[number];
  const ValueId id = program_->given[broadcast.given].value;
  if (!is_here(id)) return;
  const ProgramValue& value = program_->values[id];
  PlacedValue placed = *at(id);
  for (const std::vector<std::int64_t>& group : program_->mesh.groups(broadcast.axes)) {
    for (std::size_t member = 1; member < group.size(); ++member) {
      const std::uint64_t seed = mix(options_.seed ^ mix(number)) ^ static_cast<std::uint64_t>(group[member]);
      draw_again(placed.data[static_cast<std::size_t>(group[member])].edit(), value.type.dtype, seed);
    }
    if (fault != nullptr && fault->kind == FaultKind::kRemoved) continue;
    const std::size_t root = fault != nullptr ? 1 : 0;
    const DeviceBuffer sent = placed.data[static_cast<std::size_t>(group[root])];
    for (const std::int64_t member : group) placed.data[static_cast<std::size_t>(member)] = sent;
  }
  at(id) = std::make_shared<const PlacedValue>(std::move(placed));
}

void Executor::start_next(std::uint64_t step, const StoredValues& inputs) {
  SHARDPLAN_CHECK(is_done());
  std::map<TensorId, ValueId> updated;
  for (const Binding& binding : program_->updates) updated[binding.tensor] = binding.value;
  std::vector<std::shared_ptr<const PlacedValue>> kept;
  for (const Binding& binding : program_->given) {
    const auto update = updated.find(binding.tensor);
    kept.push_back(at(update != updated.end() ? update->second : binding.value, last_run()));
  }
  begin_walk();
  step_ = step;
  inputs_ = inputs;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const Binding& binding = program_->given[i];
    if (!is_here(binding.value)) continue;
    at(binding.value) = binding.is_input ? place(binding.value, inputs(binding.tensor, draw())) : kept[i];
  }
}

void Executor::start_next_micro_batch() {
  std::map<TensorId, ValueId> updated;
  for (const Binding& binding : program_->updates) updated[binding.tensor] = binding.value;
  for (const Binding& binding : program_->given) {
    if (!is_here(binding.value)) continue;
    const auto update = updated.find(binding.tensor);
    if (binding.is_input) {
      values_[binding.value] = place(binding.value, inputs_(binding.tensor, draw_of(micro_batch_)));
    } else if (update != updated.end() && values_[update->second] != nullptr) {
      values_[binding.value] = values_[update->second];
    }
  }
}

void Executor::run_next(const Fault* fault) {
  SHARDPLAN_CHECK(!is_done());
  if (options_.stop.stop_requested()) throw Stopped();
  if (last_) {
    for (const ValueId id : (*freed_after_)[*last_]) at(id) = nullptr;
  }
  last_ = next_;
  run_ = micro_batch_;
  if (fault != nullptr && fault->instruction != next_) fault = nullptr;
  const Instruction& instruction = program_->instructions[next_];
  if (!of_runs_.empty() && next_ < num_in_micro_batch_) {
    begin_run(worker_of(*program_, instruction), run_);
    begin_run(result_worker(*program_, instruction), run_);
  }
  if (!instruction.outputs.empty() && !is_here(instruction.outputs.front())) {
    if (instruction.kind == InstructionKind::kSend && is_here(instruction.inputs.front())) {
      options_.channel->send(result_worker(*program_, instruction), next_, at(instruction.inputs.front())->data);
    }
    step_on();
    return;
  }
  std::vector<PlacedValue> results;
  switch (instruction.kind) {
    case InstructionKind::kConstant:
      results.push_back(make_constant(instruction));
      break;
    case InstructionKind::kOperator:
      results = run_operator(instruction, fault);
      break;
    case InstructionKind::kCollective:
      results.push_back(run_collective(instruction, fault));
      break;
    case InstructionKind::kHalo:
      results.push_back(exchange_halo(instruction, fault));
      break;
    case InstructionKind::kSend:
      results.push_back(options_.channel != nullptr ? receive(instruction) : send(instruction, fault));
      break;
  }
  SHARDPLAN_CHECK(results.size() == instruction.outputs.size());
  const bool adds =
      run_ > 0 && instruction.kind == InstructionKind::kOperator && instruction.operation->type->accumulates;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ValueId id = instruction.outputs[i];
    if (adds) results[i].data = sum_of(results[i].data, at(id)->data);
    const DataType dtype = program_->values[id].type.dtype;
    if (is_rounded(options_.precision, dtype)) {
      change_each(results[i].data, [&](TensorValues& buffer) { round_to(options_.precision, dtype, buffer); });
    }
    at(id) = std::make_shared<const PlacedValue>(std::move(results[i]));
    const auto given = given_to_next_.find(id);
    if (given != given_to_next_.end() && run_ < last_run()) at(given->second, run_ + 1) = at(id);
  }
  step_on();
}

void Executor::step_on() {
  if (next_ >= num_in_micro_batch_) {
    ++next_;
    return;
  }
  walk_->next();
  if (walk_->is_done()) {
    next_ = num_in_micro_batch_;
    micro_batch_ = last_run();
    return;
  }
  next_ = walk_->instruction();
  micro_batch_ = static_cast<std::size_t>(walk_->run());
  if (of_runs_.empty() && micro_batch_ != run_) start_next_micro_batch();
}

PlacedValue Executor::make_constant(const Instruction& instruction) const {
  const ProgramValue& value = program_->values[instruction.outputs.front()];
  SHARDPLAN_CHECK(value.tensor.has_value());
  TensorLayout layout = value.layout;
  layout.partial.clear();
  PlacedValue placed;
  placed.data =
      scatter(draw_tensor(*graph_, *value.tensor, options_.seed, step_), value.type.shape, layout, program_->mesh);
  // As a sum, one member has the value and the others have zeros.
  if (value.layout->reduction != Reduction::kSum) return placed;
  const DeviceBuffers whole = placed.data;
  change_each(placed.data, [](TensorValues& buffer) {
    for (double& element : buffer) {
      if (!std::isnan(element)) element = 0;  // padding stays NaN
    }
  });
  for (std::size_t device = 0; device < whole.size(); ++device) {
    const bool is_first = program_->mesh.coordinate(static_cast<std::int64_t>(device), value.layout->partial) == 0;
    if (is_first) placed.data[device] = whole[device];
  }
  return placed;
}

std::vector<PlacedValue> Executor::run_operator(const Instruction& instruction, const Fault* fault) const {
  const Operation& operation = *instruction.operation;
  const std::size_t num_devices = static_cast<std::size_t>(program_->mesh.num_devices());
  SHARDPLAN_CHECK(instruction.op.has_value());
  const std::uint64_t seed = operator_seed(*graph_, *instruction.op, options_.seed, draw());
  const auto work = static_cast<std::size_t>(num_elements(local_extents(operation, instruction.strategy)));
  const bool trims = fault == nullptr || fault->kind != FaultKind::kUntrimmed;

  // The kernel arguments of each device; of devices with equal arguments only the first runs its kernel.
  std::vector<DeviceCall> calls;
  std::vector<std::size_t> called;                    // devices that run their kernel
  std::vector<std::size_t> first_alike(num_devices);  // by device: the device whose results it shares
  AlikeDevices alike;
  for (std::size_t device = 0; device < num_devices; ++device) {
    calls.push_back(call_of(instruction, device, fault));
    first_alike[device] = alike.first_with(calls.back().key(), device);
    if (first_alike[device] == device) called.push_back(device);
  }

  std::vector<PlacedValue> results(instruction.outputs.size());
  for (PlacedValue& result : results) result.data.resize(num_devices);
  for_each_device(called.size(), work, options_.threads, [&](std::size_t number) {
    const std::size_t device = called[number];
    const DeviceCall& call = calls[device];
    // A kernel sees a shorter piece as a tensor of its own, without the buffer's padding.
    std::vector<TensorValues> trimmed(instruction.inputs.size());
    std::vector<OperandView> operands;
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      const DeviceCall::Operand& operand = call.operands[i];
      const TensorValues* data = &static_cast<const TensorValues&>(*operand.buffer);
      if (operand.shape != operand.buffer_shape) {
        data = &(trimmed[i] = without_padding(*data, operand.buffer_shape, operand.shape));
      } else if (!trims && !is_floating(program_->values[instruction.inputs[i]].type.dtype)) {
        trimmed[i] = *data;
        for (double& element : trimmed[i]) {
          if (std::isnan(element)) element = 0;  // a NaN as an index would read anywhere
        }
        data = &trimmed[i];
      }
      operands.push_back({data->data(), operand.shape, operand.begin});
    }
    std::vector<TensorValues> made;
    for (const Shape& shape : call.results) made.emplace_back(static_cast<std::size_t>(num_elements(shape)), 0.0);
    std::vector<ResultView> views;
    for (std::size_t i = 0; i < made.size(); ++i) views.push_back({made[i].data(), call.results[i]});
    run_operation({operation, call.boxes, operands, views, seed});
    for (std::size_t i = 0; i < made.size(); ++i) {
      const Shape& buffer_shape = program_->values[instruction.outputs[i]].local_shape;
      if (call.held[i] != buffer_shape) {
        if (!trims) made[i] = without_padding(made[i], buffer_shape, call.held[i]);
        made[i] = with_padding(made[i], call.held[i], buffer_shape);
      }
      results[i].data[device] = std::move(made[i]);
    }
  });
  for (PlacedValue& result : results) {
    for (std::size_t device = 0; device < num_devices; ++device) {
      if (first_alike[device] != device) result.data[device] = result.data[first_alike[device]];
    }
  }
  return results;
}

void Executor::run_bucket() {
  std::vector<JoinedCollective> members;
  const std::size_t end = end_of_bucket(*program_, next_);
  for (std::size_t i = next_; i < end; ++i) {
    const Instruction& instruction = program_->instructions[i];
    members.push_back({&*instruction.step, program_->values[instruction.outputs.front()].type.shape,
                       &at(instruction.inputs.front())->data});
  }
  bucket_ = std::make_shared<const std::vector<DeviceBuffers>>(apply_joined(members, program_->mesh));
  bucket_begin_ = next_;
}

PlacedValue Executor::run_collective(const Instruction& instruction, const Fault* fault) {
  if (instruction.fusion > 0) {
    if (next_ == 0 || program_->instructions[next_ - 1].fusion != instruction.fusion) run_bucket();
    if (fault == nullptr) return {(*bucket_)[next_ - bucket_begin_], {}, {}};
  }
  const PlacedValue& input = *at(instruction.inputs.front());
  const Shape& shape = program_->values[instruction.outputs.front()].type.shape;
  PlacedValue result;
  result.data = fault != nullptr ? apply_wrongly(fault->kind, instruction.step, program_->mesh, shape, input.data)
                                 : apply(instruction.step, program_->mesh, shape, input.data);
  return result;
}

/// Sends device by device; no other instruction moves values between workers (`check_program`).
PlacedValue Executor::send(const Instruction& instruction, const Fault* fault) const {
  PlacedValue received;
  received.data = at(instruction.inputs.front())->data;
  if (fault == nullptr) return received;
  if (fault->kind == FaultKind::kRotated) {
    std::rotate(received.data.begin(), received.data.begin() + 1, received.data.end());
  } else {
    change_each(received.data, [](TensorValues& buffer) { std::fill(buffer.begin(), buffer.end(), 0.0); });
  }
  return received;
}

PlacedValue Executor::receive(const Instruction& instruction) const {
  const ProgramValue& value = program_->values[instruction.outputs.front()];
  const int from = worker_of(*program_, instruction);
  PlacedValue received;
  received.data = options_.channel->receive(from, next_);
  const auto size = static_cast<std::size_t>(num_elements(value.local_shape));
  const bool is_whole = received.data.size() == static_cast<std::size_t>(program_->mesh.num_devices()) &&
                        std::all_of(received.data.begin(), received.data.end(),
                                    [&](const DeviceBuffer& buffer) { return buffer.size() == size; });
  if (!is_whole) throw InputError(SourcePlace{}, "{}: worker {} sends another size", instruction.name, from);
  return received;
}

/// Exchanges one dimension after the other: the second exchange includes the halo of the first, so corners need no
/// separate messages. Only direct neighbours exchange; `check_strategy` ensures that a halo is never wider than the
/// neighbour's shard.
PlacedValue Executor::exchange_halo(const Instruction& instruction, const Fault* fault) const {
  const DeviceMesh& mesh = program_->mesh;
  const Operation& operation = *instruction.operation;
  const ValueId input = instruction.inputs.front();
  const std::size_t num_devices = static_cast<std::size_t>(mesh.num_devices());
  PlacedValue current = *at(input);
  current.shapes.assign(num_devices, program_->values[input].local_shape);
  current.before.assign(num_devices, Shape(program_->values[input].local_shape.size(), 0));
  for (const Halo& halo : instruction.halo) {
    const std::size_t d = halo.dimension;
    const Window& window = *operation.rule.operands[halo.operand][d].window;
    const std::int64_t extent = operation.operands[halo.operand].shape[d];
    PlacedValue widened = current;
    AlikeDevices alike;
    for (const std::vector<std::int64_t>& group : mesh.groups(halo.axes)) {
      for (std::size_t member = 0; member < group.size(); ++member) {
        const auto device = static_cast<std::size_t>(group[member]);
        const std::int64_t shard = extent / static_cast<std::int64_t>(group.size());
        const Box output = boxes(operation, instruction.strategy, mesh, group[member])[window.output];
        const Interval reads = window_reads(window, operation.rule.factors[window.offset].size, output, extent);
        const std::int64_t begin = shard * static_cast<std::int64_t>(member);
        const std::int64_t before = reads.begin < reads.end ? std::max<std::int64_t>(0, begin - reads.begin) : 0;
        const std::int64_t after = reads.begin < reads.end ? std::max<std::int64_t>(0, reads.end - begin - shard) : 0;
        SHARDPLAN_CHECK(before <= shard && after <= shard);
        SHARDPLAN_CHECK((before == 0 || member > 0) && (after == 0 || member + 1 < group.size()));
        const Shape& old_shape = current.shapes[device];
        Shape& shape = widened.shapes[device];
        shape[d] = before + shard + after;
        widened.before[device][d] = before;
        const auto neighbour = [&](std::int64_t rows_read, std::size_t number) {
          return rows_read == 0 ? 0 : AlikeDevices::memory(current.data[static_cast<std::size_t>(group[number])]);
        };
        AlikeDevices::Key key = {AlikeDevices::memory(current.data[device]), before, neighbour(before, member - 1),
                                 after, neighbour(after, member + 1)};
        key.insert(key.end(), old_shape.begin(), old_shape.end());
        if (const std::size_t first = alike.first_with(std::move(key), device); first != device) {
          widened.data[device] = widened.data[first];
          continue;
        }
        TensorValues data(static_cast<std::size_t>(num_elements(shape)), 0.0);
        std::size_t inner = 1;
        for (std::size_t k = d + 1; k < shape.size(); ++k) inner *= static_cast<std::size_t>(shape[k]);
        const std::size_t rows = static_cast<std::size_t>(shape[d]);
        const std::size_t old_rows = static_cast<std::size_t>(old_shape[d]);
        const std::size_t outer = data.size() / (rows * inner);
        /// Copies rows [from, from + count) of a neighbour's shard (or the own one) to rows `to` of the widened buffer.
        const auto copy = [&](std::int64_t source, std::int64_t from, std::int64_t count, std::int64_t to) {
          const TensorValues& other = current.data[static_cast<std::size_t>(source)];
          for (std::size_t o = 0; o < outer; ++o) {
            std::copy_n(
                other.begin() + static_cast<std::ptrdiff_t>((o * old_rows + static_cast<std::size_t>(from)) * inner),
                static_cast<std::size_t>(count) * inner,
                data.begin() + static_cast<std::ptrdiff_t>((o * rows + static_cast<std::size_t>(to)) * inner));
          }
        };
        copy(group[member], 0, shard, before);
        const bool is_removed = fault != nullptr;  // then the halo stays zero
        if (before > 0 && !is_removed) copy(group[member - 1], shard - before, before, 0);
        if (after > 0 && !is_removed) copy(group[member + 1], 0, after, before + shard);
        widened.data[device] = std::move(data);
      }
    }
    current = std::move(widened);
  }
  return current;
}

}  // namespace shardplan
