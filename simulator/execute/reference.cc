#include "simulator/execute/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "base/random.h"
#include "operators/phases.h"

namespace shardplan {

namespace {

/// Called with every number right after it is given or computed, as those of one tensor.
struct Disturbance {
  std::function<void(TensorId, TensorValues&)> of_tensor;
  /// What phases of an operator leave to the next; may be empty.
  std::function<void(OperatorId, std::size_t value, DataType, std::span<double>)> between_phases = {};
};

/// `adds`: to what the results hold.
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
    between = [&](std::size_t value, DataType dtype, std::span<double> values) {
      disturb.between_phases(id, value, dtype, values);
    };
  }
  run_operation({operation, boxes, operands, results, seed}, between);
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    TensorValues& values = tensors[op.results[i]];
    for (std::size_t k = 0; k < before[i].size(); ++k) values[k] += before[i][k];
    disturb.of_tensor(op.results[i], values);
  }
}

ReferenceStep run_step(const OperatorGraph& graph, const StoredValues& stored, std::uint64_t seed, std::uint64_t step,
                       const std::stop_token& stop, const Disturbance& disturb) {
  ReferenceStep run;
  run.tensors.resize(graph.tensors().size());
  const auto count = static_cast<std::uint64_t>(graph.micro_batches());
  const auto give = [&](TensorId id, std::uint64_t micro_batch) {
    const GraphTensor& tensor = graph.tensor(id);
    const bool is_constant = tensor.kind == TensorKind::kConstant;
    run.tensors[id] = is_constant ? draw_tensor(graph, id, seed, step) : stored(id, micro_batch);
    disturb.of_tensor(id, run.tensors[id]);
  };
  for (const TensorId id : graph.tensors().ids()) {
    if (graph.tensor(id).kind != TensorKind::kResult) give(id, step * count);
  }
  for (std::uint64_t m = 0; m < count; ++m) {
    const std::uint64_t micro_batch = step * count + m;
    const bool is_last = m + 1 == count;
    for (const OperatorId id : graph.operators().ids()) {
      if (stop.stop_requested()) throw Stopped();
      if (!is_last && !graph.is_in_micro_batch(id)) continue;
      const bool adds = m > 0 && graph.operation(id).type->accumulates;
      run_operator(graph, id, operator_seed(graph, id, seed, micro_batch), adds, disturb, run.tensors);
    }
    if (is_last) break;
    run.earlier.push_back(run.tensors);
    for (const TensorId id : graph.tensors().ids()) {
      const GraphTensor& tensor = graph.tensor(id);
      if (tensor.kind == TensorKind::kInput) give(id, micro_batch + 1);
      if (tensor.updates && graph.is_in_micro_batch(*tensor.producer)) run.tensors[*tensor.updates] = run.tensors[id];
    }
  }
  // What does not change is not held again.
  for (IdVector<TensorId, TensorValues>& earlier : run.earlier) {
    for (const TensorId id : graph.tensors().ids()) {
      if (earlier[id] == run.tensors[id]) earlier[id] = TensorValues();
    }
  }
  return run;
}

/// Of the bits that are disturbed, the first so many are only in the results of sums.
constexpr int kBitsOfSums = 4;

/// Whether the order of summands, which sharding changes, may round this tensor in another way.
bool is_summed(const OperatorGraph& graph, TensorId id) {
  const std::optional<OperatorId>& producer = graph.tensor(id).producer;
  if (!producer) return false;
  const std::vector<Factor>& factors = graph.operation(*producer).rule.factors;
  return std::any_of(factors.begin(), factors.end(), [](const Factor& factor) {
    const bool is_sum = factor.kind == FactorKind::kReduction && factor.reduction == Reduction::kSum;
    return is_sum || factor.kind == FactorKind::kNormalised;
  });
}

/// What recomputation makes a second time is added up in the same order.
TensorId original(const OperatorGraph& graph, TensorId id) {
  const GraphOperator& op = graph.operators()[*graph.tensor(id).producer];
  if (!op.is_copy) return id;
  const auto result = std::find(op.results.begin(), op.results.end(), id) - op.results.begin();
  return graph.operators()[*op.forward].results[static_cast<std::size_t>(result)];
}

/// By tensor: the largest distance, numbers that stand for infinity left out.
IdVector<TensorId, double> distances(const ReferenceStep& a, const ReferenceStep& b) {
  IdVector<TensorId, double> result(a.tensors.size(), 0.0);
  for (const TensorId id : a.tensors.ids()) {
    for (std::size_t m = 0; m <= a.earlier.size(); ++m) {
      const TensorValues& left = a.at(id, m);
      const TensorValues& right = b.at(id, m);
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (std::abs(left[i]) >= kStandsForInfinity) continue;
        result[id] = std::max(result[id], std::abs(left[i] - right[i]));
      }
    }
  }
  return result;
}

}  // namespace

ReferenceStep run_reference(const OperatorGraph& graph, const StoredValues& stored, std::uint64_t seed,
                            std::uint64_t step, Precision precision, const std::stop_token& stop) {
  return run_step(graph, stored, seed, step, stop, {[&](TensorId id, TensorValues& values) {
                    round_to(precision, graph.tensor(id).type.dtype, values);
                  }});
}

ReferenceStep run_disturbed_reference(const OperatorGraph& graph, const StoredValues& stored, std::uint64_t seed,
                                      std::uint64_t step, int bits, const std::stop_token& stop) {
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
  // On a mesh the statistics of a norm are rounded and added up in another order too: where what is made of them
  // cancels, as in the gradient of a norm of two numbers, that is all that is left.
  const auto between_phases = [&](OperatorId id, std::size_t value, DataType dtype, std::span<double> values) {
    if (!is_floating(dtype)) return;
    const GraphOperator& op = graph.operators()[id];
    const std::uint64_t name = (op.is_copy ? *op.forward : id).value() * 64 + value + 1;
    disturb(values, mix(~seed ^ mix(name)));
  };
  return run_step(graph, stored, seed, step, stop, {of_tensor, between_phases});
}

ReferenceSteps::Stored::Stored(const OperatorGraph& graph, std::uint64_t seed) : graph_(&graph), seed_(seed) {
  for (const TensorId id : graph.tensors().ids()) {
    const TensorKind kind = graph.tensor(id).kind;
    if (kind == TensorKind::kParameter || kind == TensorKind::kState) values_[id] = draw_tensor(graph, id, seed, 0);
  }
}

TensorValues ReferenceSteps::Stored::at(TensorId id, std::uint64_t micro_batch) const {
  const auto found = values_.find(id);
  return found != values_.end() ? found->second : draw_tensor(*graph_, id, seed_, micro_batch);
}

void ReferenceSteps::Stored::update(const ReferenceStep& run) {
  for (const TensorId id : graph_->tensors().ids()) {
    const GraphTensor& tensor = graph_->tensor(id);
    if (tensor.updates) values_[*tensor.updates] = run.tensors[id];
  }
}

ReferenceSteps::ReferenceSteps(const OperatorGraph& graph, std::uint64_t seed, std::stop_token stop)
    : graph_(graph), seed_(seed), stop_(std::move(stop)), exact_(graph, seed), disturbed_(graph, seed) {}

MeasuredReference ReferenceSteps::next(bool float32) {
  const std::uint64_t step = next_++;
  const StoredValues exact_stored = [&](TensorId id, std::uint64_t m) { return exact_.at(id, m); };
  const StoredValues disturbed_stored = [&](TensorId id, std::uint64_t m) { return disturbed_.at(id, m); };
  MeasuredReference reference;
  reference.exact = run_reference(graph_, exact_stored, seed_, step, Precision::kFloat64, stop_);
  if (float32) {
    reference.moved32 = distances(reference.exact, run_disturbed_reference(graph_, exact_stored, seed_, step,
                                                                           MeasuredReference::kDisturbedBits32, stop_));
  }
  const ReferenceStep disturbed =
      run_disturbed_reference(graph_, disturbed_stored, seed_, step, MeasuredReference::kDisturbedBits64, stop_);
  reference.moved64 = distances(reference.exact, disturbed);
  exact_.update(reference.exact);
  disturbed_.update(disturbed);
  return reference;
}

std::vector<std::string> operators_without_kernel(const OperatorGraph& graph) {
  std::vector<std::string> names;
  for (const OperatorId id : graph.operators().ids()) {
    if (!is_executable(*graph.operation(id).type)) names.push_back(graph.operators()[id].name);
  }
  return names;
}

}  // namespace shardplan
