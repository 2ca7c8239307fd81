#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/operators/cases.h"
#include "tests/operators/families/family_cases.h"

namespace shardplan {

using Point = std::vector<std::int64_t>;

/// The value of a whole tensor at one point.
double at(const Values& values, const Point& point);
/// A tensor given by a formula.
Values tabulate(const Shape& shape, const std::function<double(const Point&)>& formula);

/// Compares kernels on one device with formulas written in the test, one value at a time.
class FamilyTest : public ::testing::Test {
 protected:
  Values real(const Shape& shape, double low = -1, double high = 1);
  Values index(const Shape& shape, std::int64_t extent);
  /// Operands of f64, except the integers (or bools) given by position.
  std::vector<Values> run(const std::string& type, const Attributes& attributes, const std::vector<Values>& operands,
                          const std::vector<std::size_t>& integers = {}, DataType integer_type = DataType::kI32);
  void expect(const Values& found, const std::function<double(const Point&)>& formula, const std::string& what = "");

  Random random_{42};
};

}  // namespace shardplan
