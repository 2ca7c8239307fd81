#include "operators/families/contraction.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> contraction_cases() {
  std::vector<CaseMaker> cases;
  for (const std::string name : {"MatMul", "BatchMatMul"}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        add_case(cases, name + (ta ? "_ta" : "") + (tb ? "_tb" : ""), [=](Random& r) -> OperatorCase {
          const std::int64_t m = some(r), k = some(r), n = some(r);
          Shape a = ta ? Shape{k, m} : Shape{m, k};
          Shape b = tb ? Shape{n, k} : Shape{k, n};
          const std::int64_t batch = any_of(r, {2, 4}), second = any_of(r, {2, 3});
          const std::uint64_t form = name == "MatMul" ? r.below(2) : 2 + r.below(4);
          if (form >= 1 && form < 4) a.insert(a.begin(), {batch, second});
          if (form == 5) a.insert(a.begin(), {batch, 1});
          if (form == 2) b.insert(b.begin(), {batch, second});
          if (form == 3 || form == 5) b.insert(b.begin(), {1, second});
          if (form == 4) b.insert(b.begin(), {batch, second});
          return {name, {{"transpose_a", ta}, {"transpose_b", tb}}, {real(a), real(b)}};
        });
      }
    }
  }
  add_case(cases, "Einsum", [](Random& r) -> OperatorCase {
    const std::int64_t a = some(r), b = some(r), c = some(r), d = some(r);
    switch (r.below(4)) {
      case 0:
        return {"Einsum", {{"equation", std::string("abc,cd->bda")}}, {real({a, b, c}), real({c, d})}};
      case 1:
        return {"Einsum", {{"equation", std::string("abc, abd -> dc")}}, {real({a, b, c}), real({a, b, d})}};
      case 2:
        return {"Einsum", {{"equation", std::string("abc->ca")}}, {real({a, b, c})}};
      default:
        return {"Einsum", {{"equation", std::string("ab,c->bc")}}, {real({a, b}), real({c})}};
    }
  });
  return cases;
}

namespace {

class ContractionTest : public FamilyTest {};

TEST_F(ContractionTest, TheTypeOfAProduct) {
  const auto made_of = [](DataType operands, const std::string& dtype) {
    const OperatorType& type = *find_operator_type("MatMul");
    return make_operation(type, {{"dtype", dtype}}, {{{2, 3}, operands}, {{3, 4}, operands}}).results[0].dtype;
  };
  EXPECT_EQ(made_of(DataType::kF8E4M3, ""), DataType::kF8E4M3);
  EXPECT_EQ(made_of(DataType::kF8E4M3, "bf16"), DataType::kBF16);
  EXPECT_EQ(made_of(DataType::kBF16, "f32"), DataType::kF32);
  EXPECT_THROW(made_of(DataType::kBF16, "i32"), InputError);
  EXPECT_THROW(made_of(DataType::kBF16, "float"), InputError);
  EXPECT_THROW(made_of(DataType::kI32, "f32"), InputError);
}

TEST_F(ContractionTest, MatMul) {
  const Values a = real({2, 3, 4, 5}), b = real({3, 5, 6}), at_ = real({5, 4}), bt = real({6, 5});
  expect(run("BatchMatMul", {}, {a, b})[0], [&](const Point& p) {
    double sum = 0;
    for (std::int64_t k = 0; k < 5; ++k) sum += at(a, {p[0], p[1], p[2], k}) * at(b, {p[1], k, p[3]});
    return sum;
  });
  expect(run("MatMul", {{"transpose_a", true}, {"transpose_b", true}}, {at_, bt})[0], [&](const Point& p) {
    double sum = 0;
    for (std::int64_t k = 0; k < 5; ++k) sum += at(at_, {k, p[0]}) * at(bt, {p[1], k});
    return sum;
  });
}

TEST_F(ContractionTest, Einsum) {
  const Values a = real({3, 4, 5}), b = real({3, 6, 5});
  expect(run("Einsum", {{"equation", std::string("abc,adc->db")}}, {a, b})[0], [&](const Point& p) {
    double sum = 0;
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t c = 0; c < 5; ++c) sum += at(a, {i, p[1], c}) * at(b, {i, p[0], c});
    }
    return sum;
  });
}

}  // namespace
}  // namespace shardplan
