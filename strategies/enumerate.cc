#include "strategies/enumerate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "layouts/uneven.h"
#include "operators/operator_type.h"

namespace shardplan {
namespace {

/// What one piece of the mesh does for an operator.
struct Use {
  enum class Kind { kFactor, kLinear, kMonotone, kRepeat };
  Kind kind = Kind::kRepeat;
  std::uint32_t index = 0;  // of the factor or group
};

/// The uses worth trying for any piece, in the order in which strategies are listed.
std::vector<Use> possible_uses(const Operation& operation, const PartialGroups& groups) {
  std::vector<Use> uses;
  for (std::uint32_t factor = 0; factor < operation.rule.factors.size(); ++factor) {
    const Factor& info = operation.rule.factors[factor];
    if (info.kind != FactorKind::kNeedReplication && info.size > 1) uses.push_back({Use::Kind::kFactor, factor});
  }
  if (operation.type->work != WorkKind::kContraction) {
    for (std::uint32_t group = 0; group < operation.rule.linear.size(); ++group) {
      if (group < groups.linear.size() && groups.linear[group]) uses.push_back({Use::Kind::kLinear, group});
    }
    for (std::uint32_t group = 0; group < operation.rule.monotone.size(); ++group) {
      if (group < groups.monotone.size() && groups.monotone[group]) uses.push_back({Use::Kind::kMonotone, group});
    }
  }
  uses.push_back({Use::Kind::kRepeat, 0});
  return uses;
}

/// All products of some of the pieces, ascending.
std::set<std::int64_t> products(const std::vector<AxisRef>& pieces) {
  std::set<std::int64_t> result = {1};
  for (const AxisRef& piece : pieces) {
    std::set<std::int64_t> more = result;
    for (const std::int64_t product : result) more.insert(product * piece.size);
    result = std::move(more);
  }
  return result;
}

/// The numbers of pieces that a factor may be split into.
std::set<std::int64_t> possible_cuts(const Operation& operation, std::size_t factor,
                                     const std::set<std::int64_t>& products, UnevenCuts uneven) {
  const std::int64_t size = operation.rule.factors[factor].size;
  const bool may_be_uneven = uneven != UnevenCuts::kNone && why_only_even(operation, factor).empty();
  std::set<std::int64_t> cuts;
  for (const std::int64_t pieces : products) {
    if (pieces <= size && size % pieces == 0) cuts.insert(pieces);
  }
  if (!may_be_uneven) return cuts;
  const std::int64_t most_even = *cuts.rbegin();
  for (const std::int64_t pieces : products) {
    if (pieces > most_even && can_be_split(size, pieces) && wastes_little(size, pieces)) cuts.insert(pieces);
  }
  return cuts;
}

/// Why a factor is not split into this many pieces, although fewer are possible.
std::string why_not(const Operation& operation, std::size_t factor, std::int64_t pieces, UnevenCuts uneven) {
  const Factor& info = operation.rule.factors[factor];
  if (info.kind == FactorKind::kNeedReplication) return "each device needs all of it";
  if (pieces > info.size) return fmt::format("there are {}", info.size);
  if (uneven == UnevenCuts::kNone) return fmt::format("{} does not divide it", pieces);
  if (const std::string only_even = why_only_even(operation, factor); !only_even.empty()) {
    return fmt::format("{} does not divide it: {}", pieces, only_even);
  }
  const std::int64_t piece = largest_piece(info.size, pieces);
  if (!can_be_split(info.size, pieces)) {
    return fmt::format("pieces of {} would leave {} of them empty", piece, pieces - largest_piece(info.size, piece));
  }
  const double padding = 1 - static_cast<double>(info.size) / static_cast<double>(pieces * piece);
  return fmt::format("{:.0f} % of pieces of {} would be padding", 100 * padding, piece);
}

class Enumeration {
 public:
  Enumeration(const Operation& operation, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
              const PartialGroups& groups, UnevenCuts uneven)
      : operation_(operation), mesh_(mesh), pieces_(pieces), uses_(possible_uses(operation, groups)) {
    strategy_.factors.resize(operation.rule.factors.size());
    const std::set<std::int64_t> all = products(pieces);
    for (std::size_t factor = 0; factor < strategy_.factors.size(); ++factor) {
      cuts_.push_back(possible_cuts(operation, factor, all, uneven));
    }
  }

  Candidates run() {
    assign(0);
    return std::move(candidates_);
  }

 private:
  void assign(std::size_t piece) {
    if (!candidates_.complete) return;
    if (piece == pieces_.size()) {
      keep();
      return;
    }
    for (const Use& use : uses_) {
      switch (use.kind) {
        case Use::Kind::kFactor: {
          std::vector<AxisRef>& axes = strategy_.factors[use.index];
          axes.push_back(pieces_[piece]);
          if (leads_to_a_cut(use.index)) assign(piece + 1);
          axes.pop_back();
          break;
        }
        case Use::Kind::kLinear:
        case Use::Kind::kMonotone: {
          const Reduction reduction = use.kind == Use::Kind::kLinear ? Reduction::kSum : Reduction::kMax;
          // One group and kind at a time: partial over two axes in two ways has no layout.
          if (!strategy_.partial.empty() && (strategy_.group != use.index || strategy_.reduction != reduction)) break;
          const Strategy before = strategy_;
          strategy_.partial.push_back(pieces_[piece]);
          strategy_.group = use.index;
          strategy_.reduction = reduction;
          assign(piece + 1);
          strategy_ = before;
          break;
        }
        case Use::Kind::kRepeat:
          assign(piece + 1);
          break;
      }
    }
  }

  /// Whether a factor may be split into its current number of pieces, or a multiple of it.
  bool leads_to_a_cut(std::size_t factor) const {
    const std::int64_t now = num_pieces(strategy_.factors[factor]);
    return std::ranges::any_of(cuts_[factor], [&](std::int64_t pieces) { return pieces % now == 0; });
  }

  void keep() {
    for (std::size_t factor = 0; factor < cuts_.size(); ++factor) {
      if (!cuts_[factor].contains(num_pieces(strategy_.factors[factor]))) return;
    }
    if (!check_strategy(operation_, strategy_, mesh_).empty()) return;
    if (candidates_.strategies.size() == kMaxCandidates) {
      candidates_.complete = false;
      return;
    }
    candidates_.strategies.push_back(strategy_);
  }

  const Operation& operation_;
  const DeviceMesh& mesh_;
  const std::vector<AxisRef>& pieces_;
  const std::vector<Use> uses_;
  std::vector<std::set<std::int64_t>> cuts_;  // by factor
  Strategy strategy_;
  Candidates candidates_;
};

}  // namespace

bool wastes_little(std::int64_t extent, std::int64_t pieces) {
  return 4 * (pieces * largest_piece(extent, pieces) - extent) <= extent;
}

Candidates enumerate_strategies(const Operation& operation, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
                                const PartialGroups& groups, UnevenCuts uneven) {
  return Enumeration(operation, mesh, pieces, groups, uneven).run();
}

std::optional<NextCut> next_cut(const Operation& operation, std::size_t factor, std::int64_t num_devices,
                                UnevenCuts uneven) {
  std::set<std::int64_t> divisors;
  for (std::int64_t pieces = 1; pieces <= num_devices; ++pieces) {
    if (num_devices % pieces == 0) divisors.insert(pieces);
  }
  const bool is_whole = operation.rule.factors[factor].kind == FactorKind::kNeedReplication;
  const std::int64_t most = is_whole ? 1 : *possible_cuts(operation, factor, divisors, uneven).rbegin();
  const auto next = divisors.upper_bound(most);
  if (next == divisors.end()) return std::nullopt;
  return NextCut{*next, why_not(operation, factor, *next, uneven)};
}

}  // namespace shardplan
