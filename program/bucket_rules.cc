#include "program/bucket_rules.h"

namespace shardplan {
namespace {

/// The largest size of buckets that is tried; beyond it all gradients of most models are one bucket. Up to the other one
/// sizes between are tried, too.
constexpr Bytes kLargestTried = Bytes{1} << 30;
constexpr Bytes kLargestBetween = Bytes{128} << 20;

bool has_choice(const CommFusions& fusions) {
  using Mode = CommFusion::Mode;
  return fusions.all_reduce.mode == Mode::kBest || fusions.all_gather.mode == Mode::kBest ||
         fusions.reduce_scatter.mode == Mode::kBest;
}

}  // namespace

BucketRules decided(const CommFusions& fusions, CommFusion::Mode mode, Bytes size) {
  const auto of = [&](CommFusion rule) {
    if (rule.mode != CommFusion::Mode::kBest) return rule;
    return CommFusion{mode, size, {}};
  };
  return {of(fusions.all_reduce), of(fusions.all_gather), of(fusions.reduce_scatter)};
}

std::vector<BucketRules> rules_to_try(const CommFusions& fusions, bool is_long) {
  using Mode = CommFusion::Mode;
  std::vector<BucketRules> rules{decided(fusions, Mode::kNone)};
  if (!has_choice(fusions)) return rules;
  if (is_long) rules.push_back(decided(fusions, Mode::kSize, Bytes{64} << 20));
  for (Bytes size = Bytes{1} << 20; !is_long && size <= kLargestTried; size *= 2) {
    rules.push_back(decided(fusions, Mode::kSize, size));
    if (size <= kLargestBetween) rules.push_back(decided(fusions, Mode::kSize, size / 2 * 3));
  }
  rules.push_back(decided(fusions, Mode::kBest));
  return rules;
}

}  // namespace shardplan
