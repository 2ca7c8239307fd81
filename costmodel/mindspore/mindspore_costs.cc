#include "costmodel/mindspore/mindspore_costs.h"

#include <algorithm>

#include "base/error.h"

namespace shardplan {
namespace {

/// Gradients of parameters that are not sharded over all devices are summed: their slices.
double gradients(const std::vector<MindSporeTensor>& operands, std::int64_t devices) {
  double bytes = 0;
  for (const MindSporeTensor& operand : operands) {
    if (operand.is_parameter && operand.pieces() != devices) bytes += operand.slice_bytes();
  }
  return bytes;
}

double slices(const std::vector<MindSporeTensor>& operands) {
  double bytes = 0;
  for (const MindSporeTensor& operand : operands) bytes += operand.slice_bytes();
  return bytes;
}

/// The cost of a collective of `bytes` bytes.
double practical(double bytes, const MindSporeWeights& weights) {
  if (bytes <= 0) return 0;
  return bytes <= weights.threshold ? weights.constant : bytes + weights.bias;
}

}  // namespace

double MindSporeTensor::slice_bytes() const {
  double elements = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) elements *= static_cast<double>(shape[d] / cuts[d]);
  return elements * static_cast<double>(element_bytes);
}

std::int64_t MindSporeTensor::pieces() const {
  std::int64_t product = 1;
  for (const std::int64_t cut : cuts) product *= cut;
  return product;
}

double MindSporeCost::objective(const MindSporeWeights& weights) const {
  return weights.alpha * computation + weights.beta * communication_with_partial_parameter;
}

MindSporeCost operator+(const MindSporeCost& a, const MindSporeCost& b) {
  return {a.computation + b.computation, a.communication + b.communication,
          a.communication_without_parameter + b.communication_without_parameter,
          a.communication_with_partial_parameter + b.communication_with_partial_parameter, a.memory + b.memory};
}

MindSporeFigures mindspore_figures(const MindSporeOperator& op, std::int64_t devices) {
  using Family = MindSporeFamily;
  const std::vector<MindSporeTensor>& in = op.operands;
  const double out = op.result.slice_bytes();
  MindSporeFigures figures;
  switch (op.family) {
    case Family::kMatMul: {
      const double partial = in[0].cuts.back() > 1 ? out : 0;  // transpose_a is ignored
      figures.forward_communication = partial;
      figures.backward_communication = gradients({in[1]}, devices);
      figures.forward_computation = slices(in) + partial;
      figures.backward_computation = figures.backward_communication;
      break;
    }
    case Family::kBatchParallel:
    case Family::kActivation:
      figures.backward_communication = gradients(in, devices);
      figures.forward_computation = slices(in);
      break;
    case Family::kSoftmax:
      figures.backward_communication = gradients(in, devices);
      figures.forward_computation = out;
      break;
    case Family::kArithmetic:
      figures.backward_communication = gradients(in, devices);
      figures.forward_computation = slices(in);
      figures.backward_computation = figures.backward_communication;
      break;
    case Family::kReduce:
    case Family::kReduceMean: {
      const double partial = op.reduces_cut_dimension ? out : 0;
      figures.forward_communication = partial;
      figures.backward_communication = gradients(in, devices);
      figures.forward_computation = slices(in) + (op.family == Family::kReduceMean ? 2 : 1) * partial;
      break;
    }
    case Family::kUnlearned:
      figures.forward_computation = slices(in);
      break;
    case Family::kDropout:
      figures.backward_communication = gradients(in, devices);
      figures.forward_computation = 1.125 * slices(in);
      break;
    case Family::kGather: {
      const double table = in[0].slice_bytes();
      const double indices = in[1].slice_bytes();
      figures.backward_communication = gradients(in, devices);
      figures.forward_computation = op.cuts_gather_axis ? 3 * table + 7 * indices : table + indices;
      if (op.cuts_gather_axis) {
        double rest = 1;
        for (std::size_t d = 1; d < in[0].shape.size(); ++d) rest *= static_cast<double>(in[0].shape[d]);
        figures.forward_communication = indices * rest;
        figures.backward_computation = 2 * out + 6 * indices;
      }
      break;
    }
    case Family::kNothing:
      break;
  }
  return figures;
}

MindSporeCost mindspore_operator_cost(const MindSporeOperator& op, std::int64_t devices,
                                      const MindSporeWeights& weights) {
  const MindSporeFigures figures = mindspore_figures(op, devices);
  MindSporeCost cost;
  cost.computation = figures.forward_computation;
  cost.communication = figures.forward_communication + figures.backward_communication;
  cost.communication_without_parameter = figures.forward_communication;
  const bool is_data_parallel =
      !op.operands.empty() && !op.operands[0].cuts.empty() && op.operands[0].cuts[0] == devices;
  if (is_data_parallel) {
    cost.computation -= 1;
    for (double* figure : {&cost.communication, &cost.communication_without_parameter}) {
      if (*figure > 1) *figure -= 1;
    }
  }
  const double of_gradients = cost.communication - cost.communication_without_parameter;
  cost.communication_without_parameter = practical(cost.communication_without_parameter, weights);
  cost.communication = cost.communication_without_parameter + of_gradients;
  cost.communication_with_partial_parameter = cost.communication_without_parameter + weights.gamma * of_gradients;
  return cost;
}

std::optional<MindSporeCost> mindspore_edge_cost(const MindSporeTensorLayout& from, const MindSporeTensorLayout& to,
                                                 Bytes element_bytes, bool is_bool, const MindSporeWeights& weights) {
  const MindSporeRedistributionCost elements = mindspore_edge_cost(from, to);
  if (is_bool && elements.communication() > 0) return std::nullopt;
  const double size = static_cast<double>(element_bytes);
  MindSporeCost cost;
  cost.computation = elements.computation * size;
  cost.communication = practical(elements.forward * size, weights) + practical(elements.backward * size, weights);
  cost.communication_without_parameter = cost.communication;
  cost.communication_with_partial_parameter = cost.communication;
  cost.memory = elements.memory;
  return cost;
}

std::vector<MindSporeCost> simplify(std::vector<MindSporeCost> costs) {
  std::stable_sort(costs.begin(), costs.end(),
                   [](const auto& a, const auto& b) { return a.computation < b.computation; });
  std::vector<MindSporeCost> kept;
  for (const MindSporeCost& cost : costs) {
    if (kept.empty() || cost.communication < kept.back().communication) kept.push_back(cost);
  }
  return kept;
}

std::optional<std::vector<std::size_t>> least_training_time(const std::vector<std::vector<MindSporeCost>>& lists,
                                                            double memory_capacity, const MindSporeWeights& weights) {
  for (const auto& list : lists) {
    if (list.empty()) return std::nullopt;
  }
  std::optional<std::vector<std::size_t>> best;
  double best_objective = 0;
  std::vector<std::size_t> choice(lists.size(), 0);
  while (true) {
    MindSporeCost sum;
    for (std::size_t i = 0; i < lists.size(); ++i) sum = sum + lists[i][choice[i]];
    if (sum.memory <= memory_capacity && (!best || sum.objective(weights) < best_objective)) {
      best = choice;
      best_objective = sum.objective(weights);
    }
    std::size_t digit = lists.size();
    while (digit > 0 && ++choice[digit - 1] == lists[digit - 1].size()) choice[--digit] = 0;
    if (digit == 0) return best;
  }
}

}  // namespace shardplan
