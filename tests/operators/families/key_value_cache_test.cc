#include "operators/families/key_value_cache.h"

#include "tests/operators/family_fixture.h"

namespace shardplan {

std::vector<CaseMaker> key_value_cache_cases() {
  std::vector<CaseMaker> cases;
  add_case(cases, "KVCacheScatterUpdate", [](Random& r) -> OperatorCase {
    Shape var = random_shape(r, 2 + r.below(3));
    const std::int64_t rank = static_cast<std::int64_t>(var.size());
    const std::int64_t axis = 1 + r.below(rank - 1);
    Shape updates = var;
    updates[static_cast<std::size_t>(axis)] = 1 + r.below(var[static_cast<std::size_t>(axis)]);
    return {"KVCacheScatterUpdate",
            {{"axis", whole_number(axis - rank * r.below(2))}},
            {real(var), index({var[0]}, var[static_cast<std::size_t>(axis)]), real(updates)}};
  });
  return cases;
}

namespace {

class KeyValueCacheTest : public FamilyTest {};

TEST_F(KeyValueCacheTest, EverySequenceIsWrittenFromItsPositionOn) {
  const Values var = real({3, 2, 5, 4}), updates = real({3, 2, 2, 4});
  const Values first{{3}, {0, 2, 4}};
  expect(run("KVCacheScatterUpdate", {}, {var, first, updates}, {1})[0], [&](const Point& p) {
    const std::int64_t token = p[2] - static_cast<std::int64_t>(at(first, {p[0]}));
    return token == 0 || token == 1 ? at(updates, {p[0], p[1], token, p[3]}) : at(var, p);
  });
}

/// A cache of one byte takes what is computed in two.
TEST_F(KeyValueCacheTest, ACacheOfF8NarrowsWhatIsWritten) {
  const auto error = [](DataType var, DataType updates) -> std::string {
    try {
      const Operation made = make_operation(*find_operator_type("KVCacheScatterUpdate"), {},
                                            {{{3, 2, 5, 4}, var}, {{3}, DataType::kI32}, {{3, 2, 1, 4}, updates}});
      return made.results[0].dtype == var ? "" : "another type";
    } catch (const InputError& fault) {
      return fault.what();
    }
  };
  EXPECT_EQ(error(DataType::kF8E4M3, DataType::kBF16), "");
  EXPECT_EQ(error(DataType::kBF16, DataType::kBF16), "");
  EXPECT_NE(error(DataType::kBF16, DataType::kF32).find("expected the same type, or var of f8e4m3"), std::string::npos);
}

}  // namespace
}  // namespace shardplan
