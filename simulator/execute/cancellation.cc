#include "simulator/execute/cancellation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "operators/phases.h"
#include "simulator/execute/data.h"

namespace shardplan {
namespace {

constexpr double kSmall = 0x1p-8;

/// The largest absolute value, not counting numbers that stand for infinity.
double largest(std::span<const double> values) {
  double result = 0;
  for (const double value : values) {
    const double size = std::abs(value);
    result = size < kStandsForInfinity && size > result ? size : result;
  }
  return result;
}

std::size_t count(const Shape& shape) { return static_cast<std::size_t>(num_elements(shape)); }

/// Whether the terms an operator adds up may have cancelled in all of its results. Small operands are examined first:
/// one that is not large compared with the results settles the question.
bool is_suspicious(const KernelCall& call) {
  double of_results = 0;
  bool has_result = false;
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    if (!is_floating(call.operation.results[i].dtype)) continue;
    has_result = true;
    of_results = std::max(of_results, largest({call.results[i].data, count(call.results[i].shape)}));
  }
  if (!has_result) return false;
  std::vector<std::size_t> by_size;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    if (is_floating(call.operation.operands[i].dtype)) by_size.push_back(i);
  }
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    return count(call.operands[a].shape) < count(call.operands[b].shape);
  });
  bool has_terms = false;
  for (const std::size_t i : by_size) {
    const double scale = largest({call.operands[i].data, count(call.operands[i].shape)});
    if (scale > 0 && of_results > scale * kSmall) return false;
    has_terms = has_terms || scale > 0;
  }
  return has_terms;
}

/// The results if every element of the rounded operands is off by between error / 2 and error of its value, up or down.
std::vector<TensorValues> run_with_errors(const KernelCall& call, double error, std::uint64_t seed,
                                          const std::function<bool(std::size_t)>& is_rounded) {
  std::vector<TensorValues> moved(call.operands.size());
  std::vector<OperandView> operands(call.operands.begin(), call.operands.end());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!is_floating(call.operation.operands[i].dtype) || !is_rounded(i)) continue;
    moved[i].assign(operands[i].data, operands[i].data + count(operands[i].shape));
    Random random(mix(seed ^ mix(i)));
    for (double& value : moved[i]) {
      const double part = random.unit() - 0.5;
      value += value * error * (part < 0 ? part - 0.5 : part + 0.5);
    }
    operands[i].data = moved[i].data();
  }
  std::vector<TensorValues> values;
  std::vector<ResultView> results(call.results.begin(), call.results.end());
  for (ResultView& result : results) {
    values.emplace_back(count(result.shape), 0.0);
    result.data = values.back().data();
  }
  run_operation({call.operation, call.boxes, operands, results, call.seed});
  return values;
}

}  // namespace

void add_errors_of_terms(const KernelCall& call, double error, std::uint64_t seed,
                         const std::function<bool(std::size_t)>& is_rounded) {
  if (!is_suspicious(call)) return;
  // The results in `call` may come from other numbers: values between its phases may have been disturbed.
  const std::vector<TensorValues> none = run_with_errors(call, 0, seed, is_rounded);
  const std::vector<TensorValues> one = run_with_errors(call, error, seed, is_rounded);
  const std::vector<TensorValues> two = run_with_errors(call, 2 * error, seed, is_rounded);
  for (std::size_t r = 0; r < one.size(); ++r) {
    if (!is_floating(call.operation.results[r].dtype)) continue;
    double* const result = call.results[r].data;
    for (std::size_t i = 0; i < one[r].size(); ++i) {
      const double change = one[r][i] - none[r][i];
      const bool is_smooth = std::abs(two[r][i] - none[r][i]) >= 1.5 * std::abs(change);
      if (is_smooth && std::isfinite(change)) result[i] += change;
    }
  }
}

bool holds_small_integers(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::abs(value) < 2048 && value == std::trunc(value); });
}

}  // namespace shardplan
