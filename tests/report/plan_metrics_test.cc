#include "report/metrics/plan_metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shardplan {
namespace {

TEST(PlanMetricsTest, ThreeDigitsOfAnySize) {
  const struct {
    double value;
    const char* text;
  } cases[] = {{0, "0.00"},     {5.634, "5.63"}, {9.994, "9.99"}, {9.996, "10.0"},
               {56.34, "56.3"}, {99.96, "100"},  {563.4, "563"},  {5634, "5634"}};
  for (const auto& c : cases) EXPECT_EQ(three_digits(c.value), c.text) << c.value;
}

TEST(PlanMetricsTest, TheRatioIsOfWorkThatIsNotRepeated) {
  EXPECT_DOUBLE_EQ(*ratio({.computation = 71, .communication = 20}), 3.55);
  EXPECT_EQ(ratio_text({.computation = 71, .communication = 20}), "3.55");
  EXPECT_EQ(ratio({.computation = 71, .communication = 20, .repeated = 1}), std::nullopt);
  EXPECT_EQ(ratio_text({.computation = 71, .communication = 20, .repeated = 1}), "-");
  EXPECT_TRUE(std::isinf(*ratio({.computation = 71})));
  EXPECT_EQ(ratio_text({.computation = 71}), "inf");
  EXPECT_EQ(gap_text(0.0034), "0.3");
  EXPECT_EQ(gap_text(0.0), "0.0");
  EXPECT_EQ(gap_text(1e-6), "0.1") << "not optimal";
  EXPECT_EQ(gap_text(std::nullopt), "-");
}

TEST(PlanMetricsTest, OperatorsAreCountedWithoutBorders) {
  OperatorGraphBuilder builder("g");
  EXPECT_EQ(training_words(builder.build()), "");
  OperatorGraphBuilder trained("g");
  trained.set_training();
  EXPECT_EQ(training_words(trained.build()), "training, ");
  OperatorGraphBuilder in_parts("g");
  in_parts.set_training(32);
  EXPECT_EQ(training_words(in_parts.build()), "training in 32 micro-batches, ");
}

TEST(PlanMetricsTest, PassesHaveNames) {
  EXPECT_EQ(to_string(Pass::kForward), "forward");
  EXPECT_EQ(to_string(Pass::kBackward), "backward");
  EXPECT_EQ(to_string(Pass::kUpdate), "update");
}

}  // namespace
}  // namespace shardplan
