#include "model/blocks/custom_operators.h"

#include <algorithm>

#include "operators/rule_parser.h"

namespace shardplan {
namespace {

/// A line of the catalogue that carries its own rule.
struct CustomType : OperatorType {
  ShardingRule fitted;  // to the operands that it was made for
};

const ShardingRule& rule_of(const Operation& operation) {
  return static_cast<const CustomType*>(operation.type)->fitted;
}

/// A result's dimension is as long as the factors that it walks; all floating types are the first operand's.
std::vector<TensorType> infer(const Operation& operation) {
  std::vector<TensorType> results;
  for (const TensorWalk& walk : rule_of(operation).results) {
    TensorType type{{}, operation.operands.empty() ? DataType::kF32 : operation.operands[0].dtype};
    for (const DimensionWalk& dimension : walk) {
      std::int64_t extent = 1;
      for (const std::uint32_t factor : dimension.factors) extent *= rule_of(operation).factors[factor].size;
      type.shape.push_back(extent);
    }
    results.push_back(std::move(type));
  }
  return results;
}

ShardingRule rule(const Operation& operation) { return rule_of(operation); }

void set_factor(ShardingRule& rule, const Word& name, const Word& kind) {
  const std::optional<std::uint32_t> index = rule.find(name.text);
  if (!index) throw InputError(name.place, "the rule has no factor '{}'", name.text);
  Factor& factor = rule.factors[*index];
  if (kind.text == "whole") {
    factor.kind = FactorKind::kNeedReplication;
    return;
  }
  if (kind.text != "sum" && kind.text != "max" && kind.text != "min") {
    throw InputError(kind.place, "factor {} is '{}'; expected sum, max, min or whole", name.text, kind.text);
  }
  if (factor.kind != FactorKind::kReduction) {
    throw InputError(kind.place, "factor {} is in a result, so it is not a {}", name.text, kind.text);
  }
  factor.reduction = kind.text == "sum" ? Reduction::kSum : kind.text == "max" ? Reduction::kMax : Reduction::kMin;
}

}  // namespace

const OperatorType* CustomOperators::find(const std::string& name, const std::vector<TensorType>& operands,
                                          OperatorGraphBuilder& builder) {
  const auto syntax = std::find_if(syntax_.begin(), syntax_.end(),
                                   [&](const CustomOperatorSyntax& custom) { return custom.name.text == name; });
  if (syntax == syntax_.end()) return nullptr;
  for (const auto& [known_operands, type] : known_) {
    if (type->name == name && known_operands == operands) return type;
  }
  auto type = std::make_shared<CustomType>();
  type->name = name;
  type->rule_text = syntax->rule.text;
  std::vector<Shape> shapes;
  for (const TensorType& operand : operands) shapes.push_back(operand.shape);
  type->fitted = parse_rule(syntax->rule.text, shapes);
  for (const Factor& factor : type->fitted.factors) {
    if (factor.kind != FactorKind::kNormalised) continue;
    throw InputError(syntax->rule.place, "factor {} is normalised, which needs phases; expected sum, max, min or whole",
                     factor.name);
  }
  for (const auto& [factor, kind] : syntax->factors) set_factor(type->fitted, factor, kind);
  for (std::size_t i = 0; i < operands.size(); ++i) type->signature.operands.push_back("x" + std::to_string(i + 1));
  for (std::size_t i = 0; i < type->fitted.results.size(); ++i)
    type->signature.results.push_back("y" + std::to_string(i + 1));
  type->infer = infer;
  type->rule = rule;
  double points = 1;
  for (const Factor& factor : type->fitted.factors) {
    points *= static_cast<double>(factor.size);
    if (factor.kind == FactorKind::kReduction) type->work = WorkKind::kContraction;
  }
  type->flops_per_point = type->work == WorkKind::kContraction ? 2 : 1;
  if (syntax->flops) {
    const double flops = syntax->flops->expression.evaluate_real([&](std::string_view factor) {
      const std::optional<std::uint32_t> index = type->fitted.find(factor);
      if (!index) throw InputError(syntax->flops->place, "flops: the rule has no factor '{}'", factor);
      return type->fitted.factors[*index].size;
    });
    if (flops < 0) {
      throw InputError(syntax->flops->place, "flops: {} is {}; expected at least 0", syntax->flops->expression.text(),
                       flops);
    }
    type->flops_per_point = flops / points;
  }
  known_.emplace_back(operands, type.get());
  builder.own(type);
  return type.get();
}

std::vector<std::string> CustomOperators::names() const {
  std::vector<std::string> names;
  for (const CustomOperatorSyntax& custom : syntax_) names.push_back(custom.name.text);
  return names;
}

}  // namespace shardplan
