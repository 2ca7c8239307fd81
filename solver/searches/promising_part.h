#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "solver/bounds/dual_bound.h"
#include "solver/core/restricted_core.h"
#include "solver/limits.h"
#include "solver/searches/core_search.h"

namespace shardplan {

/// The part of a core that its bound makes likely to hold better choices: the `promising_values`, those of a known
/// choice, and those of the choice that the bound decodes.
///
/// Relaxation induced neighbourhoods (Danna, Rothberg, Le Pape, Mathematical Programming 102, 2005) fix what the best
/// choice and a relaxation agree on; with the bound's reduced costs at hand, this keeps the likely alternatives, too.
class PromisingPart {
 public:
  /// Nothing if the part would hardly be smaller than the core. `options` and `work` are the search's.
  static std::optional<PromisingPart> of(const CoreProblem& core, const DualBound& dual, const CoreChoice& known,
                                         double values_per_node, const CoreSearchOptions& options, std::uint64_t work);

  /// `by` begins with the bound's messages and prices at the known choice, runs on one thread and ends after its
  /// work or once it has a choice within `kPartGap` of the best one in the part. Its result is in terms of the core, no
  /// worse than the known choice if that is feasible; its bound is the part's alone.
  CoreSearchResult search(const Deadline& deadline, CoreSearch by) const;

 private:
  PromisingPart(RestrictedCore part, CoreSearchOptions options)
      : part_(std::move(part)), options_(std::move(options)) {}

  RestrictedCore part_;
  CoreSearchOptions options_;
  std::uint64_t work_of_making_ = 0;
};
inline constexpr double kPartGap = 1e-7;

}  // namespace shardplan
