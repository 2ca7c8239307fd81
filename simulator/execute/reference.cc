#include "simulator/execute/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "base/random.h"
#include "operators/phases.h"
#include "simulator/execute/cancellation.h"
#include "simulator/execute/near_ties.h"

// One device runs the graph twice: exactly, and with errors of known size in every number (`Disturbance`). How far a
// result moves between the two tells how large a difference on the mesh is still no fault. The disturbed run keeps
// values only as long as they have readers.

namespace shardplan {

namespace {

/// Functions that are called with every number of a tensor right after it is given or computed.
struct Disturbance {
  std::function<void(TensorId, TensorValues&)> of_tensor;
  /// Called with the values between an operator's phases; may be empty.
  std::function<void(OperatorId, const Operation& phase, std::size_t value, DataType, std::span<double>)>
      between_phases = {};
  /// Called with each call of an operator, after its results are computed.
  std::function<void(OperatorId, const KernelCall&)> of_terms = {};
  /// Called with a copy of what an operator compares, before it runs; may be empty.
  std::function<void(OperatorId, std::span<double>)> of_compared = {};
};

/// `adds`: adds to the results' previous values.
void run_operator(const OperatorGraph& graph, OperatorId id, std::uint64_t seed, bool adds, const Disturbance& disturb,
                  IdVector<TensorId, TensorValues>& tensors) {
  const GraphOperator& op = graph.operators()[id];
  const Operation& operation = graph.operation(id);
  std::vector<Box> boxes;
  for (const Factor& factor : operation.rule.factors) boxes.push_back({0, factor.size, factor.size});
  std::vector<OperandView> operands;
  for (const TensorId operand : op.operands) {
    const Shape& shape = graph.tensor(operand).type.shape;
    operands.push_back({tensors[operand].data(), shape, Shape(shape.size(), 0)});
  }
  TensorValues compared;
  if (disturb.of_compared && operation.type->compares_elements) {
    compared = tensors[op.operands[0]];
    disturb.of_compared(id, compared);
    operands[0].data = compared.data();
  }
  std::vector<ResultView> results;
  std::vector<TensorValues> before;
  for (const TensorId result : op.results) {
    const Shape& shape = graph.tensor(result).type.shape;
    before.push_back(adds ? std::move(tensors[result]) : TensorValues());
    tensors[result].assign(static_cast<std::size_t>(num_elements(shape)), 0.0);
    results.push_back({tensors[result].data(), shape});
  }
  BetweenPhases between;
  if (disturb.between_phases) {
    between = [&](const Operation& phase, std::size_t value, DataType dtype, std::span<double> values) {
      disturb.between_phases(id, phase, value, dtype, values);
    };
  }
  const KernelCall call{operation, boxes, operands, results, seed};
  run_operation(call, between);
  if (disturb.of_terms) disturb.of_terms(id, call);
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    TensorValues& values = tensors[op.results[i]];
    for (std::size_t k = 0; k < before[i].size(); ++k) values[k] += before[i][k];
    disturb.of_tensor(op.results[i], values);
  }
}

/// The last reader of every tensor, among all operators or among those that run with every micro-batch.
IdVector<TensorId, std::optional<OperatorId>> last_readers(const OperatorGraph& graph, bool in_micro_batch) {
  IdVector<TensorId, std::optional<OperatorId>> last(graph.tensors().size());
  for (const OperatorId id : graph.operators().ids()) {
    if (in_micro_batch && !graph.is_in_micro_batch(id)) continue;
    for (const TensorId operand : graph.operators()[id].operands) last[operand] = id;
  }
  return last;
}

/// Whether only its readers need a tensor: it is computed again with every micro-batch and is nobody's new value.
bool is_passing(const OperatorGraph& graph, TensorId id) {
  const GraphTensor& tensor = graph.tensor(id);
  return tensor.kind == TensorKind::kResult && !tensor.updates && !graph.operation(*tensor.producer).type->accumulates;
}

/// The distance of each tensor from an exact run, so that the compared run can free tensors after their last reader.
struct Beside {
  const ReferenceStep& exact;
  IdVector<TensorId, Movement> moved;
  std::size_t now = 0;  // the micro-batch that is being run

  void measure(TensorId id, std::size_t micro_batch, const TensorValues& values) {
    const TensorValues& left = exact.at(id, micro_batch);
    Movement most = moved[id];
    for (std::size_t i = 0; i < left.size(); ++i) {
      const double size = std::abs(left[i]);
      const double distance = std::abs(left[i] - values[i]);
      if (size < kStandsForInfinity) {
        most.absolute = distance > most.absolute ? distance : most.absolute;
      } else {
        most.of_large = distance > most.of_large * size ? distance / size : most.of_large;
      }
    }
    moved[id] = most;
  }
};

/// With `beside`, the result keeps only sums and new values of parameters and states.
ReferenceStep run_step(const OperatorGraph& graph, const StoredValues& stored, std::uint64_t seed, std::uint64_t step,
                       const std::stop_token& stop, const Disturbance& disturb, Beside* beside = nullptr) {
  ReferenceStep run;
  IdVector<TensorId, std::optional<OperatorId>> last, last_in_micro_batch;
  if (beside != nullptr) {
    beside->moved.resize(graph.tensors().size());
    last = last_readers(graph, false);
    last_in_micro_batch = last_readers(graph, true);
  }
  run.tensors.resize(graph.tensors().size());
  const auto count = static_cast<std::uint64_t>(graph.micro_batches());
  const auto give = [&](TensorId id, std::uint64_t micro_batch) {
    const GraphTensor& tensor = graph.tensor(id);
    const bool is_constant = tensor.kind == TensorKind::kConstant;
    run.tensors[id] = is_constant ? draw_tensor(graph, id, seed, step) : stored(id, micro_batch);
    disturb.of_tensor(id, run.tensors[id]);
    if (beside != nullptr) beside->measure(id, static_cast<std::size_t>(micro_batch - step * count), run.tensors[id]);
  };
  for (const TensorId id : graph.tensors().ids()) {
    if (graph.tensor(id).kind != TensorKind::kResult) give(id, step * count);
  }
  for (std::uint64_t m = 0; m < count; ++m) {
    const std::uint64_t micro_batch = step * count + m;
    const bool is_last = m + 1 == count;
    if (beside != nullptr) beside->now = static_cast<std::size_t>(m);
    for (const OperatorId id : graph.operators().ids()) {
      if (stop.stop_requested()) throw Stopped();
      if (!is_last && !graph.is_in_micro_batch(id)) continue;
      const bool adds = m > 0 && graph.operation(id).type->accumulates;
      run_operator(graph, id, operator_seed(graph, id, seed, micro_batch), adds, disturb, run.tensors);
      if (beside == nullptr) continue;
      const GraphOperator& op = graph.operators()[id];
      for (const TensorId result : op.results) beside->measure(result, m, run.tensors[result]);
      const auto drop_if_read = [&](TensorId tensor) {
        const std::optional<OperatorId>& reader = is_last ? last[tensor] : last_in_micro_batch[tensor];
        if (is_passing(graph, tensor) && (!reader || *reader <= id)) run.tensors[tensor] = TensorValues();
      };
      for (const TensorId operand : op.operands) drop_if_read(operand);
      for (const TensorId result : op.results) drop_if_read(result);
    }
    if (is_last) break;
    if (beside == nullptr) run.earlier.push_back(run.tensors);
    for (const TensorId id : graph.tensors().ids()) {
      const GraphTensor& tensor = graph.tensor(id);
      if (tensor.kind == TensorKind::kInput) give(id, micro_batch + 1);
      if (tensor.updates && graph.is_in_micro_batch(*tensor.producer)) run.tensors[*tensor.updates] = run.tensors[id];
    }
  }
  // Tensors that do not change are not kept per micro-batch.
  for (IdVector<TensorId, TensorValues>& earlier : run.earlier) {
    for (const TensorId id : graph.tensors().ids()) {
      if (earlier[id] == run.tensors[id]) earlier[id] = TensorValues();
    }
  }
  return run;
}

/// Of the disturbed bits, the first few are disturbed only in the results of sums.
constexpr int kBitsOfSums = 4;

/// Whether the results' rounding may depend on the order of summands, which sharding changes.
bool sums_up(const Operation& operation) {
  const std::vector<Factor>& factors = operation.rule.factors;
  return std::any_of(factors.begin(), factors.end(), [](const Factor& factor) {
    const bool is_sum = factor.kind == FactorKind::kReduction && factor.reduction == Reduction::kSum;
    return is_sum || factor.kind == FactorKind::kNormalised;
  });
}

bool is_summed(const OperatorGraph& graph, TensorId id) {
  const std::optional<OperatorId>& producer = graph.tensor(id).producer;
  return producer && sums_up(graph.operation(*producer));
}

/// Recomputation adds up in the same order as the original.
TensorId original(const OperatorGraph& graph, TensorId id) {
  const GraphOperator& op = graph.operators()[*graph.tensor(id).producer];
  if (!op.is_copy) return id;
  const auto result = std::find(op.results.begin(), op.results.end(), id) - op.results.begin();
  return graph.operators()[*op.forward].results[static_cast<std::size_t>(result)];
}

/// The step with an error in every number that is given or computed: random bits replace its last `bits` bits (of 52)
/// except the first four of these. As with rounding, equal numbers stay equal and moved ones unchanged (a maximum is
/// still one of its operands); unlike rounding, it also affects round numbers. In the results of sums the four bits are
/// replaced too, differently in each tensor: sums that are equal on one device may be added up in two orders on a mesh
/// and then differ. There are only sixteen such errors, so two sums sometimes get the same one; a result that is tiny
/// compared with its terms also gets errors of the size of the terms' (cancellation.h). Nearly equal numbers are
/// compared with the opposite outcome (near_ties.h).
ReferenceStep run_disturbed(const OperatorGraph& graph, const StoredValues& stored, std::uint64_t seed,
                            std::uint64_t step, int bits, const std::stop_token& stop, Beside& beside) {
  const std::uint64_t of_all = (std::uint64_t{1} << (bits - kBitsOfSums)) - 1;
  const std::uint64_t of_sums = ((std::uint64_t{1} << bits) - 1) & ~of_all;
  const auto disturb = [&](std::span<double> values, std::uint64_t seed_of_sum) {
    const bool is_sum = seed_of_sum != 0;
    for (double& value : values) {
      if (value == 0 || !std::isfinite(value)) continue;
      std::uint64_t word = std::bit_cast<std::uint64_t>(value);
      if (is_sum) word = (word & ~of_sums) | (mix((word & ~of_sums & ~of_all) ^ seed_of_sum) & of_sums);
      word &= ~of_all;
      value = std::bit_cast<double>(word | (mix(word ^ seed) & of_all));
    }
  };
  const auto of_tensor = [&](TensorId id, TensorValues& values) {
    if (!is_floating(graph.tensor(id).type.dtype)) return;
    disturb(values, is_summed(graph, id) ? mix(seed ^ mix(original(graph, id).value() + 1)) : 0);
  };
  // On a mesh the statistics of a norm are also rounded and added up in another order. If results computed from them
  // cancel, as in the gradient of a norm of two numbers, only these errors remain.
  const auto between_phases = [&](OperatorId id, const Operation& phase, std::size_t value, DataType dtype,
                                  std::span<double> values) {
    if (!is_floating(dtype)) return;
    const GraphOperator& op = graph.operators()[id];
    const std::uint64_t name = (op.is_copy ? *op.forward : id).value() * 64 + value + 1;
    disturb(values, sums_up(phase) ? mix(~seed ^ mix(name)) : 0);
  };
  const auto of_terms = [&](OperatorId id, const KernelCall& call) {
    const GraphOperator& op = graph.operators()[id];
    const auto is_rounded = [&](std::size_t operand) {
      return !holds_small_integers(beside.exact.tensors[op.operands[operand]]);
    };
    const std::uint64_t name = (op.is_copy ? *op.forward : id).value() + 1;
    add_errors_of_terms(call, std::ldexp(1.0, bits - 54), mix(seed ^ mix(~name)), is_rounded);
  };
  const auto of_compared = [&](OperatorId id, std::span<double> values) {
    const TensorId operand = graph.operators()[id].operands[0];
    reverse_near_ties(graph.operation(id), beside.exact.at(operand, beside.now), 2 * beside.moved[operand].absolute,
                      std::ldexp(1.0, bits - 52), values);
  };
  return run_step(graph, stored, seed, step, stop, {of_tensor, between_phases, of_terms, of_compared}, &beside);
}

}  // namespace

void run_on_one_device(const OperatorGraph& graph, OperatorId op, std::uint64_t seed,
                       IdVector<TensorId, TensorValues>& tensors) {
  run_operator(graph, op, seed, false, {[](TensorId, TensorValues&) {}}, tensors);
}

ReferenceStep run_reference(const OperatorGraph& graph, const StoredValues& stored, std::uint64_t seed,
                            std::uint64_t step, Precision precision, const std::stop_token& stop) {
  return run_step(graph, stored, seed, step, stop, {[&](TensorId id, TensorValues& values) {
                    round_to(precision, graph.tensor(id).type.dtype, values);
                  }});
}

ReferenceSteps::Stored::Stored(const OperatorGraph& graph, StoredValues given)
    : graph_(&graph), given_(std::move(given)) {
  for (const TensorId id : graph.tensors().ids()) {
    const TensorKind kind = graph.tensor(id).kind;
    if (kind == TensorKind::kParameter || kind == TensorKind::kState) values_[id] = given_(id, 0);
  }
}

TensorValues ReferenceSteps::Stored::at(TensorId id, std::uint64_t micro_batch) const {
  const auto found = values_.find(id);
  return found != values_.end() ? found->second : given_(id, micro_batch);
}

void ReferenceSteps::Stored::update(const ReferenceStep& run) {
  for (const TensorId id : graph_->tensors().ids()) {
    const GraphTensor& tensor = graph_->tensor(id);
    if (tensor.updates) values_[*tensor.updates] = run.tensors[id];
  }
}

ReferenceSteps::ReferenceSteps(const OperatorGraph& graph, std::uint64_t seed, std::stop_token stop)
    : ReferenceSteps(
          graph, seed, [&graph, seed](TensorId id, std::uint64_t m) { return draw_tensor(graph, id, seed, m); },
          std::move(stop)) {}

ReferenceSteps::ReferenceSteps(const OperatorGraph& graph, std::uint64_t seed, StoredValues given, std::stop_token stop)
    : graph_(graph), seed_(seed), stop_(std::move(stop)), exact_(graph, given), disturbed_(graph, std::move(given)) {}

MeasuredReference ReferenceSteps::next(bool float32) {
  const std::uint64_t step = next_++;
  const StoredValues exact_stored = [&](TensorId id, std::uint64_t m) { return exact_.at(id, m); };
  const StoredValues disturbed_stored = [&](TensorId id, std::uint64_t m) { return disturbed_.at(id, m); };
  MeasuredReference reference;
  reference.exact = run_reference(graph_, exact_stored, seed_, step, Precision::kFloat64, stop_);
  if (float32) {
    Beside coarse{reference.exact, {}};
    run_disturbed(graph_, exact_stored, seed_, step, MeasuredReference::kDisturbedBits32, stop_, coarse);
    reference.moved32 = std::move(coarse.moved);
  }
  Beside fine{reference.exact, {}};
  const ReferenceStep disturbed =
      run_disturbed(graph_, disturbed_stored, seed_, step, MeasuredReference::kDisturbedBits64, stop_, fine);
  reference.moved64 = std::move(fine.moved);
  exact_.update(reference.exact);
  disturbed_.update(disturbed);
  return reference;
}

double reference_elements(const OperatorGraph& graph) {
  const auto size = [&](TensorId id) { return static_cast<double>(num_elements(graph.tensor(id).type.shape)); };
  double exact = 0, disturbed = 0;
  for (const TensorId id : graph.tensors().ids()) {
    exact += size(id) * static_cast<double>(graph.micro_batches());
    if (!is_passing(graph, id)) disturbed += size(id);
  }
  const IdVector<TensorId, std::optional<OperatorId>> last = last_readers(graph, false);
  double most = disturbed;
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    std::vector<TensorId> read = op.operands;
    for (const TensorId result : op.results) {
      if (is_passing(graph, result)) disturbed += size(result);
      if (!last[result]) read.push_back(result);
    }
    most = std::max(most, disturbed);
    std::sort(read.begin(), read.end());
    read.erase(std::unique(read.begin(), read.end()), read.end());
    for (const TensorId tensor : read) {
      if (is_passing(graph, tensor) && (!last[tensor] || *last[tensor] == id)) disturbed -= size(tensor);
    }
  }
  return exact + most;
}

std::vector<std::string> operators_without_kernel(const OperatorGraph& graph) {
  std::vector<std::string> names;
  for (const OperatorId id : graph.operators().ids()) {
    if (!is_executable(*graph.operation(id).type)) names.push_back(graph.operators()[id].name);
  }
  return names;
}

}  // namespace shardplan
