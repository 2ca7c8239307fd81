// Gradients of every differentiable operator compared with central finite differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "operators/catalogue.h"
#include "operators/families/communication.h"
#include "tests/operators/cases.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kGradientSeed = 20240612;

/// Executes every operator as soon as it is added.
class EagerBuilder : public GradientBuilder {
 public:
  TensorId add_values(const TensorType& type, Values values) {
    types_.push_back(type);
    values_.push_back(std::move(values));
    return TensorId(types_.size() - 1);
  }
  std::vector<TensorId> add(std::string_view type, const Attributes& attributes,
                            const std::vector<TensorId>& operands) override {
    const OperatorType* found = find_operator_type(type);
    if (found == nullptr) throw InputError(SourcePlace{}, "no operator {}", type);
    std::vector<TensorType> types;
    std::vector<Values> inputs;
    for (const TensorId operand : operands) {
      types.push_back(types_[operand.value()]);
      inputs.push_back(values_[operand.value()]);
    }
    const Operation operation = make_operation(*found, attributes, types);
    std::vector<TensorId> results;
    std::vector<Values> outputs = run_whole(operation, inputs);
    for (std::size_t r = 0; r < outputs.size(); ++r)
      results.push_back(add_values(operation.results[r], std::move(outputs[r])));
    return results;
  }
  TensorId constant(double value) override { return add_values({{}, DataType::kF32}, {{}, {value}}); }
  TensorType type(TensorId tensor) const override { return types_[tensor.value()]; }
  const Values& values(TensorId tensor) const { return values_[tensor.value()]; }

 private:
  std::vector<TensorType> types_;
  std::vector<Values> values_;
};

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) sum += a.data[i] * b.data[i];
  return sum;
}

/// The results that have gradients: all floating-point ones, but only y of BatchNorm.
bool carries_gradient(const Operation& operation, std::size_t result) {
  return is_floating(operation.results[result].dtype) && (result == 0 || operation.type->name != "BatchNorm");
}

TEST(GradientTest, EqualsFiniteDifferences) {
  std::set<std::string> seen;
  for (const CaseMaker& maker : case_makers()) {
    Random random = random_of(maker, kGradientSeed);
    for (int instance = 0; instance < 4; ++instance) {
      const OperatorCase example = maker.make(random);
      const Operation operation = operation_of(example);
      if (operation.type->gradient == nullptr || maker.name == "Cast_int") continue;
      seen.insert(operation.type->name);
      std::vector<Values> operands = draw_operands(example, random);
      EagerBuilder builder;
      std::vector<TensorId> operand_ids;
      for (std::size_t i = 0; i < operands.size(); ++i)
        operand_ids.push_back(builder.add_values(operation.operands[i], operands[i]));
      const std::vector<Values> results = run_whole(operation, operands);
      std::vector<TensorId> result_ids;
      std::vector<std::optional<TensorId>> result_gradients;
      std::vector<std::optional<Values>> weights;  // the loss is the sum of weight * result
      for (std::size_t r = 0; r < results.size(); ++r) {
        result_ids.push_back(builder.add_values(operation.results[r], results[r]));
        weights.emplace_back();
        result_gradients.emplace_back();
        // Of several results, some may have no gradient.
        if (!carries_gradient(operation, r) || (r > 0 && random.below(4) == 0)) continue;
        weights.back() = make_values(operation.results[r].shape, [&] { return 2 * random.unit() - 1; });
        result_gradients.back() = builder.add_values(operation.results[r], *weights.back());
      }
      std::vector<bool> needed;
      for (const TensorType& type : operation.operands) needed.push_back(is_floating(type.dtype));
      if (operation.type->name == "BatchNorm") needed[3] = needed[4] = false;
      const auto gradients =
          operation.type->gradient(builder, {operation, operand_ids, result_ids, result_gradients, needed});
      ASSERT_EQ(gradients.size(), operands.size()) << maker.name;
      const auto loss = [&] {
        const std::vector<Values> now = run_whole(operation, operands);
        double sum = 0;
        for (std::size_t r = 0; r < now.size(); ++r) sum += weights[r] ? dot(now[r], *weights[r]) : 0;
        return sum;
      };
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!needed[i]) continue;
        ASSERT_TRUE(gradients[i]) << maker.name << " operand " << i;
        EXPECT_EQ(builder.type(*gradients[i]), operation.operands[i]) << maker.name << " operand " << i;
        Values numeric = operands[i];
        const double step = 1e-5;
        const std::size_t stride = std::max<std::size_t>(1, operands[i].data.size() / 24);
        double worst = 0;
        double largest = 1e-3;
        for (std::size_t e = random.below(stride); e < operands[i].data.size(); e += stride) {
          const double before = operands[i].data[e];
          operands[i].data[e] = before + step;
          const double up = loss();
          operands[i].data[e] = before - step;
          const double down = loss();
          operands[i].data[e] = before;
          const double expected = (up - down) / (2 * step);
          largest = std::max(largest, std::abs(expected));
          worst = std::max(worst, std::abs(expected - builder.values(*gradients[i]).data[e]));
        }
        EXPECT_LE(worst / largest, 1e-5) << maker.name << " operand " << i << " " << to_string(operation.rule);
      }
    }
  }
  for (const OperatorType& type : operator_catalogue()) {
    if (is_communication(type)) continue;  // tests/simulator/exchange_test.cc
    EXPECT_EQ(type.gradient != nullptr, seen.contains(type.name)) << type.name;
  }
}

/// Operands that need no gradient get none, and no operator is added for them.
TEST(GradientTest, MakesOnlyWhatIsNeeded) {
  for (const CaseMaker& maker : case_makers()) {
    Random random = random_of(maker, kGradientSeed);
    const OperatorCase example = maker.make(random);
    const Operation operation = operation_of(example);
    if (operation.type->gradient == nullptr) continue;
    EagerBuilder builder;
    std::vector<TensorId> operand_ids, result_ids;
    for (const TensorType& type : operation.operands)
      operand_ids.push_back(builder.add_values(type, make_values(type.shape, [] { return 1.0; })));
    for (const TensorType& type : operation.results)
      result_ids.push_back(builder.add_values(type, make_values(type.shape, [] { return 1.0; })));
    const std::vector<std::optional<TensorId>> none(result_ids.size());
    const std::vector<bool> all(operand_ids.size(), true);
    for (const auto& gradient : operation.type->gradient(builder, {operation, operand_ids, result_ids, none, all})) {
      EXPECT_FALSE(gradient) << maker.name << ": no gradient comes in";
    }
    std::vector<std::optional<TensorId>> incoming;
    for (std::size_t r = 0; r < result_ids.size(); ++r) {
      incoming.push_back(is_floating(operation.results[r].dtype) ? std::optional(result_ids[r]) : std::nullopt);
    }
    const std::vector<bool> nothing(operand_ids.size(), false);
    for (const auto& gradient :
         operation.type->gradient(builder, {operation, operand_ids, result_ids, incoming, nothing})) {
      EXPECT_FALSE(gradient) << maker.name << ": none is needed";
    }
  }
}

}  // namespace
}  // namespace shardplan
