// The rule of attention in one line: "b (g r) s d, b g t d, b g t e -> b (g r) s e, b (g r) s; t: normalised; d, e: whole".
// Well-known schemes under many names follow from it as layouts of one operator: sharded heads (Megatron's tensor
// parallelism, or DeepSpeed-Ulysses with the all_to_all of q, k and v before it), sharded queries with gathered k and v
// (Llama 3's context parallelism), sharded keys (flash-decoding).
//
// Sources: Dao et al., FlashAttention, NeurIPS 2022 (running maxima, gradient from lse); Dao, FlashAttention-2, 2023 (half
// of the work if causal); Ainslie et al., GQA, EMNLP 2023 (groups).
#include "operators/families/attention.h"

#include <cmath>
#include <utility>

#include "operators/building/attention_operands.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/families/attention_phases.h"

namespace shardplan {
namespace {

// ---- forward

std::vector<TensorType> infer_attention(const Operation& operation) {
  const AttentionForm form = attention_form(operation);
  check_attention_attributes(operation);
  const DataType type = attention_type(operation, 0);
  const AttentionSizes sizes = attention_sizes(operation, 0);
  check_attention_bias(operation, form, sizes);
  check_attention_positions(operation, form, sizes);
  Shape o = operation.operands[0].shape;
  o[3] = sizes.width;
  return {{std::move(o), type}, {{sizes.batch, sizes.heads(), sizes.queries}, statistics_type(type)}};
}

ShardingRule attention_rule(const Operation& operation) {
  RuleBuilder builder;
  const AttentionWalks walks(builder, operation, attention_sizes(operation, 0));
  builder.set_kind(walks.t, FactorKind::kNormalised);
  builder.set_equal_pieces(walks.t);  // AttentionPart counts them
  builder.operand(walks.q());
  builder.operand(walks.k());
  builder.operand(walks.v());
  const AttentionForm form = attention_form(operation);
  if (form.bias) builder.operand(walks.bias(operation.operands[*form.bias].shape));
  if (form.positions) {
    builder.operand({walks.s});
    builder.operand({walks.t});
  }
  builder.result(walks.o());
  builder.result(walks.lse());
  return builder.build();
}
double forward_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  return attention_flops(operation, extents, attention_form(operation), 1, 1);
}
double forward_read_share(const Operation& operation, std::span<const std::int64_t> extents, std::size_t operand) {
  return attention_read_share(operation, extents, 0, operand);
}
void attention_kernel(const KernelCall& call) {
  const AttentionSizes sizes = attention_sizes(call.operation, 0);
  const AttentionForm form = attention_form(call.operation);
  const LocalAttentionHeads heads(call, sizes, form, call.box("t"), 0);
  const AttentionOptions options = attention_options(call, sizes.depth);
  heads.for_each([&](const AttentionHead& head, std::int64_t b, std::int64_t h, std::int64_t) {
    const ResultRows o = attention_rows(call.results[0], is_bsnd(call.operation), b, h);
    std::vector<double> max(static_cast<std::size_t>(head.queries)), sum(static_cast<std::size_t>(head.queries));
    attend(head, options, o, max.data(), sum.data());
    double* lse = call.results[1].data + (b * heads.num_heads() + h) * head.queries;
    for (std::int64_t i = 0; i < head.queries; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (sum[at] == 0) continue;
      lse[i] = max[at] + std::log(sum[at]);
      for (std::int64_t c = 0; c < head.width; ++c) o.row(i)[c] /= sum[at];
    }
  });
}
// ---- gradient: (dy, q, k, v, o, lse[, dlse][, bias][, q_positions, k_positions])

bool has_dlse(const Operation& operation) {
  return operation.operands.size() > 6 && operation.operands[6].shape.size() == 3;
}
AttentionForm gradient_form(const Operation& operation) {
  return attention_form(operation, 1, has_dlse(operation) ? 7 : 6);
}
bool has_bias_gradient(const Operation& operation) {
  return gradient_form(operation).bias && operation.flag("bias_gradient");
}

std::vector<TensorType> infer_attention_grad(const Operation& operation) {
  (void)attention_type(operation, 1);
  const AttentionSizes sizes = attention_sizes(operation, 1);
  const AttentionForm form = gradient_form(operation);
  check_attention_bias(operation, form, sizes);
  check_attention_positions(operation, form, sizes);
  std::vector<TensorType> results = {operation.operands[1], operation.operands[2], operation.operands[3]};
  for (TensorType& result : results) result.dtype = operation.operands[1].dtype;  // also of k and v of f8
  if (has_bias_gradient(operation)) results.push_back(operation.operands[*form.bias]);
  return results;
}

ShardingRule attention_grad_rule(const Operation& operation) {
  RuleBuilder builder;
  const AttentionWalks walks(builder, operation, attention_sizes(operation, 1));
  const AttentionForm form = gradient_form(operation);
  std::vector<DimensionWalk> summed = {walks.r, walks.s, walks.t};
  if (has_bias_gradient(operation)) {
    const Shape& bias = operation.operands[*form.bias].shape;
    if (bias[0] == 1) summed.push_back(walks.b);
    if (bias[1] == 1) summed.push_back(walks.g);
  }
  for (const DimensionWalk& walk : summed) builder.set_kind(walk, FactorKind::kReduction);
  builder.operand(walks.o());
  builder.operand(walks.q());
  builder.operand(walks.k());
  builder.operand(walks.v());
  builder.operand(walks.o());
  builder.operand(walks.lse());
  if (has_dlse(operation)) builder.operand(walks.lse());
  if (form.bias) builder.operand(walks.bias(operation.operands[*form.bias].shape));
  if (form.positions) {
    builder.operand({walks.s});
    builder.operand({walks.t});
  }
  builder.result(walks.q());
  builder.result(walks.k());
  builder.result(walks.v());
  if (has_bias_gradient(operation)) builder.result(walks.bias(operation.operands[*form.bias].shape));
  return builder.build();
}

/// Five products for the forward pass's two: scores again, dv, dp, dq and dk.
double grad_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  return attention_flops(operation, extents, gradient_form(operation), 3, 2);
}
double grad_read_share(const Operation& operation, std::span<const std::int64_t> extents, std::size_t operand) {
  return attention_read_share(operation, extents, 1, operand);
}

void attention_grad_kernel(const KernelCall& call) {
  const bool bsnd = is_bsnd(call.operation);
  const AttentionSizes sizes = attention_sizes(call.operation, 1);
  const AttentionForm form = gradient_form(call.operation);
  const LocalAttentionHeads heads(call, sizes, form, call.box("t"), 0);
  const AttentionOptions options = attention_options(call, sizes.depth);
  const bool wants_bias = has_bias_gradient(call.operation);
  heads.for_each([&](const AttentionHead& head, std::int64_t b, std::int64_t h, std::int64_t g) {
    const Rows dy = attention_rows(call.operands[0], bsnd, b, h);
    const Rows o = attention_rows(call.operands[4], bsnd, b, h);
    const std::int64_t first = (b * heads.num_heads() + h) * head.queries;
    std::vector<double> delta(static_cast<std::size_t>(head.queries));
    for (std::int64_t i = 0; i < head.queries; ++i) {
      double& sum = delta[static_cast<std::size_t>(i)];
      for (std::int64_t c = 0; c < head.width; ++c) sum += dy.row(i)[c] * o.row(i)[c];
      if (has_dlse(call.operation)) sum -= call.operands[6].data[first + i];
    }
    attend_backward(head, options, dy, call.operands[5].data + first, delta.data(),
                    attention_rows(call.results[0], bsnd, b, h), attention_rows(call.results[1], bsnd, b, g),
                    attention_rows(call.results[2], bsnd, b, g),
                    wants_bias ? attention_bias(call.results[3], b, h) : ResultBias{});
  });
}

Gradients attention_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  const std::optional<TensorId>& dlse = request.result_gradients[1];
  const bool wants_bias = attention_form(request.operation).bias && request.needed[3];
  const bool is_needed = request.needed[0] || request.needed[1] || request.needed[2] || wants_bias;
  if (!is_needed || (!request.result_gradients[0] && !dlse)) return gradients;
  std::vector<TensorId> operands = {gradient_or_zeros(builder, request, 0),
                                    request.operands[0],
                                    request.operands[1],
                                    request.operands[2],
                                    request.results[0],
                                    request.results[1]};
  if (dlse) operands.push_back(*dlse);
  operands.insert(operands.end(), request.operands.begin() + 3, request.operands.end());
  Attributes attributes = request.operation.attributes;
  attributes["bias_gradient"] = wants_bias;
  return needed_gradients(request, builder.add("FlashAttentionGrad", attributes, operands));
}

std::vector<AttributeSpec> gradient_attributes() {
  std::vector<AttributeSpec> attributes = attention_attributes();
  attributes.push_back(flag("bias_gradient", false, "the bias gets one as well"));
  return attributes;
}

std::optional<std::size_t> attention_head_dimension(const Operation& operation) { return is_bsnd(operation) ? 2 : 1; }
}  // namespace

std::vector<OperatorType> attention_operators() {
  std::vector<OperatorType> operators = {
      {.name = "FlashAttention",
       .signature = "q, k, v, bias?, q_positions?, k_positions? -> o, lse",
       .attributes = attention_attributes(),
       .infer = infer_attention,
       .rule_text = "b (g r) s d, b g t d, b g t e, b (g r) s t -> b (g r) s e, b (g r) s; t: normalised; d, e: whole",
       .rule = attention_rule,
       .kernel = attention_kernel,
       .phases = attention_phases,
       .gradient = attention_gradient,
       .work = WorkKind::kContraction,
       .flops = forward_flops,
       .flops_text = "2 b g r s t (d + e), of the pairs that see each other",
       .role = OperatorRole::kAttention,
       .head_dimension = attention_head_dimension,
       .read_share = forward_read_share,
       .notes = "strategy  ((b, n, s, 1), (b, n, t, 1), (b, n, t, 1)); n cuts the heads of k, then those of a group;\n"
                "          s cuts queries and leaves keys whole; t > 1 adds all_reduces of maxima, sums and values\n"
                "          positions, given where the sequence is reordered (zigzag), balance causal work over s\n"
                "          a bias is cut with the batch, heads, queries and keys that it is not the same for\n"
                "memory    lse and no scores are kept for the gradient"},
      {.name = "FlashAttentionGrad",
       .signature = "dy, q, k, v, o, lse, dlse?, bias?, q_positions?, k_positions? -> dq, dk, dv, dbias",
       .attributes = gradient_attributes(),
       .infer = infer_attention_grad,
       .rule_text =
           "b (g r) s e, b (g r) s d, b g t d, b g t e, b (g r) s e, b (g r) s -> b (g r) s d, b g t d, b g t e; "
           "r, s, t: sum; d, e: whole",
       .rule = attention_grad_rule,
       .kernel = attention_grad_kernel,
       .work = WorkKind::kContraction,
       .flops = grad_flops,
       .role = OperatorRole::kAttention,
       .read_share = grad_read_share,
       .is_internal = true,
       .draws_as_forward = true},
  };
  for (OperatorType& phase : attention_phase_operators()) operators.push_back(std::move(phase));
  return operators;
}

}  // namespace shardplan
