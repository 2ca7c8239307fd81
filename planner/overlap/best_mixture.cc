#include "planner/overlap/best_mixture.h"

#include <algorithm>
#include <cmath>

#include "base/integer.h"

namespace shardplan {
namespace {

/// Values below this count as zero; entries are about 1.
constexpr double kNothing = 1e-9;
/// A limit against rounding problems; with Bland's rule the iteration terminates by itself.
constexpr int kMostPivots = 10'000;
/// Of fictitious play.
constexpr int kTurns = 5'000;

/// Proportional counts, rounded down; if all values are 0, only the first counts.
std::vector<std::int64_t> counts_of(const std::vector<double>& shares) {
  double all = 0;
  for (const double share : shares) all += share;
  std::vector<std::int64_t> counts(shares.size(), 0);
  if (all == 0) counts.front() = kMixtureWhole;
  for (std::size_t i = 0; all > 0 && i < shares.size(); ++i) {
    counts[i] = static_cast<std::int64_t>(shares[i] / all * static_cast<double>(kMixtureWhole));
  }
  return counts;
}

}  // namespace

// Maximise v with sum over j of x_j S_jc >= v for all choices c. With y = x / v this is: minimise the sum of y
// subject to sum over j of y_j S_jc >= 1. Its dual maximises the sum of z subject to sum over c of S_jc z_c <= 1. The
// simplex method starts at z = 0; at the optimum y are the dual values of the rows.
Mixture best_mixture(const std::vector<std::vector<Picoseconds>>& sums) {
  const std::size_t rows = sums.size(), choices = sums.front().size();
  const std::size_t columns = choices + rows;
  double scale = 0;
  for (const std::vector<Picoseconds>& row : sums) {
    for (const Picoseconds sum : row) scale = std::max(scale, static_cast<double>(sum));
  }
  if (scale == 0) scale = 1;
  std::vector<std::vector<double>> tableau(rows + 1, std::vector<double>(columns + 1, 0.0));
  for (std::size_t j = 0; j < rows; ++j) {
    for (std::size_t c = 0; c < choices; ++c) tableau[j][c] = static_cast<double>(sums[j][c]) / scale;
    tableau[j][choices + j] = 1;
    tableau[j][columns] = 1;
  }
  std::vector<double>& objective = tableau[rows];
  for (std::size_t c = 0; c < choices; ++c) objective[c] = -1;
  std::vector<std::size_t> basis;
  for (std::size_t j = 0; j < rows; ++j) basis.push_back(choices + j);
  for (int pivot = 0; pivot < kMostPivots; ++pivot) {
    const auto entering = static_cast<std::size_t>(
        std::find_if(objective.begin(), objective.end() - 1, [](double price) { return price < -kNothing; }) -
        objective.begin());
    if (entering == columns) break;
    std::size_t leaving = rows;
    double least = 0;
    for (std::size_t j = 0; j < rows; ++j) {
      if (tableau[j][entering] <= kNothing) continue;
      const double ratio = tableau[j][columns] / tableau[j][entering];
      if (leaving == rows || ratio < least || (ratio == least && basis[j] < basis[leaving])) {
        leaving = j;
        least = ratio;
      }
    }
    if (leaving == rows) break;
    basis[leaving] = entering;
    std::vector<double>& row = tableau[leaving];
    const double divisor = row[entering];
    for (double& value : row) value /= divisor;
    for (std::size_t j = 0; j <= rows; ++j) {
      const double factor = tableau[j][entering];
      if (j == leaving || factor == 0) continue;
      for (std::size_t k = 0; k <= columns; ++k) tableau[j][k] -= factor * row[k];
    }
  }
  std::vector<double> of_sums, of_choices(choices, 0.0);
  for (std::size_t j = 0; j < rows; ++j) of_sums.push_back(std::max(0.0, objective[choices + j]));
  for (std::size_t j = 0; j < rows; ++j) {
    if (basis[j] < choices) of_choices[basis[j]] = std::max(0.0, tableau[j][columns]);
  }
  return {counts_of(of_sums), counts_of(of_choices)};
}

std::vector<std::int64_t> rough_mixture(const std::vector<std::vector<Picoseconds>>& sums) {
  const std::size_t choices = sums.front().size();
  std::vector<std::int64_t> counts(sums.size(), 0);
  std::vector<Int128> of_weights(sums.size(), 0), of_choices(choices, 0);
  std::size_t choice = 0;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (std::size_t j = 0; j < sums.size(); ++j) of_weights[j] += sums[j][choice];
    const auto best =
        static_cast<std::size_t>(std::max_element(of_weights.begin(), of_weights.end()) - of_weights.begin());
    ++counts[best];
    for (std::size_t i = 0; i < choices; ++i) of_choices[i] += sums[best][i];
    choice = static_cast<std::size_t>(std::min_element(of_choices.begin(), of_choices.end()) - of_choices.begin());
  }
  return counts;
}

}  // namespace shardplan
