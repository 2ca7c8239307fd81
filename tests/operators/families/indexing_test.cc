#include "operators/families/indexing.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> indexing_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "Gather", [](Random& r) -> OperatorCase {
    const std::int64_t v = any_of(r, {8, 16});
    if (r.below(2) == 0) return {"Gather", {}, {real({v, some(r)}), index(random_shape(r, 1 + r.below(2)), v + 2)}};
    return {"Gather", {{"axis", whole_number(1)}}, {real({some(r), v, some(r)}), index({some(r)}, v)}};
  });
  add_case(cases, "SparseGatherV2", [](Random& r) -> OperatorCase {
    return {"SparseGatherV2", {}, {real({8, some(r)}), index(random_shape(r, 1 + r.below(2)), 10)}};
  });
  add_case(cases, "GatherGrad", [](Random& r) -> OperatorCase {
    const std::int64_t a = some(r), b = some(r), p = some(r);
    if (r.below(2) == 0) return {"GatherGrad", {{"size", whole_number(8)}}, {real({a, some(r)}), index({a}, 8)}};
    if (r.below(2) == 0) return {"GatherGrad", {{"size", whole_number(8)}}, {real({a, b, some(r)}), index({a, b}, 8)}};
    return {
        "GatherGrad", {{"size", whole_number(8)}, {"axis", whole_number(1)}}, {real({p, a, some(r)}), index({a}, 8)}};
  });
  add_case(cases, "UnsortedSegmentSum", [](Random& r) -> OperatorCase {
    const std::int64_t a = some(r);
    return {"UnsortedSegmentSum", {{"num_segments", whole_number(8)}}, {real({a, some(r)}), index({a}, 8)}};
  });
  add_case(cases, "IndexSelect", [](Random& r) -> OperatorCase {
    if (r.below(2) == 0) return {"IndexSelect", {}, {real({8, some(r)}), index({some(r)}, 8)}};
    return {"IndexSelect", {{"axis", whole_number(1)}}, {real({some(r), 8, some(r)}), index({some(r)}, 8)}};
  });
  for (const std::string name : {"GatherElements", "GatherElementsGrad"}) {
    add_case(cases, name, [=](Random& r) -> OperatorCase {
      const std::size_t dim = r.below(3);
      const Shape picked = random_shape(r, 3);
      Shape x = picked;
      x[dim] = 8;
      if (name == "GatherElements") return {name, {{"dim", whole_number(dim)}}, {real(x), index(picked, 9)}};
      return {name, {{"dim", whole_number(dim)}, {"size", whole_number(8)}}, {real(picked), index(picked, 9)}};
    });
  }
  add_case(cases, "ScatterAdd", [](Random& r) -> OperatorCase {
    const std::int64_t a = some(r), h = some(r);
    return {"ScatterAdd", {}, {real({8, h}), index({a}, 8), real({a, h})}};
  });
  add_case(cases, "OneHot", [](Random& r) -> OperatorCase {
    return {
        "OneHot",
        {{"depth", whole_number(8)}, {"axis", whole_number(r.below(2)) - 1}, {"on_value", 2.0}, {"off_value", -1.0}},
        {index(random_shape(r, 1 + r.below(2)), 9)}};
  });
  add_case(cases, "Range", [](Random& r) -> OperatorCase {
    return {"Range",
            {{"start", 3.0},
             {"limit", 3.0 + 0.5 * static_cast<double>(some(r)) - 0.1},
             {"delta", 0.5},
             {"dtype", std::string("f32")}},
            {}};
  });
  return cases;
}

namespace {

class IndexingTest : public FamilyTest {};

TEST_F(IndexingTest, ReadsAndMakesPositions) {
  const Values table = real({7, 3, 4}), rows = index({2, 5}, 7), updates = real({2, 5, 4});
  expect(run("Gather", {}, {table, rows}, {1})[0], [&](const Point& p) {
    return at(table, {static_cast<std::int64_t>(at(rows, {p[0], p[1]})), p[2], p[3]});
  });
  const Values columns = index({5}, 3);
  expect(run("Gather", {{"axis", std::int64_t{1}}}, {table, columns}, {1})[0], [&](const Point& p) {
    return at(table, {p[0], static_cast<std::int64_t>(at(columns, {p[1]})), p[2]});
  });
  expect(run("UnsortedSegmentSum", {{"num_segments", std::int64_t{7}}}, {updates, rows}, {1})[0], [&](const Point& p) {
    double sum = 0;
    for (std::int64_t i = 0; i < 10; ++i) {
      if (at(rows, {i / 5, i % 5}) == static_cast<double>(p[0])) sum += at(updates, {i / 5, i % 5, p[1]});
    }
    return sum;
  });
  EXPECT_EQ(run("Gather", {}, {{{2}, {5, 6}}, {{3}, {-1, 2, 1}}}, {1})[0].data, (std::vector<double>{0, 0, 6}))
      << "outside: 0";
  expect(run("OneHot", {{"depth", std::int64_t{7}}, {"axis", std::int64_t{0}}}, {rows}, {0})[0], [&](const Point& p) {
    return at(rows, {p[1], p[2]}) == static_cast<double>(p[0]) ? 1.0 : 0.0;
  });
  EXPECT_EQ(run("Range", {{"start", 2.0}, {"limit", 8.0}, {"delta", 2.5}}, {})[0].data,
            (std::vector<double>{2, 4.5, 7}));
}

TEST_F(IndexingTest, PicksElementsAndAddsRows) {
  const Values x = real({3, 4, 5}), picks = index({3, 2, 5}, 4);
  expect(run("GatherElements", {{"dim", std::int64_t{-2}}}, {x, picks}, {1})[0], [&](const Point& p) {
    return at(x, {p[0], static_cast<std::int64_t>(at(picks, p)), p[2]});
  });
  const Values some_rows = index({2}, 3);
  expect(run("IndexSelect", {}, {x, some_rows}, {1})[0], [&](const Point& p) {
    return at(x, {static_cast<std::int64_t>(at(some_rows, {p[0]})), p[1], p[2]});
  });
  EXPECT_EQ(run("ScatterAdd", {}, {{{3}, {1, 2, 3}}, {{4}, {2, 0, 2, 7}}, {{4}, {10, 20, 30, 40}}}, {1})[0].data,
            (std::vector<double>{21, 2, 43}))
      << "an index outside adds nothing";
}

}  // namespace
}  // namespace shardplan
