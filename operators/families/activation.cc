#include "operators/families/activation.h"

#include <cmath>
#include <numbers>

#include "operators/building/attributes.h"
#include "operators/building/elementwise.h"

namespace shardplan {
namespace {

double relu(double x) { return 0 < x ? x : 0; }
double relu_slope(double dy, double y) { return 0 < y ? dy : 0; }

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double sigmoid_slope(double dy, double y) { return dy * y * (1 - y); }

double silu(double x) { return x * sigmoid(x); }
double silu_slope(double dy, double x) { return dy * sigmoid(x) * (1 + x * (1 - sigmoid(x))); }

double tangent(double x) { return std::tanh(x); }
double tangent_slope(double dy, double y) { return dy * (1 - y * y); }

constexpr double kTanhScale = 0.7978845608028654;  // sqrt(2 / pi)

void gelu_kernel(const KernelCall& call) {
  const bool by_tanh = call.operation.flag("approximate");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double x = call.operands[0].data[i];
    call.results[0].data[i] = by_tanh ? 0.5 * x * (1 + std::tanh(kTanhScale * (x + 0.044715 * x * x * x)))
                                      : 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  }
}

void gelu_slope(const KernelCall& call) {
  const bool by_tanh = call.operation.flag("approximate");
  const std::int64_t size = num_elements(call.results[0].shape);
  for (std::int64_t i = 0; i < size; ++i) {
    const double dy = call.operands[0].data[i];
    const double x = call.operands[1].data[i];
    double slope = 0;
    if (by_tanh) {
      const double t = std::tanh(kTanhScale * (x + 0.044715 * x * x * x));
      slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kTanhScale * (1 + 3 * 0.044715 * x * x);
    } else {
      slope =
          0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    }
    call.results[0].data[i] = dy * slope;
  }
}

}  // namespace

std::vector<OperatorType> activation_operators() {
  std::vector<OperatorType> table;
  add_function(table, {.name = "ReLU",
                       .kernel = unary<relu>,
                       .slope = binary<relu_slope>,
                       .slope_reads_result = true,
                       .is_monotone = true});
  add_function(table, {.name = "GeLU",
                       .kernel = gelu_kernel,
                       .slope = gelu_slope,
                       .attributes = {flag("approximate", true, "the tanh form, as MindSpore; false: by erf")},
                       .flops = 8,
                       .slope_flops = 16});
  add_function(table, {.name = "SiLU", .kernel = unary<silu>, .slope = binary<silu_slope>});
  add_function(table, {.name = "Sigmoid",
                       .kernel = unary<sigmoid>,
                       .slope = binary<sigmoid_slope>,
                       .slope_reads_result = true,
                       .is_monotone = true});
  add_function(table, {.name = "Tanh",
                       .kernel = unary<tangent>,
                       .slope = binary<tangent_slope>,
                       .slope_reads_result = true,
                       .is_monotone = true});
  return table;
}

}  // namespace shardplan
