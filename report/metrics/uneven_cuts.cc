#include "report/metrics/uneven_cuts.h"

#include <fmt/format.h>

#include "layouts/uneven.h"

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
