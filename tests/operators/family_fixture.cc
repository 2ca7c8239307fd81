#include "tests/operators/family_fixture.h"

#include <algorithm>

#include "operators/catalogue.h"

namespace shardplan {

double at(const Values& values, const Point& point) {
  std::size_t offset = 0;
  for (std::size_t d = 0; d < point.size(); ++d) {
    offset = offset * static_cast<std::size_t>(values.shape[d]) + static_cast<std::size_t>(point[d]);
  }
  return values.data[offset];
}

Values tabulate(const Shape& shape, const std::function<double(const Point&)>& formula) {
  Values values = make_values(shape, [] { return 0.0; });
  for (std::size_t i = 0; i < values.data.size(); ++i) {
    Point point(shape.size());
    std::size_t rest = i;
    for (std::size_t d = shape.size(); d-- > 0;) {
      point[d] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(shape[d]));
      rest /= static_cast<std::size_t>(shape[d]);
    }
    values.data[i] = formula(point);
  }
  return values;
}

Values FamilyTest::real(const Shape& shape, double low, double high) {
  return make_values(shape, [&] { return low + (high - low) * random_.unit(); });
}

Values FamilyTest::index(const Shape& shape, std::int64_t extent) {
  return make_values(shape, [&] { return static_cast<double>(random_.below(static_cast<std::uint64_t>(extent))); });
}

std::vector<Values> FamilyTest::run(const std::string& type, const Attributes& attributes,
                                    const std::vector<Values>& operands, const std::vector<std::size_t>& integers,
                                    DataType integer_type) {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool is_integer = std::ranges::find(integers, i) != integers.end();
    types.push_back({operands[i].shape, is_integer ? integer_type : DataType::kF64});
  }
  const Operation operation = make_operation(*find_operator_type(type), attributes, types);
  std::vector<Values> results = run_whole(operation, operands);
  for (std::size_t r = 0; r < results.size(); ++r) EXPECT_EQ(results[r].shape, operation.results[r].shape);
  return results;
}

void FamilyTest::expect(const Values& found, const std::function<double(const Point&)>& formula,
                        const std::string& what) {
  EXPECT_LE(relative_difference(tabulate(found.shape, formula), found), 1e-12) << what;
}

}  // namespace shardplan
