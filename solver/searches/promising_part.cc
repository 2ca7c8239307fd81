#include "solver/searches/promising_part.h"

#include <utility>
#include <vector>

#include "solver/heuristics/restriction_heuristic.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kTimesSmaller = 2;  // at least, in entries of a pass
constexpr std::uint64_t kWorkPerValue = 4;  // of making the part

}  // namespace

std::optional<PromisingPart> PromisingPart::of(const CoreProblem& core, const DualBound& dual, const CoreChoice& known,
                                               double values_per_node, const CoreSearchOptions& options,
                                               std::uint64_t work) {
  std::vector<std::uint8_t> values = promising_values(core, dual, values_per_node);
  for (std::size_t node = 0; node < core.num_nodes(); ++node) {
    values[core.first_value[node] + known[node]] = 1;
    values[core.first_value[node] + dual.decoded()[node]] = 1;
  }
  std::optional<RestrictedCore> part = restrict_core(core, values, kMostCoreEntries);
  if (!part || kTimesSmaller * part->core.sweep_work > core.sweep_work) return std::nullopt;
  CoreSearchOptions own = options;
  own.threads = 1;
  own.work = work;
  own.exact_work = 0;
  own.give_up = {};
  own.good_enough = {{0, kPartGap}};
  own.starts = {part->nearest(known)};
  own.first_bound = dual.restricted_state(*part);
  own.searches_parts = false;
  own.progress = {};
  PromisingPart result(*std::move(part), std::move(own));
  result.work_of_making_ = kWorkPerValue * core.costs.size();
  return result;
}

CoreSearchResult PromisingPart::search(const Deadline& deadline, CoreSearch by) const {
  CoreSearchResult result = by(part_.core, options_, deadline);
  if (result.choice) result.choice = part_.expand(*result.choice);
  result.work += work_of_making_;
  return result;
}

}  // namespace shardplan
