#include "planner/search/search_options.h"

#include <algorithm>
#include <utility>

#include "planner/search/default_limits.h"

namespace shardplan {
namespace {

/// Time for a search at the end of a time limit.
constexpr double kLeastSeconds = 1e-3;
/// Lowering, memory and scheduling take about this many times as long as building the problem; a second of that is not
/// counted.
constexpr double kShareBehind = 2;
constexpr double kNotCounted = 1;
/// Of the time that is left, at most this share is kept for what follows a search.
constexpr double kMostKept = 0.75;
/// The share of a time limit that a first search takes at most.
constexpr double kShareOfFirst = 0.5;

}  // namespace

LevelOptions search_options(const PlanOptions& options, Level level, std::stop_token stop,
                            const std::function<void(const SearchProgress&)>& progress, double spent, double kept) {
  LevelOptions result;
  result.level = level;
  result.memory_slack_ppm = static_cast<std::int64_t>(options.memory_slack * 1e6 + 0.5);
  result.seed = options.seed;
  result.threads = options.threads;
  // If nothing is left, a search returns its starting point.
  if (options.time_limit > 0) {
    const double left = std::max(options.time_limit - options.time_spent - spent, kLeastSeconds);
    result.limits.seconds = left - std::min(kept, kMostKept * left);
  }
  result.limits.work = uses_default_work(options, false) ? kDefaultWork : options.work_limit;
  result.limits.gap = kGoodEnough;
  result.limits.stop = std::move(stop);
  result.limits.progress = progress;
  return result;
}

double after_search(double built) { return std::max(kShareBehind * built - kNotCounted, 0.0); }

bool uses_default_work(const PlanOptions& options, bool is_first) {
  return options.work_limit == 0 && (is_first || options.time_limit == 0);
}

SearchLimits limits_of_first(const PlanOptions& options, SearchLimits limits) {
  limits.seconds *= kShareOfFirst;
  if (uses_default_work(options, true)) limits.work = kDefaultWork;
  return limits;
}

}  // namespace shardplan
