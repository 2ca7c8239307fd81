#include "operators/families/reshaping.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/integer.h"
#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"

namespace shardplan {
namespace {

std::vector<TensorType> infer_reshape(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  Shape shape = operation.list("shape");
  std::optional<std::int64_t> known = 1;
  std::optional<std::size_t> open;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == -1) {
      if (open) operand_error(operation, fmt::format("shape {} has two dimensions of size -1", to_string(shape)));
      open = d;
    } else if (shape[d] < 1) {
      operand_error(operation, fmt::format("shape {} has a dimension of size {}", to_string(shape), shape[d]));
    } else if (known) {
      known = checked_multiply(*known, shape[d]);
    }
  }
  const std::int64_t total = num_elements(x.shape);
  if (open && known && total % *known == 0) {
    shape[*open] = total / *known;
    known = total;
  }
  if (known != total) {
    operand_error(operation, fmt::format("cannot make {} of {}, which has {} elements",
                                         to_string(operation.list("shape")), to_string(x.shape), total));
  }
  return {{std::move(shape), x.dtype}};
}

std::vector<TensorType> infer_flatten(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  if (x.shape.empty()) return {{{1}, x.dtype}};
  const std::size_t first = normal_axis(operation, operation.integer("start_dim"), x.shape.size());
  const std::size_t last = normal_axis(operation, operation.integer("end_dim"), x.shape.size());
  if (first > last) operand_error(operation, fmt::format("start_dim {} lies behind end_dim {}", first, last));
  Shape shape;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    if (d > first && d <= last) {
      shape.back() *= x.shape[d];
    } else {
      shape.push_back(x.shape[d]);
    }
  }
  return {{std::move(shape), x.dtype}};
}

std::vector<TensorType> infer_expand_dims(const Operation& operation) {
  Shape shape = operation.operands[0].shape;
  const std::size_t axis = normal_axis(operation, operation.integer("axis"), shape.size() + 1);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return {{std::move(shape), operation.operands[0].dtype}};
}

std::vector<TensorType> infer_squeeze(const Operation& operation) {
  const TensorType& x = operation.operands[0];
  const std::vector<std::int64_t>& given = operation.list("axis");
  const std::vector<std::size_t> axes = normal_axes(operation, given, x.shape.size());
  Shape shape;
  for (std::size_t d = 0; d < x.shape.size(); ++d) {
    const bool is_listed = std::ranges::find(axes, d) != axes.end();
    if (is_listed && x.shape[d] == 1) continue;
    if (is_listed && !given.empty()) {
      operand_error(operation,
                    fmt::format("dimension {} of {} has size {}; expected 1", d, to_string(x.shape), x.shape[d]));
    }
    shape.push_back(x.shape[d]);
  }
  return {{std::move(shape), x.dtype}};
}

/// Refines the dimensions of both shapes into common factors, greedily on the running products: [6, 4] -> [2, 12] has
/// the factors 2, 3, 4: "(a b) c -> a (b c)". Where sizes share no divisor, such as [2, 3, 5] -> [2, 5, 3], dimensions
/// stay whole until the products meet again.
ShardingRule reshape_rule(const Operation& operation) {
  const Shape& from = operation.operands[0].shape;
  const Shape& to = operation.results[0].shape;
  RuleBuilder builder;
  TensorWalk x(from.size());
  TensorWalk y(to.size());
  std::size_t count = 0;
  const auto add = [&](std::int64_t size, FactorKind kind = FactorKind::kPassThrough) {
    return builder.add(position_name(count++), size, kind);
  };
  std::size_t i = 0;
  std::size_t j = 0;
  std::int64_t a = from.empty() ? 1 : from[0];  // what is left of dimension i, and of j
  std::int64_t b = to.empty() ? 1 : to[0];
  while (true) {
    while (i < from.size() && a == 1) a = ++i < from.size() ? from[i] : 1;
    while (j < to.size() && b == 1) b = ++j < to.size() ? to[j] : 1;
    if (i == from.size() || j == to.size()) break;
    const std::int64_t common = std::gcd(a, b);
    if (common > 1) {
      const DimensionWalk factor = add(common);
      x[i] = product(x[i], factor);
      y[j] = product(y[j], factor);
      a /= common;
      b /= common;
      continue;
    }
    // No common divisor: whole factors on both sides until the products meet.
    std::int64_t product_a = a;
    std::int64_t product_b = b;
    x[i] = product(x[i], add(a, FactorKind::kNeedReplication));
    y[j] = product(y[j], add(b, FactorKind::kNeedReplication));
    while (product_a != product_b) {
      if (product_a < product_b) {
        product_a *= from[++i];
        if (from[i] > 1) x[i] = add(from[i], FactorKind::kNeedReplication);
      } else {
        product_b *= to[++j];
        if (to[j] > 1) y[j] = add(to[j], FactorKind::kNeedReplication);
      }
    }
    a = 1;
    b = 1;
  }
  builder.operand(std::move(x));
  builder.result(std::move(y));
  return builder.build();
}

/// A common factor keeps its place in the row-major order of both shapes, so the local elements come in the same order
/// too.
void copy_kernel(const KernelCall& call) {
  std::copy_n(call.operands[0].data, num_elements(call.operands[0].shape), call.results[0].data);
}

Gradients reshape_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request,
                           [&](TensorId dy) { return reshape_to(builder, dy, request.operation.operands[0].shape); });
}

/// A view of the same elements in another shape.
OperatorType view(std::string name, std::vector<AttributeSpec> attributes,
                  std::vector<TensorType> (*infer)(const Operation&)) {
  return {.name = std::move(name),
          .signature = "x -> y",
          .attributes = std::move(attributes),
          .infer = infer,
          .rule_text = "the common factors of both shapes, as in (a b) c -> a (b c)",
          .rule = reshape_rule,
          .linear = {{"x"}},
          .monotone = {{"x"}},
          .kernel = copy_kernel,
          .gradient = reshape_gradient,
          .work = WorkKind::kView,
          .flops_per_point = 0,
          .moves_elements = true};
}

}  // namespace

std::vector<OperatorType> reshaping_operators() {
  return {
      view("Reshape", {list("shape", std::nullopt, "of the result; one -1 is solved for")}, infer_reshape),
      view("Flatten", {integer("start_dim", 1, "first dimension that is joined"), integer("end_dim", -1, "last one")},
           infer_flatten),
      view("ExpandDims", {integer("axis", std::nullopt, "where a dimension of size 1 is put in")}, infer_expand_dims),
      view("Squeeze", {list("axis", empty_list(), "dimensions of size 1 that are dropped; all if empty")},
           infer_squeeze),
  };
}

}  // namespace shardplan
