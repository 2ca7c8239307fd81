#include "planner/overlap/kind_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/side_by_side.h"
#include "planner/overlap/kind_problems.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kKindWork = 1'000'000;
constexpr double kKindGap = 1e-2;
constexpr std::size_t kMostAtOnce = 4;

struct FoundKind {
  bool is_searched = false;  // the model can have plans of this kind
  Picoseconds about = 0;     // estimate of its step
  std::optional<Choice> choice;
};

LevelOptions kind_options(LevelOptions options) {
  options.start.reset();
  options.wants_bound = false;
  options.limits.work = std::min(kKindWork, options.limits.work > 0 ? options.limits.work : kKindWork);
  options.limits.gap = kKindGap;
  return options;
}

/// `narrowed`: a copy of the tied problem, possibly restricted to another kind.
FoundKind search_kind(const GlobalDegrees& degrees, const KindSearch& search, StrategyProblem& narrowed) {
  narrowed.nodes = search.tied.problem.nodes;
  narrowed.strategy_tables.resize(search.tied.problem.strategy_tables.size());
  FoundKind kind;
  const SearchedModel& model = search.model;
  kind.is_searched =
      keep_degrees(narrowed, search.tied.node, degrees, model.problem, model.graph, model.versions, model.mesh);
  if (!kind.is_searched) return kind;
  LevelOptions options = kind_options(search.options);
  // A longer kind is dropped, so the result does not depend on when its search ends.
  std::stop_source stop;
  const std::stop_callback forward(search.options.limits.stop, [&] { stop.request_stop(); });
  bool is_hopeless = false;
  options.limits.stop = stop.get_token();
  options.limits.progress = [&](const SearchProgress& progress) {
    if (progress.lower_bound < search.too_long) return;
    is_hopeless = true;
    stop.request_stop();
  };
  const LevelResult found = search_level(narrowed, *make_search(kDefaultSearch), options);
  if (!found.choice || is_hopeless) return kind;
  kind.about = evaluate(narrowed, *found.choice).value({});
  if (kind.about < search.too_long) kind.choice = search.tied.expanded(*found.choice);
  return kind;
}

}  // namespace

FoundKinds search_kinds(std::span<const GlobalDegrees> kinds, const KindSearch& search) {
  std::vector<FoundKind> found(kinds.size());
  std::vector<std::optional<StrategyProblem>> narrowed(num_processors(kMostAtOnce));  // by thread
  side_by_side(narrowed.size(), kinds.size(), [&](std::size_t thread, std::size_t i) {
    if (search.deadline.is_over()) return;
    if (!narrowed[thread]) narrowed[thread] = search.tied.problem;
    found[i] = search_kind(kinds[i], search, *narrowed[thread]);
  });
  FoundKinds result;
  result.searched = std::count_if(found.begin(), found.end(), [](const FoundKind& kind) { return kind.is_searched; });
  std::erase_if(found, [](const FoundKind& kind) { return !kind.choice; });
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.about < b.about; });
  for (FoundKind& kind : found) result.choices.push_back(*std::move(kind.choice));
  return result;
}

}  // namespace shardplan
