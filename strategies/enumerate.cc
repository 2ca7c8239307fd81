#include "strategies/enumerate.h"

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

class Enumeration {
 public:
  Enumeration(const Operation& operation, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
              const PartialGroups& groups)
      : operation_(operation), mesh_(mesh), pieces_(pieces), uses_(possible_uses(operation, groups)) {
    strategy_.factors.resize(operation.rule.factors.size());
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
          if (operation_.rule.factors[use.index].size % num_pieces(axes) == 0) assign(piece + 1);
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

  void keep() {
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
  Strategy strategy_;
  Candidates candidates_;
};

}  // namespace

Candidates enumerate_strategies(const Operation& operation, const DeviceMesh& mesh, const std::vector<AxisRef>& pieces,
                                const PartialGroups& groups) {
  return Enumeration(operation, mesh, pieces, groups).run();
}

}  // namespace shardplan
