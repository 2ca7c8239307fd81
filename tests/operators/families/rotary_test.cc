#include "operators/families/rotary.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> rotary_cases() {
  std::vector<CaseMaker> cases;
  for (const std::string name : {"RotaryEmbedding", "RotaryEmbeddingGrad"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      const Shape s = {some(r), some(r), some(r), any_of(r, {4, 8, 16})};
      return {name, {}, {real(s), real({s[2], s[3]}), real({s[2], s[3]})}};
    });
  }
  return cases;
}

namespace {

class RotaryTest : public FamilyTest {};

TEST_F(RotaryTest, RotatesHalves) {
  const Values x = real({2, 3, 4, 8}), cosine = real({4, 8}), sine = real({4, 8});
  expect(run("RotaryEmbedding", {}, {x, cosine, sine})[0], [&](const Point& p) {
    const double turned = p[3] < 4 ? -at(x, {p[0], p[1], p[2], p[3] + 4}) : at(x, {p[0], p[1], p[2], p[3] - 4});
    return at(x, p) * at(cosine, {p[2], p[3]}) + turned * at(sine, {p[2], p[3]});
  });
}

}  // namespace
}  // namespace shardplan
