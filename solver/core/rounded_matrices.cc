#include "solver/core/rounded_matrices.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/side_by_side.h"

namespace shardplan {
namespace {

constexpr std::size_t kThreadsForRounding = 2;  // it is mostly a matter of reading and writing memory

/// `round(items, count, out)` rounds some entries.
template <class Number, class Round>
std::vector<RoundedMatrix<Number>> rounded(const std::vector<CoreMatrix>& matrices, const Round& round) {
  std::vector<RoundedMatrix<Number>> result(matrices.size());
  const auto of = [&](const std::vector<double>& entries) {
    std::vector<Number> numbers(entries.size());
    round(entries.data(), entries.size(), numbers.data());
    return numbers;
  };
  side_by_side(num_processors(kThreadsForRounding), matrices.size(), [&](std::size_t, std::size_t i) {
    result[i] = {of(matrices[i].forward), of(matrices[i].backward)};
  });
  return result;
}

}  // namespace

RoundedMatrices::RoundedMatrices(std::shared_ptr<const std::vector<CoreMatrix>> matrices)
    : matrices_(std::move(matrices)) {
  double largest = 1;
  for (const CoreMatrix& matrix : *matrices_) largest = std::max(largest, matrix.largest);
  int exponent = 0;
  std::frexp(largest, &exponent);  // it is less than 2^exponent
  unit_of_halves_ = std::ldexp(1 / kHalvesEnd, exponent);
}

const std::vector<RoundedMatrix<float>>& RoundedMatrices::floats() const {
  std::call_once(floats_made_, [&] {
    floats_ = rounded<float>(*matrices_,
                             [](const double* items, std::size_t count, float* out) { round_down(items, count, out); });
  });
  return floats_;
}

const std::vector<RoundedMatrix<Half>>& RoundedMatrices::halves() const {
  std::call_once(halves_made_, [&] {
    halves_ = rounded<Half>(*matrices_, [&](const double* items, std::size_t count, Half* out) {
      round_down(items, count, 1 / unit_of_halves_, out);
    });
  });
  return halves_;
}

}  // namespace shardplan
