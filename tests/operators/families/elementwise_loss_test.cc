#include "operators/families/elementwise_loss.h"

#include <cmath>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> elementwise_loss_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "SigmoidCrossEntropyWithLogits", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 1 + r.below(3));
    return {"SigmoidCrossEntropyWithLogits", {}, {{s, -4, 4}, {s, 0, 1}}};
  });
  add_case(cases, "SigmoidCrossEntropyWithLogitsGrad", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2);
    return {"SigmoidCrossEntropyWithLogitsGrad", {}, {{s, -4, 4}, {s, 0, 1}, real(s)}};
  });
  add_case(cases, "SmoothL1Loss", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 1 + r.below(3));
    return {"SmoothL1Loss", {{"beta", 0.5 + 0.5 * static_cast<double>(r.below(3))}}, {real(s), real(s)}};
  });
  add_case(cases, "SmoothL1LossGrad", [](Random& r) -> OperatorCase {
    const Shape s = random_shape(r, 2);
    return {"SmoothL1LossGrad", {{"beta", 0.5}}, {real(s), real(s), real(s)}};
  });
  return cases;
}

namespace {

class ElementwiseLossTest : public FamilyTest {};

TEST_F(ElementwiseLossTest, FollowsTheFormulas) {
  const Values x = real({6, 5}, -3, 3), y = real({6, 5}, 0, 1);
  expect(run("SigmoidCrossEntropyWithLogits", {}, {x, y})[0], [&](const Point& p) {
    const double probability = 1 / (1 + std::exp(-at(x, p)));
    return -at(y, p) * std::log(probability) - (1 - at(y, p)) * std::log(1 - probability);
  });
  // Large logits do not overflow.
  EXPECT_EQ(run("SigmoidCrossEntropyWithLogits", {}, {{{2}, {1000, -1000}}, {{2}, {1, 1}}})[0].data,
            (std::vector<double>{0, 1000}));
  EXPECT_EQ(run("SmoothL1Loss", {{"beta", 2.0}}, {{{4}, {0, 1, 2, -5}}, {{4}, {0, 0, 0, 0}}})[0].data,
            (std::vector<double>{0, 0.25, 1, 4}));
}

}  // namespace
}  // namespace shardplan
