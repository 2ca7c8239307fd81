#include "operators/families/scan.h"

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

std::vector<TensorType> infer_cum_sum(const Operation& operation) {
  (void)normal_axis(operation, operation.integer("axis"), operation.operands[0].shape.size());
  return {operation.operands[0]};
}

ShardingRule cum_sum_rule(const Operation& operation) {
  const Shape& x = operation.operands[0].shape;
  RuleBuilder builder;
  const TensorWalk walk = builder.add_positions(x);
  builder.set_kind(walk[normal_axis(operation, operation.integer("axis"), x.size())], FactorKind::kNeedReplication);
  builder.operand(walk);
  builder.result(walk);
  return builder.build();
}

void cum_sum_kernel(const KernelCall& call) {
  const Shape& x = call.operands[0].shape;
  const AroundAxis around(x, normal_axis(call.operation, call.operation.integer("axis"), x.size()));
  const bool exclusive = call.operation.flag("exclusive");
  const bool reverse = call.operation.flag("reverse");
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t i = 0; i < around.inner; ++i) {
      double sum = 0;
      for (std::int64_t step = 0; step < around.size; ++step) {
        const std::int64_t position = reverse ? around.size - 1 - step : step;
        const std::int64_t at = (o * around.size + position) * around.inner + i;
        const double value = call.operands[0].data[at];
        call.results[0].data[at] = exclusive ? sum : sum + value;
        sum += value;
      }
    }
  }
}

Gradients cum_sum_gradient(GradientBuilder& builder, const GradientRequest& request) {
  return gradient_of_first(request, [&](TensorId dy) {
    Attributes attributes = request.operation.attributes;
    attributes["reverse"] = !request.operation.flag("reverse");
    return add_one(builder, "CumSum", {dy}, attributes);
  });
}

}  // namespace

std::vector<OperatorType> scan_operators() {
  return {
      {.name = "CumSum",
       .signature = "x -> y",
       .attributes = {integer("axis", std::nullopt, "along which sums run"),
                      flag("exclusive", false, "without the element itself"), flag("reverse", false, "from the end")},
       .infer = infer_cum_sum,
       .rule_text = "... k -> ... k; k: whole",
       .rule = cum_sum_rule,
       .linear = {{"x"}},
       .kernel = cum_sum_kernel,
       .gradient = cum_sum_gradient},
  };
}

}  // namespace shardplan
