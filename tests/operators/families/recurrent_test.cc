#include "operators/families/recurrent.h"

#include <cmath>

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> recurrent_cases() {
  std::vector<CaseMaker> cases;
  for (const bool is_gradient : {false, true}) {
    add_case(cases, is_gradient ? "SelectiveScanGrad" : "SelectiveScan", [=](Random& r) -> OperatorCase {
      const std::int64_t b = some(r), l = any_of(r, {3, 4, 5}), d = some(r), n = any_of(r, {2, 4});
      std::vector<OperandSpec> operands = {
          real({b, l, d}), positive({b, l, d}), {{d, n}, -2, -0.5}, real({b, l, n}), real({b, l, n})};
      if (is_gradient) operands.insert(operands.begin(), real({b, l, d}));
      return {is_gradient ? "SelectiveScanGrad" : "SelectiveScan", {}, operands};
    });
    add_case(cases, is_gradient ? "LSTMCellGrad" : "LSTMCell", [=](Random& r) -> OperatorCase {
      const std::int64_t b = some(r), i = any_of(r, {2, 3}), o = any_of(r, {2, 4, 8});
      std::vector<OperandSpec> operands = {real({b, i}),    real({b, o}),    real({b, o}),
                                           real({4, o, i}), real({4, o, o}), real({4, o})};
      if (is_gradient) operands.insert(operands.begin(), {real({b, o}), real({b, o})});
      return {is_gradient ? "LSTMCellGrad" : "LSTMCell", {}, operands};
    });
  }
  return cases;
}

namespace {

class RecurrentTest : public FamilyTest {};

TEST_F(RecurrentTest, ScansByTheClosedForm) {
  const Values u = real({2, 4, 3}), delta = real({2, 4, 3}, 0.2, 1), a = real({3, 2}, -2, -0.5), b = real({2, 4, 2}),
               c = real({2, 4, 2});
  // The state is the sum of the inputs of earlier steps, each decayed by all steps since.
  expect(run("SelectiveScan", {}, {u, delta, a, b, c})[0], [&](const Point& p) {
    double y = 0;
    for (std::int64_t n = 0; n < 2; ++n) {
      for (std::int64_t from = 0; from <= p[1]; ++from) {
        double time = 0;
        for (std::int64_t l = from + 1; l <= p[1]; ++l) time += at(delta, {p[0], l, p[2]});
        y += at(c, {p[0], p[1], n}) * std::exp(time * at(a, {p[2], n})) * at(delta, {p[0], from, p[2]}) *
             at(b, {p[0], from, n}) * at(u, {p[0], from, p[2]});
      }
    }
    return y;
  });
}

TEST_F(RecurrentTest, CellFollowsTheFormulas) {
  const Values x = real({2, 3}), h = real({2, 4}), c = real({2, 4}), wx = real({4, 4, 3}), wh = real({4, 4, 4}),
               bias = real({4, 4});
  const std::vector<Values> found = run("LSTMCell", {}, {x, h, c, wx, wh, bias});
  const auto sum = [&](const Point& p, std::int64_t gate) {
    double total = at(bias, {gate, p[1]});
    for (std::int64_t i = 0; i < 3; ++i) total += at(wx, {gate, p[1], i}) * at(x, {p[0], i});
    for (std::int64_t i = 0; i < 4; ++i) total += at(wh, {gate, p[1], i}) * at(h, {p[0], i});
    return total;
  };
  const auto sigmoid = [](double v) { return 0.5 * (1 + std::tanh(v / 2)); };
  const auto state = [&](const Point& p) {
    return sigmoid(sum(p, 1)) * at(c, p) + sigmoid(sum(p, 0)) * std::tanh(sum(p, 2));
  };
  expect(found[0], [&](const Point& p) { return sigmoid(sum(p, 3)) * std::tanh(state(p)); });
  expect(found[1], state);
}

}  // namespace
}  // namespace shardplan
