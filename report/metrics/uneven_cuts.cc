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

}  // namespace shardplan
