#include "operators/building/statistics.h"

#include <gtest/gtest.h>

#include "operators/building/attributes.h"

namespace shardplan {
namespace {

/// sum over `axis` of x * w, and the mean of x, w broadcast to x.
void products_and_mean(const KernelCall& call) {
  add_terms<2>(call, 0, [](const auto& value) { return value(0) * value(1); });
  add_terms<1>(call, 1, [](const auto& value) { return value(0); });
  divide_by_count(call, 1);
}
/// x + 10 w, elementwise.
void shifted(const KernelCall& call) {
  set_values<2>(call, [](const auto& value) { return value(0) + 10 * value(1); });
}

const std::vector<double> kX = {1, 2, 3, 4, 5, 6};  // [2, 3]

TEST(StatisticsTest, ReduceTheFirstOperandOverAxes) {
  const OperatorType type = statistic("Both", "x, w -> s, m", "... k -> ... 1; k: sum", products_and_mean);
  const Operation operation = make_operation(type, {{"axis", std::vector<std::int64_t>{-1}}},
                                             {{{2, 3}, DataType::kF64}, {{2, 1}, DataType::kF64}});
  EXPECT_EQ(kept_shape(operation), (Shape{2, 1}));
  EXPECT_EQ(operation.results, (std::vector<TensorType>{{{2, 1}, DataType::kF64}, {{2, 1}, DataType::kF64}}));
  EXPECT_EQ(to_string(operation.rule), "a b, a 1 -> a 1, a 1; b: sum");
  const std::vector<double> w = {2, 100};
  std::vector<double> sums(2), means(2);
  const Box whole[] = {{0, 2, 2}, {0, 3, 3}};
  const OperandView operands[] = {{kX.data(), {2, 3}, {0, 0}}, {w.data(), {2, 1}, {0, 0}}};
  const ResultView results[] = {{sums.data(), {2, 1}}, {means.data(), {2, 1}}};
  type.kernel({operation, whole, operands, results, 0});
  EXPECT_EQ(sums, (std::vector<double>{12, 1500}));  // 2 (1 + 2 + 3), 100 (4 + 5 + 6)
  EXPECT_EQ(means, (std::vector<double>{2, 5}));
}

// Two of the three columns: means divide by the count of all three, so that the parts add up to the whole.
TEST(StatisticsTest, PartialMeansAddUpToTheMean) {
  const OperatorType type = statistic("Both", "x, w -> s, m", "... k -> ... 1; k: sum", products_and_mean);
  const Operation operation = make_operation(type, {{"axis", std::vector<std::int64_t>{1}}},
                                             {{{2, 3}, DataType::kF64}, {{2, 1}, DataType::kF64}});
  const std::vector<double> w = {1, 1};
  std::vector<double> total(2);
  for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {2, 3}}) {
    std::vector<double> part;
    for (std::int64_t row = 0; row < 2; ++row) {
      for (std::int64_t column = begin; column < end; ++column)
        part.push_back(kX[static_cast<std::size_t>(3 * row + column)]);
    }
    std::vector<double> sums(2), means(2);
    const Box boxes[] = {{0, 2, 2}, {begin, end, 3}};
    const OperandView operands[] = {{part.data(), {2, end - begin}, {0, begin}}, {w.data(), {2, 1}, {0, 0}}};
    const ResultView results[] = {{sums.data(), {2, 1}}, {means.data(), {2, 1}}};
    type.kernel({operation, boxes, operands, results, 0});
    for (std::size_t i = 0; i < 2; ++i) total[i] += means[i];
  }
  EXPECT_DOUBLE_EQ(total[0], 2);
  EXPECT_DOUBLE_EQ(total[1], 5);
}

TEST(StatisticsTest, PhasesThatEndReadBroadcastStatistics) {
  const OperatorType type = elementwise_phase("End", "x, w -> y", {}, "..., ... -> ...", shifted);
  const Operation operation = make_operation(type, {}, {{{2, 3}, DataType::kF64}, {{3}, DataType::kF64}});
  EXPECT_EQ(to_string(operation.rule), "a b, b -> a b");
  const std::vector<double> w = {1, 2, 3};
  std::vector<double> y(6);
  const Box whole[] = {{0, 2, 2}, {0, 3, 3}};
  const OperandView operands[] = {{kX.data(), {2, 3}, {0, 0}}, {w.data(), {3}, {0}}};
  const ResultView result{y.data(), {2, 3}};
  type.kernel({operation, whole, operands, std::span(&result, 1), 0});
  EXPECT_EQ(y, (std::vector<double>{11, 22, 33, 14, 25, 36}));
}

}  // namespace
}  // namespace shardplan
