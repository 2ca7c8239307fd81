#include "simulator/execute/near_ties.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "simulator/execute/cancellation.h"
#include "simulator/execute/data.h"

namespace shardplan {
namespace {

bool is_rounded_number(double value) { return value != 0 && std::abs(value) < kStandsForInfinity; }

/// One line of the operand: element i is at `first + i * stride`.
class Line {
 public:
  Line(std::span<const double> exact, std::span<double> values, std::size_t first, std::size_t stride, bool ascends)
      : exact_(exact), values_(values), first_(first), stride_(stride), ascends_(ascends) {}

  void reverse(std::size_t size, double absolute, double relative) {
    double largest = 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (is_rounded_number(exact(i))) largest = std::max(largest, std::abs(exact(i)));
    }
    const double error = absolute + relative * largest;
    std::vector<std::size_t> order(size);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return is_before(exact(a), exact(b)); });
    for (std::size_t begin = 0, end = 1; begin < size; begin = end++) {
      const auto is_near = [&](std::size_t a, std::size_t b) {
        return is_rounded_number(exact(a)) && is_rounded_number(exact(b)) && std::abs(exact(a) - exact(b)) <= error;
      };
      while (end < size && is_near(order[end - 1], order[end])) ++end;
      if (end - begin > 1) reverse(std::span(order).subspan(begin, end - begin));
    }
  }

 private:
  double exact(std::size_t i) const { return exact_[first_ + i * stride_]; }
  double& value(std::size_t i) { return values_[first_ + i * stride_]; }
  bool is_before(double a, double b) const { return ascends_ ? a < b : a > b; }

  /// Gives the values of nearly equal elements, which are listed in their order, to them in the opposite order, and
  /// keeps equal ones apart.
  void reverse(std::span<const std::size_t> elements) {
    std::vector<double> sorted;
    for (const std::size_t i : elements) sorted.push_back(value(i));
    std::ranges::sort(sorted, [&](double a, double b) { return is_before(a, b); });
    const double behind = ascends_ ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < sorted.size(); ++k) {
      if (k > 0 && !is_before(sorted[k - 1], sorted[k])) sorted[k] = std::nextafter(sorted[k - 1], behind);
      value(elements[elements.size() - 1 - k]) = sorted[k];
    }
  }

  std::span<const double> exact_;
  std::span<double> values_;
  std::size_t first_;
  std::size_t stride_;
  bool ascends_;
};

}  // namespace

void reverse_near_ties(const Operation& operation, std::span<const double> exact, double absolute, double relative,
                       std::span<double> values) {
  if (holds_small_integers(exact)) return;
  const Shape& shape = operation.operands[0].shape;
  const TensorWalk& walk = operation.rule.operands[0];
  const auto descending = operation.attributes.find("descending");
  const bool ascends = descending != operation.attributes.end() && descending->second == Attribute(false);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!walk[d].factors.empty() || shape[d] < 2) continue;  // the whole dimension has no factor
    std::size_t stride = 1;
    for (std::size_t inner = d + 1; inner < shape.size(); ++inner) stride *= static_cast<std::size_t>(shape[inner]);
    const auto size = static_cast<std::size_t>(shape[d]);
    for (std::size_t first = 0; first < values.size(); ++first) {
      if (first / stride % size == 0) Line(exact, values, first, stride, ascends).reverse(size, absolute, relative);
    }
  }
}

}  // namespace shardplan
