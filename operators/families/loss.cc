// Cross-entropy of softmax, as phases: the largest logit of each row, the sum of exponentials, then the loss. The
// gradient keeps the logits and recomputes the two statistics, which is cheaper than keeping the probabilities. Row
// statistics keep the classes as a last dimension of size 1.
#include "operators/families/loss.h"

#include <fmt/format.h>

#include <cmath>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/phase_list.h"
#include "operators/building/rule_builder.h"

namespace shardplan {
namespace {

/// Rows and classes of a local tensor.
struct Rows {
  std::int64_t count = 0;
  std::int64_t classes = 0;

  explicit Rows(const Shape& shape) : count(num_elements(shape) / shape.back()), classes(shape.back()) {}
};

/// Attributes of statistics over the classes.
Attributes over_classes() { return {{"axis", std::vector<std::int64_t>{-1}}}; }
Attributes over_kept_classes() { return {{"axis", std::vector<std::int64_t>{-1}}, {"keep_dims", true}}; }

Shape rows_shape(const Shape& logits) { return Shape(logits.begin(), logits.end() - 1); }

void check_logits(const Operation& operation, const TensorType& logits) {
  if (logits.shape.empty()) operand_error(operation, "logits are a scalar; expected classes in the last dimension");
  if (!is_floating(logits.dtype))
    operand_error(operation, fmt::format("logits are {}; expected a floating type", to_string(logits.dtype)));
}

bool is_reduced(const Operation& operation) { return operation.text("reduction") != "none"; }

Attributes reduction_of(const Operation& operation) { return {{"reduction", operation.text("reduction")}}; }

double reduction_scale(const Operation& operation, const Shape& rows) {
  return operation.text("reduction") == "mean" ? 1.0 / static_cast<double>(num_elements(rows)) : 1.0;
}

/// Walks of logits, rows, and rows with the classes kept as 1.
struct LossWalks {
  TensorWalk logits, rows, kept;

  LossWalks(RuleBuilder& builder, const Shape& shape, FactorKind kind_of_classes)
      : logits(builder.add_positions(shape)) {
    builder.set_kind(logits.back(), kind_of_classes);
    rows.assign(logits.begin(), logits.end() - 1);
    kept = rows;
    kept.push_back(whole());
  }
};

/// The walk of an operand or result by its shape: logits, rows, kept rows or a scalar.
TensorWalk walk_of(const LossWalks& walks, const Shape& logits, const Shape& shape) {
  if (shape == logits) return walks.logits;
  if (shape.size() == logits.size()) return walks.kept;
  return shape.size() + 1 == logits.size() ? walks.rows : TensorWalk{};
}

ShardingRule loss_rule(const Operation& operation, const Shape& logits, FactorKind kind_of_classes,
                       FactorKind kind_of_rows) {
  RuleBuilder builder;
  const LossWalks walks(builder, logits, kind_of_classes);
  for (const DimensionWalk& row : walks.rows) builder.set_kind(row, kind_of_rows);
  for (const TensorType& operand : operation.operands) builder.operand(walk_of(walks, logits, operand.shape));
  for (const TensorType& result : operation.results) builder.result(walk_of(walks, logits, result.shape));
  return builder.build();
}

std::vector<TensorType> infer_cross_entropy(const Operation& operation) {
  const TensorType& logits = operation.operands[0];
  check_logits(operation, logits);
  if (operation.operands[1].shape != logits.shape) {
    operand_error(operation, fmt::format("labels are {}; expected {} as the logits",
                                         to_string(operation.operands[1].shape), to_string(logits.shape)));
  }
  return {{rows_shape(logits.shape), logits.dtype}};
}

ShardingRule cross_entropy_rule(const Operation& operation) {
  return loss_rule(operation, operation.operands[0].shape, FactorKind::kNormalised, FactorKind::kPassThrough);
}

/// The sum over the classes ends in Identity, so that the loss of a row is complete.
Phases cross_entropy_phases(const Operation& operation, std::span<const std::int64_t>) {
  return make_phases(operation, {{"max = ReduceMax(logits)", over_kept_classes()},
                                 {"sum = ExpSum(logits, max)", over_classes()},
                                 {"terms = CrossEntropyTerms(logits, labels, max, sum)"},
                                 {"loss = Identity(terms)"}});
}

/// All gradients are shaped like the logits, the second operand.
std::vector<TensorType> infer_dlogits(const Operation& operation) { return {operation.operands[1]}; }

ShardingRule loss_grad_rule(const Operation& operation) {
  return loss_rule(operation, operation.operands[1].shape, FactorKind::kNormalised, FactorKind::kPassThrough);
}

Phases cross_entropy_grad_phases(const Operation& operation, std::span<const std::int64_t>) {
  return make_phases(operation, {{"max = ReduceMax(logits)", over_kept_classes()},
                                 {"sum = ExpSum(logits, max)", over_classes()},
                                 {"label_sum = ReduceSum(labels)", over_kept_classes()},
                                 {"dlogits = CrossEntropyGradApply(dloss, logits, labels, max, sum, label_sum)"}});
}

std::vector<TensorType> infer_sparse_cross_entropy(const Operation& operation) {
  const TensorType& logits = operation.operands[0];
  check_logits(operation, logits);
  const Shape rows = rows_shape(logits.shape);
  if (operation.operands[1].shape != rows || is_floating(operation.operands[1].dtype)) {
    operand_error(operation,
                  fmt::format("labels are {} {}; expected integers {}", to_string(operation.operands[1].dtype),
                              to_string(operation.operands[1].shape), to_string(rows)));
  }
  const std::string& reduction = operation.text("reduction");
  if (reduction != "mean" && reduction != "sum" && reduction != "none") {
    operand_error(operation, fmt::format("reduction is '{}'; expected mean, sum or none", reduction));
  }
  return {{is_reduced(operation) ? Shape{} : rows, logits.dtype}};
}

ShardingRule sparse_cross_entropy_rule(const Operation& operation) {
  return loss_rule(operation, operation.operands[0].shape, FactorKind::kNormalised,
                   is_reduced(operation) ? FactorKind::kReduction : FactorKind::kPassThrough);
}

Phases sparse_cross_entropy_phases(const Operation& operation, std::span<const std::int64_t>) {
  return make_phases(operation, {{"max = ReduceMax(logits)", over_kept_classes()},
                                 {"sum = ExpSum(logits, max)", over_classes()},
                                 {"picked = SparsePick(logits, labels)"},
                                 {"loss = SparseCrossEntropyApply(max, sum, picked)", reduction_of(operation)}});
}

Phases sparse_cross_entropy_grad_phases(const Operation& operation, std::span<const std::int64_t>) {
  return make_phases(
      operation, {{"max = ReduceMax(logits)", over_kept_classes()},
                  {"sum = ExpSum(logits, max)", over_classes()},
                  {"dlogits = SparseCrossEntropyGradApply(dloss, logits, labels, max, sum)", reduction_of(operation)}});
}

/// (logits, ...) -> a value per row.
std::vector<TensorType> infer_loss_terms(const Operation& operation) {
  return {{rows_shape(operation.operands[0].shape), operation.operands[0].dtype}};
}

ShardingRule loss_terms_rule(const Operation& operation) {
  return loss_rule(operation, operation.operands[0].shape, FactorKind::kReduction, FactorKind::kPassThrough);
}

std::vector<TensorType> infer_reduced_loss(const Operation& operation) {
  return {{is_reduced(operation) ? SharedShape() : operation.operands[2].shape, operation.operands[2].dtype}};
}

ShardingRule reduced_loss_rule(const Operation& operation) {
  Shape kept = operation.operands[2].shape;
  kept.push_back(1);
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions(kept);
  const TensorWalk rows(walk.begin(), walk.end() - 1);
  if (is_reduced(operation)) {
    for (const DimensionWalk& row : rows) builder.set_kind(row, FactorKind::kReduction);
  }
  builder.operand(walk);
  builder.operand(walk);
  builder.operand(rows);
  builder.result(is_reduced(operation) ? TensorWalk{} : rows);
  return builder.build();
}

ShardingRule loss_grad_apply_rule(const Operation& operation) {
  return loss_rule(operation, operation.operands[1].shape, FactorKind::kPassThrough, FactorKind::kPassThrough);
}

/// (logits, labels, max, sum of exponentials) -> the sum over the classes of label * (log(sum) + max - logit).
void cross_entropy_terms_kernel(const KernelCall& call) {
  const Rows rows(call.operands[0].shape);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const double log_sum = std::log(call.operands[3].data[row]) + call.operands[2].data[row];
    for (std::int64_t c = row * rows.classes; c < (row + 1) * rows.classes; ++c) {
      call.results[0].data[row] += call.operands[1].data[c] * (log_sum - call.operands[0].data[c]);
    }
  }
}

/// (dloss, logits, labels, max, sum of exponentials, sum of labels).
void cross_entropy_grad_apply_kernel(const KernelCall& call) {
  const Rows rows(call.operands[1].shape);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t c = row * rows.classes; c < (row + 1) * rows.classes; ++c) {
      const double probability =
          std::exp(call.operands[1].data[c] - call.operands[3].data[row]) / call.operands[4].data[row];
      call.results[0].data[c] =
          call.operands[0].data[row] * (probability * call.operands[5].data[row] - call.operands[2].data[c]);
    }
  }
}

/// (logits, labels) -> the logit of each row's label, 0 where another device has it.
void sparse_pick_kernel(const KernelCall& call) {
  const Rows rows(call.operands[0].shape);
  const Box classes = call.operand_box(0, call.operands[0].shape.size() - 1);
  for (std::int64_t row = 0; row < rows.count; ++row) {
    const double label = call.operands[1].data[row];
    if (!(label >= static_cast<double>(classes.begin) && label < static_cast<double>(classes.end))) continue;
    call.results[0].data[row] =
        call.operands[0].data[row * rows.classes + static_cast<std::int64_t>(label) - classes.begin];
  }
}

/// (max, sum of exponentials, picked logit).
void sparse_cross_entropy_apply_kernel(const KernelCall& call) {
  const double scale = reduction_scale(call.operation, call.operation.operands[2].shape);
  const std::int64_t stride = is_reduced(call.operation) ? 0 : 1;
  const std::int64_t rows = num_elements(call.operands[2].shape);
  for (std::int64_t row = 0; row < rows; ++row) {
    call.results[0].data[row * stride] +=
        scale * (std::log(call.operands[1].data[row]) + call.operands[0].data[row] - call.operands[2].data[row]);
  }
}

/// (dloss, logits, labels, max, sum of exponentials).
void sparse_cross_entropy_grad_apply_kernel(const KernelCall& call) {
  const Rows rows(call.operands[1].shape);
  const Box classes = call.operand_box(1, call.operands[1].shape.size() - 1);
  const double scale = reduction_scale(call.operation, call.operation.operands[2].shape);
  const std::int64_t stride = is_reduced(call.operation) ? 0 : 1;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t c = 0; c < rows.classes; ++c) {
      const std::int64_t at = row * rows.classes + c;
      const double probability =
          std::exp(call.operands[1].data[at] - call.operands[3].data[row]) / call.operands[4].data[row];
      const double label = call.operands[2].data[row] == static_cast<double>(classes.begin + c) ? 1 : 0;
      call.results[0].data[at] = scale * call.operands[0].data[row * stride] * (probability - label);
    }
  }
}

Gradients cross_entropy_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const TensorId dloss = *request.result_gradients[0];
  if (request.needed[0]) {
    gradients[0] = add_one(builder, "SoftmaxCrossEntropyGrad", {dloss, request.operands[0], request.operands[1]});
  }
  if (request.needed[1]) {
    const TensorId log_probability =
        add_one(builder, "LogSoftmax", {request.operands[0]}, {{"axis", std::int64_t{-1}}});
    const TensorId column = add_one(builder, "ExpandDims", {dloss}, {{"axis", std::int64_t{-1}}});
    gradients[1] = add_one(builder, "Neg", {add_one(builder, "Mul", {log_probability, column})});
  }
  return gradients;
}

Gradients sparse_cross_entropy_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dloss) {
    return add_one(builder, "SparseSoftmaxCrossEntropyGrad", {dloss, request.operands[0], request.operands[1]},
                   request.operation.attributes);
  });
}

std::int64_t label_extent(const Operation& operation, std::size_t operand) {
  return operand == 1 ? operation.operands[0].shape.back() : 0;
}

AttributeSpec loss_reduction() { return text("reduction", "mean", "of the rows' losses: mean, sum or none"); }

}  // namespace

std::vector<OperatorType> loss_operators() {
  return {
      {.name = "SoftmaxCrossEntropyWithLogits",
       .signature = "logits, labels -> loss",
       .infer = infer_cross_entropy,
       .rule_text = "... c, ... c -> ...; c: normalised",
       .rule = cross_entropy_rule,
       .phases = cross_entropy_phases,
       .gradient = cross_entropy_gradient,
       .flops_per_point = 5,
       .notes = "result    one loss per row; labels are probabilities"},
      {.name = "CrossEntropyTerms",
       .signature = "logits, labels, max, sum -> loss",
       .infer = infer_loss_terms,
       .rule_text = "... c, ... c, ... 1, ... 1 -> ...; c: sum",
       .rule = loss_terms_rule,
       .kernel = cross_entropy_terms_kernel,
       .flops_per_point = 2,
       .is_internal = true},
      {.name = "SoftmaxCrossEntropyGrad",
       .signature = "dloss, logits, labels -> dlogits",
       .infer = infer_dlogits,
       .rule_text = "..., ... c, ... c -> ... c; c: normalised",
       .rule = loss_grad_rule,
       .phases = cross_entropy_grad_phases,
       .flops_per_point = 6,
       .is_internal = true},
      {.name = "CrossEntropyGradApply",
       .signature = "dloss, logits, labels, max, sum, label_sum -> dlogits",
       .infer = infer_dlogits,
       .rule_text = "..., ... c, ... c, ... 1, ... 1, ... 1 -> ... c",
       .rule = loss_grad_apply_rule,
       .kernel = cross_entropy_grad_apply_kernel,
       .flops_per_point = 5,
       .is_internal = true},
      {.name = "SparseSoftmaxCrossEntropyWithLogits",
       .signature = "logits, labels -> loss",
       .attributes = {loss_reduction()},
       .infer = infer_sparse_cross_entropy,
       .rule_text = "... c, ... -> ; c: normalised; ...: sum",
       .rule = sparse_cross_entropy_rule,
       .phases = sparse_cross_entropy_phases,
       .gradient = sparse_cross_entropy_gradient,
       .flops_per_point = 4,
       .index_extent = label_extent,
       .notes = "result    a scalar, or one loss per row; labels are integers"},
      {.name = "SparsePick",
       .signature = "logits, labels -> picked",
       .infer = infer_loss_terms,
       .rule_text = "... c, ... -> ...; c: sum",
       .rule = loss_terms_rule,
       .kernel = sparse_pick_kernel,
       .flops_per_point = 0,
       .is_internal = true},
      {.name = "SparseCrossEntropyApply",
       .signature = "max, sum, picked -> loss",
       .attributes = {loss_reduction()},
       .infer = infer_reduced_loss,
       .rule_text = "... 1, ... 1, ... -> ; ...: sum",
       .rule = reduced_loss_rule,
       .kernel = sparse_cross_entropy_apply_kernel,
       .flops_per_point = 3,
       .is_internal = true},
      {.name = "SparseSoftmaxCrossEntropyGrad",
       .signature = "dloss, logits, labels -> dlogits",
       .attributes = {loss_reduction()},
       .infer = infer_dlogits,
       .rule_text = ", ... c, ... -> ... c; c: normalised",
       .rule = loss_grad_rule,
       .phases = sparse_cross_entropy_grad_phases,
       .flops_per_point = 5,
       .is_internal = true},
      {.name = "SparseCrossEntropyGradApply",
       .signature = "dloss, logits, labels, max, sum -> dlogits",
       .attributes = {loss_reduction()},
       .infer = infer_dlogits,
       .rule_text = ", ... c, ..., ... 1, ... 1 -> ... c",
       .rule = loss_grad_apply_rule,
       .kernel = sparse_cross_entropy_grad_apply_kernel,
       .flops_per_point = 4,
       .is_internal = true},
  };
}

}  // namespace shardplan
