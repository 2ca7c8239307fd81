#include "planner/overlap/heaviest_sum.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace shardplan {
namespace {

/// Calls `add` with each vector of kernels, communications, and parts of these.
template <class Of, class Add>
void each_row(const Of& of, const Add& add) {
  add(of.kernels);
  add(of.items);
  for (const auto& part : of.on_part) add(part);
}

/// Sums of doubles are off by less than this share of them.
constexpr double kOffBy = 1e-9;

}  // namespace

HeaviestSum::HeaviestSum(const std::vector<OverlapWeights>& weights) : weights_(&weights) {
  for (const OverlapWeights& one : weights) {
    each_row(one, [&](const std::vector<std::int64_t>& row) {
      for (const std::int64_t share : row) {
        shares_.push_back(static_cast<double>(share) / static_cast<double>(OverlapWeights::kWhole));
      }
    });
    if (columns_ == 0) columns_ = shares_.size();
  }
}

Picoseconds HeaviestSum::of(const StepBound::Times& times) const {
  if (weights_ == nullptr || weights_->empty()) return 0;
  std::vector<double> columns;
  columns.reserve(columns_);
  each_row(times, [&](const std::vector<Picoseconds>& row) { columns.insert(columns.end(), row.begin(), row.end()); });
  SHARDPLAN_CHECK(columns.size() == columns_);
  std::vector<double> sums;
  for (std::size_t i = 0; i < weights_->size(); ++i) {
    const double* shares = shares_.data() + i * columns_;
    // Four sums, so that one addition need not wait for the one before.
    double sum[4] = {};
    std::size_t column = 0;
    for (; column + 4 <= columns_; column += 4) {
      for (std::size_t k = 0; k < 4; ++k) sum[k] += shares[column + k] * columns[column + k];
    }
    for (; column < columns_; ++column) sum[0] += shares[column] * columns[column];
    sums.push_back(sum[0] + sum[1] + sum[2] + sum[3]);
  }
  // Exact shares are rounded down, each by less than a picosecond.
  const double most = *std::max_element(sums.begin(), sums.end());
  const double least = most - most * kOffBy - static_cast<double>(columns_);
  Picoseconds result = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] >= least) result = std::max(result, StepBound::sum((*weights_)[i], times));
  }
  return result;
}

}  // namespace shardplan
