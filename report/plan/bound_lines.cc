#include "report/plan/bound_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "report/metrics/plan_metrics.h"
#include "report/text/text_table.h"

namespace shardplan {
namespace {

/// Whether strategies could use a part of the piece, if it were split.
bool can_be_cut(const AxisRef& piece) {
  for (std::int64_t factor = 2; factor * factor <= piece.size; ++factor) {
    if (piece.size % factor == 0) return true;
  }
  return false;
}

/// Which plans the bound covers, unless all: " with uniform layers, the given layouts and mesh pieces 8 x 2 x 4".
std::string covered_plans(const Plan& plan) {
  std::vector<std::string> limits;
  if (plan.has_uniform_layers) limits.push_back("uniform layers");
  if (has_given_layouts(plan)) limits.push_back("the given layouts");
  if (plan.tried_shapes.empty() && std::ranges::any_of(plan.pieces, &can_be_cut)) {
    std::vector<std::int64_t> sizes;
    for (const AxisRef& piece : plan.pieces) sizes.push_back(piece.size);
    limits.push_back(fmt::format("mesh pieces {}", fmt::join(sizes, " x ")));
  }
  if (limits.empty()) return {};
  const std::string last = std::move(limits.back());
  limits.pop_back();
  return fmt::format(" with {}{}{}", fmt::join(limits, ", "), limits.empty() ? "" : " and ", last);
}

}  // namespace

std::string objective_line(const Plan& plan) {
  std::string figure = to_string(plan.cost), best = to_string(plan.bound), limit;
  const std::string none = "no plan" + covered_plans(plan);
  switch (plan.options.level) {
    case Level::kRatio:
      // The bound is on communication: elementwise work that a plan repeats would raise its ratio.
      figure = ratio_text(plan.time);
      best = format_time(plan.bound.amount);
      limit = plan.time.communication == 0
                  ? "nothing is communicated"
                  : none + (plan.program.buckets.empty() ? " communicates less" : " communicates less without buckets");
      break;
    case Level::kMemory:
      limit = none + ", in the order of the graph, needs less";
      break;
    case Level::kSpeed:
      limit = none + (plan.is_overlapped ? " without overlap" : "") + " takes less";
      break;
  }
  if (plan.program.workers > 1) {
    const std::optional<double> share = gap(plan.cost, plan.bound);
    std::string known = "gap to the optimum unknown: the search does not account for sends and waiting";
    if (plan.mesh.num_devices() == 1) known = "the only plan: place assigns every operator to a worker";
    if (plan.mesh.num_devices() == 1 && plan.status == PlanStatus::kFeasible && share) {
      known += fmt::format("; its order is within {} % of the optimum: none takes less than {}", gap_text(share), best);
    }
    return figure_line(to_string(plan.options.level), figure, known);
  }
  std::string verdict;
  bool is_optimal = plan.status == PlanStatus::kOptimal;
  if (plan.overlapped_bound) {
    figure = format_time(plan.time.step());
    best = format_time(*plan.overlapped_bound);
    const char* const orders = plan.is_bound_one_block_ahead ? " that recomputes at most one block ahead" : "";
    limit = fmt::format("{}, in any order{}, takes less", none, orders);
    is_optimal = plan.time.step() <= *plan.overlapped_bound;
  }
  const std::optional<double> share = open_gap(plan);
  const bool has_figure = plan.options.level != Level::kRatio || ratio(plan.time);
  if (!is_optimal && !share) {
    verdict = "gap to the optimum unknown";
  } else if (is_optimal) {
    verdict = (has_figure ? "optimal: " : "") + limit;
  } else {
    const std::string near = *share < 1 ? fmt::format("optimal within {} %: ", gap_text(share))
                                        : fmt::format("at most {} % above the optimum: ", gap_text(share));
    verdict = fmt::format("{}{} than {}", has_figure ? near : "", limit, best);
  }
  if (!has_figure) verdict = "undefined, as products are repeated; " + verdict;
  if (plan.mindspore) verdict += ", for the given forward strategies";
  if (!plan.candidates_complete) verdict += " (candidates: restricted)";
  return figure_line(to_string(plan.options.level), figure, verdict);
}

std::string layers_line(const Plan& plan) {
  if (!plan.has_uniform_layers) return {};
  std::string verdict = "savings by free layers were not bounded; try --layers free";
  const std::int64_t found = plan.overlapped_bound ? plan.time.step() : plan.cost.amount;
  if (found == 0 || (plan.free_bound && found <= plan.free_bound->amount)) {
    verdict = "free layers would save nothing";
  } else if (plan.free_bound) {
    const char* const of[] = {"of the communication", "of the peak",
                              plan.overlapped_bound ? "of the step" : "of the step without overlap"};
    const double share = 1 - static_cast<double>(plan.free_bound->amount) / static_cast<double>(found);
    verdict = fmt::format("free layers could save at most {} % {}", gap_text(share), of[number_of(plan.options.level)]);
  }
  if (plan.free_bound && has_given_layouts(plan)) verdict += ", with the given layouts";
  return figure_line("layers", "uniform", verdict);
}

}  // namespace shardplan
