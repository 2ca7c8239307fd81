#include "program/bucket_rules.h"

namespace shardplan {
namespace {

/// The largest bucket size that is tried (above it all gradients of most models are one bucket); up to the other
/// size, intermediate sizes are tried too.
constexpr Bytes kLargestTried = Bytes{1} << 30;
constexpr Bytes kLargestBetween = Bytes{128} << 20;

}  // namespace

bool BucketRules::is_searched() const {
  using Mode = CommFusion::Mode;
  return all_reduce.mode == Mode::kBest || all_gather.mode == Mode::kBest || reduce_scatter.mode == Mode::kBest;
}

BucketRules decided(const CommFusions& fusions, CommFusion::Mode mode, Bytes size) {
  const auto of = [&](CommFusion rule) {
    if (rule.mode != CommFusion::Mode::kBest) return rule;
    return CommFusion{mode, size, {}};
  };
  return {of(fusions.all_reduce), of(fusions.all_gather), of(fusions.reduce_scatter)};
}

std::vector<BucketRules> rules_to_try(const CommFusions& fusions, bool is_long) {
  using Mode = CommFusion::Mode;
  const BucketRules searched = decided(fusions, Mode::kBest);
  std::vector<BucketRules> rules{decided(fusions, Mode::kNone)};
  if (!searched.is_searched()) return rules;
  if (is_long) {
    for (const Bytes mebibytes : {8, 48, 64, 96}) rules.push_back(decided(fusions, Mode::kSize, mebibytes << 20));
  }
  for (Bytes size = Bytes{1} << 20; !is_long && size <= kLargestTried; size *= 2) {
    rules.push_back(decided(fusions, Mode::kSize, size));
    if (size <= kLargestBetween) rules.push_back(decided(fusions, Mode::kSize, size / 2 * 3));
  }
  rules.push_back(searched);
  return rules;
}

}  // namespace shardplan
