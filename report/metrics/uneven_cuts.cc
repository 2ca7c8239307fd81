#include "report/metrics/uneven_cuts.h"

#include <fmt/format.h>

#include <set>

#include "layouts/uneven.h"
#include "model/model.h"
#include "strategies/enumerate.h"

namespace shardplan {

double UnevenCut::waste() const { return 1 - static_cast<double>(size) / static_cast<double>(pieces * largest); }

std::vector<UnevenCut> uneven_cuts(const Plan& plan, OperatorId op) {
  const std::vector<Factor>& factors = plan.graph->operation(op).rule.factors;
  std::vector<UnevenCut> cuts;
  for (std::size_t f = 0; f < factors.size(); ++f) {
    const std::int64_t pieces = num_pieces(plan.strategies[op].factors[f]);
    if (factors[f].size % pieces == 0) continue;
    cuts.push_back({op, factors[f].name, factors[f].size, pieces, largest_piece(factors[f].size, pieces)});
  }
  return cuts;
}

std::string to_string(const UnevenCut& cut) {
  return fmt::format("{} of {} in {} pieces of {}, {:.1f} % of them padding", cut.factor, cut.size, cut.pieces,
                     cut.largest, 100 * cut.waste());
}

std::vector<std::string> cuts_that_do_not_fit(const Plan& plan, OperatorId op) {
  const Operation& operation = plan.graph->operation(op);
  std::set<std::uint32_t> heads;
  if (operation.type->head_dimension != nullptr) {
    if (const auto dimension = operation.type->head_dimension(operation)) {
      const std::vector<std::uint32_t>& walked = operation.rule.results[0][*dimension].factors;
      heads.insert(walked.begin(), walked.end());
    }
  }
  const std::int64_t devices = plan.mesh.num_devices();
  const UnevenCuts uneven = plan.model != nullptr && plan.model->parallel.allows_uneven
                                ? UnevenCuts::kWhereNothingElseFits
                                : UnevenCuts::kNone;
  std::vector<std::string> lines;
  for (std::uint32_t f = 0; f < operation.rule.factors.size(); ++f) {
    const Factor& factor = operation.rule.factors[f];
    const bool is_head = heads.contains(f) && factor.size > 1;
    const bool has_enough = factor.size > devices && factor.kind != FactorKind::kNeedReplication;
    if (!is_head && !has_enough) continue;
    if (const auto next = next_cut(operation, f, devices, uneven)) {
      lines.push_back(fmt::format("{} of {}{} in {} pieces: {}", factor.name, factor.size,
                                  is_head ? ", attention heads," : "", next->pieces, next->reason));
    }
  }
  return lines;
}

std::string uneven_line(const Plan& plan) {
  std::size_t count = 0;
  std::optional<UnevenCut> most;
  for (const OperatorId op : plan.graph->operators().ids()) {
    const std::vector<UnevenCut> cuts = uneven_cuts(plan, op);
    count += cuts.empty() ? 0 : 1;
    for (const UnevenCut& cut : cuts) {
      if (!most || cut.waste() > most->waste()) most = cut;
    }
  }
  if (!most) return {};
  return fmt::format("  uneven      {} operator{} in unequal pieces; most padding in {}:\n              {}\n", count,
                     count == 1 ? "" : "s", plan.graph->operators()[most->op].name, to_string(*most));
}

}  // namespace shardplan
