#include "operators/families/experts.h"

#include <cmath>

#include "base/error.h"
#include "tests/operators/family_fixture.h"

namespace shardplan {
namespace {

/// One gate divided by itself would be 1 whatever the logits are. Two tokens of one slot do not come from ExpertSlots, but sums are defined for them too.
OperatorCase random_experts(Random& r, const std::string& type) {
  const std::int64_t g = any_of(r, {2, 4}), t = any_of(r, {2, 4, 8}), k = any_of(r, {1, 2}), e = any_of(r, {2, 4, 8});
  const std::int64_t c = any_of(r, {2, 4}), h = any_of(r, {2, 4});
  const Shape choices = {g, t, k};
  const OperandSpec tokens = real({g, t, h}), slots = real({e, g, c, h}), which = index(choices, e),
                    where = {choices, -1, static_cast<double>(c), true, false};
  const Attributes sizes = {{"num_experts", e}, {"capacity", c}};
  OperatorCase example{type, {}, {}};
  if (type == "TopKRouter") return {type, {{"k", k}, {"normalise", k > 1 && r.below(2) == 0}}, {{{g, t, e}, -3, 3}}};
  if (type == "TopKRouterGrad") {
    return {type, {{"normalise", k > 1 && r.below(2) == 0}}, {real(choices), real({g, t, e}), which}};
  }
  if (type == "ExpertSlots") return {type, sizes, {which}};
  if (type == "GateGrad") return {type, {}, {slots, tokens, which, where}};
  example.operands = {type == "Dispatch" ? tokens : slots, which, where};
  if (type == "Dispatch") example.attributes = sizes;
  if (r.below(2) == 0) example.operands.push_back(real(choices));
  return example;
}

}  // namespace

std::vector<CaseMaker> expert_cases() {
  std::vector<CaseMaker> cases;
  for (const std::string type : {"TopKRouter", "TopKRouterGrad", "ExpertSlots", "Dispatch", "Combine", "GateGrad"}) {
    add_case(cases, type, [=](Random& r) { return random_experts(r, type); });
  }
  for (const std::string type : {"Dispatch", "Combine"}) {
    add_case(cases, type + "_2", [=](Random& r) { return random_experts(r, type); });
  }
  return cases;
}

namespace {

class ExpertsTest : public FamilyTest {};

TEST_F(ExpertsTest, RoutesToTheLargestShares) {
  const Values logits = {{1, 1, 3}, {std::log(1.0), std::log(6.0), std::log(3.0)}};
  const std::vector<Values> raw = run("TopKRouter", {{"k", std::int64_t{2}}, {"normalise", false}}, {logits});
  EXPECT_NEAR(raw[0].data[0], 0.6, 1e-12);
  EXPECT_NEAR(raw[0].data[1], 0.3, 1e-12);
  EXPECT_EQ(raw[1].data, (std::vector<double>{1, 2}));
  const std::vector<Values> normal = run("TopKRouter", {{"k", std::int64_t{2}}}, {logits});
  EXPECT_NEAR(normal[0].data[0], 2.0 / 3, 1e-12);
}

TEST_F(ExpertsTest, SlotsAreQueuesWithFirstChoicesFirst) {
  // Tokens 0..3 choose expert 0 first, but token 2, which chooses 1; second choices are the other one.
  const Values experts = {{1, 4, 2}, {0, 1, 0, 1, 1, 0, 0, 1}};
  EXPECT_EQ(
      run("ExpertSlots", {{"num_experts", std::int64_t{2}}, {"capacity", std::int64_t{3}}}, {experts}, {0})[0].data,
      (std::vector<double>{0, 1, 1, 2, 0, -1, 2, -1}));
}

TEST_F(ExpertsTest, DispatchAndCombineMoveTokens) {
  const Values x = real({2, 3, 4}), gates = real({2, 3, 2}), experts = index({2, 3, 2}, 4);
  const Attributes sizes = {{"num_experts", std::int64_t{4}}, {"capacity", std::int64_t{2}}};
  const Values slots = run("ExpertSlots", sizes, {experts}, {0})[0];
  const auto gate_of = [&](const Point& choice, std::int64_t e, std::int64_t c) {
    return at(experts, choice) == static_cast<double>(e) && at(slots, choice) == static_cast<double>(c)
               ? at(gates, choice)
               : 0.0;
  };
  const Values y = run("Dispatch", sizes, {x, experts, slots, gates}, {1, 2})[0];
  expect(y, [&](const Point& p) {
    double sum = 0;
    for (std::int64_t i = 0; i < 6; ++i) {
      sum += gate_of({p[1], i / 2, i % 2}, p[0], p[2]) * at(x, {p[1], i / 2, p[3]});
    }
    return sum;
  });
  expect(run("Combine", {}, {y, experts, slots, gates}, {1, 2})[0], [&](const Point& p) {
    double sum = 0;
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::int64_t e = i / 4, c = i / 2 % 2, k = i % 2;
      sum += gate_of({p[0], p[1], k}, e, c) * at(y, {e, p[0], c, p[2]});
    }
    return sum;
  });
}

TEST_F(ExpertsTest, RejectsWhatDoesNotFit) {
  const auto message = [&](const std::string& type, const Attributes& attributes, const std::vector<Values>& operands,
                           const std::vector<std::size_t>& integers) -> std::string {
    try {
      run(type, attributes, operands, integers);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("TopKRouter", {{"k", std::int64_t{5}}}, {real({1, 2, 4})}, {}).find("1 to the 4 experts"),
            std::string::npos);
  const Attributes sizes = {{"num_experts", std::int64_t{4}}, {"capacity", std::int64_t{2}}};
  const Values choices = index({1, 3, 2}, 4);
  EXPECT_NE(message("Dispatch", sizes, {real({1, 2, 4}), choices, choices}, {1, 2}).find("expected [1, 3, 4]"),
            std::string::npos);
  EXPECT_NE(message("Combine", {}, {real({4, 1, 2}), choices, choices}, {1, 2}).find("[experts, groups, capacity, h]"),
            std::string::npos);
  EXPECT_NE(message("Dispatch", sizes, {real({1, 3, 4}), choices, choices}, {}).find("expected integers"),
            std::string::npos);
}

}  // namespace
}  // namespace shardplan
