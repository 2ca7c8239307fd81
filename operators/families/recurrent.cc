#include "operators/families/recurrent.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"

// Both operators are loops over steps, which cannot be sharded, around loops over samples and channels, which can be
// sharded freely. Gradients keep no states: they run forward again for one channel and then back, so an operator needs
// little memory besides its operands and results.

namespace shardplan {
namespace {

// ---- SelectiveScan: u, delta, a, b, c; in the gradient behind dy

struct ScanSizes {
  std::int64_t batch = 1, steps = 1, channels = 1, states = 1;
};

ScanSizes scan_sizes(const Operation& operation, std::size_t first) {
  const Shape& u = operation.operands[first].shape;
  const Shape& a = operation.operands[first + 2].shape;
  if (u.size() != 3 || a.size() != 2) {
    operand_error(operation, fmt::format("u is {} and a {}; expected [batch, steps, channels] and [channels, states]",
                                         to_string(u), to_string(a)));
  }
  for (std::size_t i = 0; i <= first + 1; ++i) check_shape(operation, i, u);  // dy, u, delta
  check_shape(operation, first + 2, {u[2], a[1]});
  check_shape(operation, first + 3, {u[0], u[1], a[1]});
  check_shape(operation, first + 4, {u[0], u[1], a[1]});
  return {u[0], u[1], u[2], a[1]};
}

std::vector<TensorType> infer_scan(const Operation& operation) {
  (void)scan_sizes(operation, 0);
  return {operation.operands[0]};
}

std::vector<TensorType> infer_scan_grad(const Operation& operation) {
  (void)scan_sizes(operation, 1);
  return {operation.operands.begin() + 1, operation.operands.end()};
}

ShardingRule scan_rule(const Operation& operation) {
  const ScanSizes sizes = scan_sizes(operation, 0);
  RuleBuilder builder;
  const DimensionWalk b = builder.add("b", sizes.batch), d = builder.add("d", sizes.channels);
  builder.operand({b, whole(), d});
  builder.operand({b, whole(), d});
  builder.operand({d, whole()});
  builder.operand({b, whole(), whole()});
  builder.operand({b, whole(), whole()});
  builder.result({b, whole(), d});
  return builder.build();
}

ShardingRule scan_grad_rule(const Operation& operation) {
  const ScanSizes sizes = scan_sizes(operation, 1);
  RuleBuilder builder;
  const DimensionWalk b = builder.add("b", sizes.batch, FactorKind::kReduction);
  const DimensionWalk d = builder.add("d", sizes.channels, FactorKind::kReduction);
  const std::vector<TensorWalk> walks = {
      {b, whole(), d}, {b, whole(), d}, {d, whole()}, {b, whole(), whole()}, {b, whole(), whole()}};
  builder.operand({b, whole(), d});
  for (const TensorWalk& walk : walks) builder.operand(walk);
  for (const TensorWalk& walk : walks) builder.result(walk);
  return builder.build();
}

/// Local sizes and operands of one call.
struct Scan {
  std::int64_t batch, steps, channels, states;
  const double *u, *delta, *a, *b, *c;

  Scan(const KernelCall& call, std::size_t first)
      : batch(call.operands[first].shape[0]),
        steps(call.operands[first].shape[1]),
        channels(call.operands[first].shape[2]),
        states(call.operands[first + 2].shape[1]),
        u(call.operands[first].data),
        delta(call.operands[first + 1].data),
        a(call.operands[first + 2].data),
        b(call.operands[first + 3].data),
        c(call.operands[first + 4].data) {}

  std::int64_t row(std::int64_t sample, std::int64_t step) const { return sample * steps + step; }
};

void scan_kernel(const KernelCall& call) {
  const Scan scan(call, 0);
  for (std::int64_t sample = 0; sample < scan.batch; ++sample) {
    for (std::int64_t d = 0; d < scan.channels; ++d) {
      std::vector<double> state(static_cast<std::size_t>(scan.states), 0.0);
      for (std::int64_t l = 0; l < scan.steps; ++l) {
        const std::int64_t row = scan.row(sample, l), at = row * scan.channels + d;
        for (std::int64_t n = 0; n < scan.states; ++n) {
          double& value = state[static_cast<std::size_t>(n)];
          value = std::exp(scan.delta[at] * scan.a[d * scan.states + n]) * value +
                  scan.delta[at] * scan.b[row * scan.states + n] * scan.u[at];
          call.results[0].data[at] += scan.c[row * scan.states + n] * value;
        }
      }
    }
  }
}

/// Forward again, keeping the states of one channel and one n; then back with the gradient of the state.
void scan_grad_kernel(const KernelCall& call) {
  const Scan scan(call, 1);
  const double* dy = call.operands[0].data;
  double *du = call.results[0].data, *ddelta = call.results[1].data, *da = call.results[2].data,
         *db = call.results[3].data, *dc = call.results[4].data;
  std::vector<double> states(static_cast<std::size_t>(scan.steps) + 1);
  for (std::int64_t sample = 0; sample < scan.batch; ++sample) {
    for (std::int64_t d = 0; d < scan.channels; ++d) {
      for (std::int64_t n = 0; n < scan.states; ++n) {
        const double a = scan.a[d * scan.states + n];
        states[0] = 0;
        for (std::int64_t l = 0; l < scan.steps; ++l) {
          const std::int64_t row = scan.row(sample, l), at = row * scan.channels + d;
          const auto i = static_cast<std::size_t>(l);
          states[i + 1] =
              std::exp(scan.delta[at] * a) * states[i] + scan.delta[at] * scan.b[row * scan.states + n] * scan.u[at];
        }
        double dstate = 0;
        for (std::int64_t l = scan.steps; l-- > 0;) {
          const std::int64_t row = scan.row(sample, l), at = row * scan.channels + d, of_state = row * scan.states + n;
          const auto i = static_cast<std::size_t>(l);
          const double decay = std::exp(scan.delta[at] * a);
          dc[of_state] += dy[at] * states[i + 1];
          dstate += dy[at] * scan.c[of_state];
          du[at] += dstate * scan.delta[at] * scan.b[of_state];
          db[of_state] += dstate * scan.delta[at] * scan.u[at];
          ddelta[at] += dstate * (scan.b[of_state] * scan.u[at] + decay * a * states[i]);
          da[d * scan.states + n] += dstate * decay * scan.delta[at] * states[i];
          dstate *= decay;
        }
      }
    }
  }
}

Gradients scan_gradient(GradientBuilder& builder, const GradientRequest& request) {
  bool is_needed = false;
  for (const bool needed : request.needed) is_needed |= needed;
  if (!request.result_gradients[0] || !is_needed) return no_gradients(request);
  std::vector<TensorId> operands = {*request.result_gradients[0]};
  operands.insert(operands.end(), request.operands.begin(), request.operands.end());
  return needed_gradients(request, builder.add("SelectiveScanGrad", {}, operands));
}

/// `each` for every sample, step, channel and state.
double state_flops(const Operation& operation, std::span<const std::int64_t> extents, double each) {
  const ScanSizes sizes = scan_sizes(operation, operation.operands.size() - 5);
  return each * static_cast<double>(extents[*operation.rule.find("b")]) *
         static_cast<double>(extents[*operation.rule.find("d")]) * static_cast<double>(sizes.steps) *
         static_cast<double>(sizes.states);
}
double scan_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  return state_flops(operation, extents, 8);
}
double scan_grad_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  return state_flops(operation, extents, 24);
}

// ---- LSTMCell: x, h, c, weight_x, weight_h, bias; in the gradient behind dh and dc

struct CellSizes {
  std::int64_t batch = 1, inputs = 1, outputs = 1;
};

CellSizes cell_sizes(const Operation& operation, std::size_t first) {
  const Shape& x = operation.operands[first].shape;
  const Shape& h = operation.operands[first + 1].shape;
  if (x.size() != 2 || h.size() != 2) {
    operand_error(operation, fmt::format("x is {} and h {}; expected [batch, inputs] and [batch, outputs]",
                                         to_string(x), to_string(h)));
  }
  for (std::size_t i = 0; i < first; ++i) check_shape(operation, i, h);  // dh, dc
  check_shape(operation, first + 1, {x[0], h[1]});
  check_shape(operation, first + 2, h);
  check_shape(operation, first + 3, {4, h[1], x[1]});
  check_shape(operation, first + 4, {4, h[1], h[1]});
  check_shape(operation, first + 5, {4, h[1]});
  return {x[0], x[1], h[1]};
}

std::vector<TensorType> infer_cell(const Operation& operation) {
  (void)cell_sizes(operation, 0);
  return {operation.operands[1], operation.operands[2]};
}

std::vector<TensorType> infer_cell_grad(const Operation& operation) {
  (void)cell_sizes(operation, 2);
  return {operation.operands.begin() + 2, operation.operands.end()};
}

/// The walks of x, h, c, weight_x, weight_h and bias.
std::vector<TensorWalk> cell_walks(const DimensionWalk& b, const DimensionWalk& o) {
  return {{b, whole()}, {b, whole()}, {b, o}, {whole(), o, whole()}, {whole(), o, whole()}, {whole(), o}};
}

ShardingRule cell_rule(const Operation& operation) {
  const CellSizes sizes = cell_sizes(operation, 0);
  RuleBuilder builder;
  const DimensionWalk b = builder.add("b", sizes.batch), o = builder.add("o", sizes.outputs);
  for (const TensorWalk& walk : cell_walks(b, o)) builder.operand(walk);
  builder.result({b, o});
  builder.result({b, o});
  return builder.build();
}

ShardingRule cell_grad_rule(const Operation& operation) {
  const CellSizes sizes = cell_sizes(operation, 2);
  RuleBuilder builder;
  const DimensionWalk b = builder.add("b", sizes.batch, FactorKind::kReduction);
  const DimensionWalk o = builder.add("o", sizes.outputs, FactorKind::kReduction);
  builder.operand({b, o});
  builder.operand({b, o});
  for (const TensorWalk& walk : cell_walks(b, o)) builder.operand(walk);
  for (const TensorWalk& walk : cell_walks(b, o)) builder.result(walk);
  return builder.build();
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// The local operands of the cell and its gates.
struct Cell {
  const OperandView &x, &h, &c, &weight_x, &weight_h, &bias;

  Cell(const KernelCall& call, std::size_t first)
      : x(call.operands[first]),
        h(call.operands[first + 1]),
        c(call.operands[first + 2]),
        weight_x(call.operands[first + 3]),
        weight_h(call.operands[first + 4]),
        bias(call.operands[first + 5]) {}

  std::int64_t batch() const { return c.shape[0]; }
  std::int64_t outputs() const { return c.shape[1]; }  // here
  std::int64_t row(std::int64_t gate, std::int64_t o) const { return gate * outputs() + o; }

  /// Input, forget, candidate, output; after their functions.
  std::array<double, 4> gates(std::int64_t sample, std::int64_t o) const {
    std::array<double, 4> values{};
    for (std::int64_t gate = 0; gate < 4; ++gate) {
      double sum = bias.data[row(gate, o)];
      for (std::int64_t i = 0; i < x.shape[1]; ++i) {
        sum += weight_x.data[row(gate, o) * x.shape[1] + i] * x.data[sample * x.shape[1] + i];
      }
      for (std::int64_t i = 0; i < h.shape[1]; ++i) {
        sum += weight_h.data[row(gate, o) * h.shape[1] + i] * h.data[sample * h.shape[1] + i];
      }
      values[static_cast<std::size_t>(gate)] = gate == 2 ? std::tanh(sum) : logistic(sum);
    }
    return values;
  }
};

void cell_kernel(const KernelCall& call) {
  const Cell cell(call, 0);
  for (std::int64_t sample = 0; sample < cell.batch(); ++sample) {
    for (std::int64_t o = 0; o < cell.outputs(); ++o) {
      const auto [input, forget, candidate, output] = cell.gates(sample, o);
      const std::int64_t at = sample * cell.outputs() + o;
      const double c = forget * cell.c.data[at] + input * candidate;
      call.results[0].data[at] = output * std::tanh(c);
      call.results[1].data[at] = c;
    }
  }
}

void cell_grad_kernel(const KernelCall& call) {
  const Cell cell(call, 2);
  const std::int64_t inputs = cell.x.shape[1], states = cell.h.shape[1];
  for (std::int64_t sample = 0; sample < cell.batch(); ++sample) {
    for (std::int64_t o = 0; o < cell.outputs(); ++o) {
      const auto [input, forget, candidate, output] = cell.gates(sample, o);
      const std::int64_t at = sample * cell.outputs() + o;
      const double tanh_c = std::tanh(forget * cell.c.data[at] + input * candidate);
      const double dh = call.operands[0].data[at];
      const double dc = call.operands[1].data[at] + dh * output * (1 - tanh_c * tanh_c);
      call.results[2].data[at] = dc * forget;
      const std::array<double, 4> slopes = {
          dc * candidate * input * (1 - input), dc * cell.c.data[at] * forget * (1 - forget),
          dc * input * (1 - candidate * candidate), dh * tanh_c * output * (1 - output)};
      for (std::int64_t gate = 0; gate < 4; ++gate) {
        const double slope = slopes[static_cast<std::size_t>(gate)];
        const std::int64_t row = cell.row(gate, o);
        call.results[5].data[row] += slope;
        for (std::int64_t i = 0; i < inputs; ++i) {
          call.results[0].data[sample * inputs + i] += slope * cell.weight_x.data[row * inputs + i];
          call.results[3].data[row * inputs + i] += slope * cell.x.data[sample * inputs + i];
        }
        for (std::int64_t i = 0; i < states; ++i) {
          call.results[1].data[sample * states + i] += slope * cell.weight_h.data[row * states + i];
          call.results[4].data[row * states + i] += slope * cell.h.data[sample * states + i];
        }
      }
    }
  }
}

Gradients cell_gradient(GradientBuilder& builder, const GradientRequest& request) {
  bool is_needed = false;
  for (const bool needed : request.needed) is_needed |= needed;
  if ((!request.result_gradients[0] && !request.result_gradients[1]) || !is_needed) return no_gradients(request);
  std::vector<TensorId> operands = {gradient_or_zeros(builder, request, 0), gradient_or_zeros(builder, request, 1)};
  operands.insert(operands.end(), request.operands.begin(), request.operands.end());
  return needed_gradients(request, builder.add("LSTMCellGrad", {}, operands));
}

double product_flops(const Operation& operation, std::span<const std::int64_t> extents, double each) {
  const CellSizes sizes = cell_sizes(operation, operation.operands.size() - 6);
  return each * static_cast<double>(extents[*operation.rule.find("b")]) *
         static_cast<double>(extents[*operation.rule.find("o")]) * 4 *
         static_cast<double>(sizes.inputs + sizes.outputs);
}
double cell_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  return product_flops(operation, extents, 2);
}
double cell_grad_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  return product_flops(operation, extents, 6);
}

}  // namespace

std::vector<OperatorType> recurrent_operators() {
  return {
      {.name = "SelectiveScan",
       .signature = "u, delta, a, b, c -> y",
       .infer = infer_scan,
       .rule_text = "b l d, b l d, d n, b l n, b l n -> b l d; l, n: whole",
       .rule = scan_rule,
       .linear = {{"u"}, {"c"}},
       .kernel = scan_kernel,
       .gradient = scan_gradient,
       .flops = scan_flops,
       .flops_text = "8 b l d n"},
      {.name = "SelectiveScanGrad",
       .signature = "dy, u, delta, a, b, c -> du, ddelta, da, db, dc",
       .infer = infer_scan_grad,
       .rule_text = "b l d, b l d, b l d, d n, b l n, b l n -> b l d, b l d, d n, b l n, b l n; b, d: sum; l, n: whole",
       .rule = scan_grad_rule,
       .linear = {{"dy"}},
       .kernel = scan_grad_kernel,
       .flops = scan_grad_flops,
       .is_internal = true},
      {.name = "LSTMCell",
       .signature = "x, h, c, weight_x, weight_h, bias -> y, state",
       .infer = infer_cell,
       .rule_text = "b i, b j, b o, q o i, q o j, q o -> b o, b o; i, j, q: whole",
       .rule = cell_rule,
       .kernel = cell_kernel,
       .gradient = cell_gradient,
       .work = WorkKind::kContraction,
       .flops = cell_flops,
       .flops_text = "8 b o (i + j)"},
      {.name = "LSTMCellGrad",
       .signature = "dy, dstate, x, h, c, weight_x, weight_h, bias -> dx, dh, dc, dweight_x, dweight_h, dbias",
       .infer = infer_cell_grad,
       .rule_text =
           "b o, b o, b i, b j, b o, q o i, q o j, q o -> b i, b j, b o, q o i, q o j, q o; b, o: sum; i, j, q: whole",
       .rule = cell_grad_rule,
       .linear = {{"dy", "dstate"}},
       .kernel = cell_grad_kernel,
       .work = WorkKind::kContraction,
       .flops = cell_grad_flops,
       .is_internal = true},
  };
}

}  // namespace shardplan
