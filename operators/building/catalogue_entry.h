#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operators/families/elementwise.h"
#include "operators/operator_type.h"

namespace shardplan {

/// How the lines of the catalogue are written.
using Infer = std::vector<TensorType> (*)(const Operation&);
using Rule = ShardingRule (*)(const Operation&);

/// Attributes; without a standard value they must be given.
AttributeSpec flag(std::string name, bool standard, std::string meaning);
AttributeSpec integer(std::string name, std::optional<std::int64_t> standard, std::string meaning);
AttributeSpec number(std::string name, std::optional<double> standard, std::string meaning);
AttributeSpec text(std::string name, std::optional<std::string> standard, std::string meaning);
AttributeSpec list(std::string name, std::optional<std::vector<std::int64_t>> standard, std::string meaning);

/// Attributes that operators and their gradients share.
AttributeSpec softmax_axis();
AttributeSpec epsilon(double standard);
AttributeSpec loss_reduction();
std::vector<AttributeSpec> norm_attributes();
/// `size`: of an input or kernel that no operand shows.
std::vector<AttributeSpec> convolution_attributes(std::string size = {});
std::vector<AttributeSpec> pool_attributes(std::string size = {});

/// One line. `signature`: "x1, x2 -> y"; a name that ends in "..." may repeat.
OperatorType define(std::string name, std::string_view signature, std::vector<AttributeSpec> attributes, Infer infer,
                    Rule rule, Kernel kernel, Gradient gradient, double flops_per_point, std::string rule_text,
                    std::string partial_text = {}, std::string notes = {});

/// What some lines are besides.
OperatorType contraction(OperatorType type, double (*whole_flops)(const Operation&) = nullptr);
OperatorType view(OperatorType type);
OperatorType in_phases(Phases (*phases)(const Operation&), OperatorType type);

/// y = function(x), element by element.
template <auto function, Passes passes = Passes::kNothing>
OperatorType map(std::string name, Gradient gradient) {
  return define(std::move(name), "x -> y", {}, infer_unary, elementwise<passes>, unary<function>, gradient, 1,
                "... -> ...", partial_text(passes, {"x"}));
}

/// y = function(x1, x2), broadcast.
template <auto function, Passes passes>
OperatorType combine(std::string name, Gradient gradient) {
  return define(std::move(name), "x1, x2 -> y", {}, infer_broadcast, elementwise<passes>, binary<function>, gradient, 1,
                "..., ... -> ...", partial_text(passes, {"x1", "x2"}),
                "strategy  equal dimensions are cut alike, broadcast ones are not cut");
}

/// The same with a bool result.
template <auto function>
OperatorType compare(std::string name, Infer infer = infer_comparison) {
  OperatorType type = combine<function, Passes::kNothing>(std::move(name), nullptr);
  type.infer = infer;
  return type;
}

/// dx = dy * slope at x or y: function(dy, x or y).
template <auto function>
OperatorType slope(std::string name, const std::string& kept) {
  return define(std::move(name), "dy, " + kept + " -> dx", {}, infer_unary, elementwise<Passes::kFirst>,
                binary<function>, nullptr, 1, "..., ... -> ...", partial_text(Passes::kFirst, {"dy"}));
}

/// Operators that gradients and phases are made of, which model files do not name.
std::vector<OperatorType> derived_operators();

}  // namespace shardplan
