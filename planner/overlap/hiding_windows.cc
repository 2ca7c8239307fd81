#include "planner/overlap/hiding_windows.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/integer.h"
#include "program/overlapped_timeline.h"

namespace shardplan {
namespace {

/// Links that are busy during this share of the kernels have room for others; the rest of the way they have less.
constexpr std::int64_t kRoomyPercent = 80;

/// For how long kernels run, and for how long links are busy meanwhile, up to any moment.
class Usage {
 public:
  void add_kernel(OverlappedTimeline::Span span) { add(span, 1, 0); }
  void add_collective(OverlappedTimeline::Span span) { add(span, 0, 1); }

  /// To be called when all are added.
  void sum_up() {
    std::sort(changes_.begin(), changes_.end());
    sums_.push_back({});
    Sum now;
    int kernels = 0, collectives = 0;
    for (const auto& [time, of_kernels, of_collectives] : changes_) {
      if (kernels > 0) now.kernels += time - now.time;
      if (kernels > 0 && collectives > 0) now.busy += time - now.time;
      now.time = time;
      sums_.push_back(now);
      kernels += of_kernels;
      collectives += of_collectives;
    }
  }

  std::pair<Picoseconds, Picoseconds> until(Picoseconds time) const {
    const auto after = std::upper_bound(sums_.begin(), sums_.end(), time,
                                        [](Picoseconds moment, const Sum& sum) { return moment < sum.time; });
    if (after == sums_.begin()) return {0, 0};
    const Sum& before = after[-1];
    if (after == sums_.end() || after->time == before.time) return {before.kernels, before.busy};
    const auto between = [&](Picoseconds from, Picoseconds to) {
      return from + multiply_divide(to - from, time - before.time, after->time - before.time);
    };
    return {between(before.kernels, after->kernels), between(before.busy, after->busy)};
  }

 private:
  struct Sum {
    Picoseconds time = 0, kernels = 0, busy = 0;
  };
  void add(OverlappedTimeline::Span span, int kernels, int collectives) {
    if (span.end == span.begin) return;
    changes_.emplace_back(span.begin, kernels, collectives);
    changes_.emplace_back(span.end, -kernels, -collectives);
  }

  std::vector<std::tuple<Picoseconds, int, int>> changes_;  // how many more of each run from this moment on
  std::vector<Sum> sums_;
};

/// When the operators of a graph run in a program.
class OperatorTimes {
 public:
  OperatorTimes(const OperatorGraph& graph, const ParallelProgram& program)
      : graph_(graph),
        line_(overlapped_timeline(program)),
        first_(graph.operators().size()),
        last_end_(graph.operators().size(), 0) {
    const auto busiest = std::max_element(line_.link_busy.begin(), line_.link_busy.end()) - line_.link_busy.begin();
    const std::size_t in_loop = program.num_in_micro_batch();
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      const Instruction& instruction = program.instructions[i];
      const OverlappedTimeline::Span span = line_.spans[i];
      if (instruction.kind != InstructionKind::kOperator) {
        if ((instruction.links >> busiest & 1) != 0) usage_.add_collective(span);
        continue;
      }
      usage_.add_kernel(span);
      OverlappedTimeline::Span last = span;
      if (i < in_loop && !line_.last_run.empty()) {
        last = {line_.last_run[i], line_.last_run[i] + (span.end - span.begin)};
        if (last.begin > span.end) usage_.add_kernel(last);
      }
      if (!instruction.op) continue;
      std::optional<OverlappedTimeline::Span>& first = first_[*instruction.op];
      if (!first) first = span;
      first->begin = std::min(first->begin, span.begin);
      first->end = std::max(first->end, span.end);
      last_end_[*instruction.op] = std::max(last_end_[*instruction.op], last.end);
    }
    usage_.sum_up();
  }

  /// Kernels, and links that are busy meanwhile, while what is communicated may be on its way.
  std::pair<Picoseconds, Picoseconds> window(const TensorVersions& versions,
                                             const ModelProblem::Communicated& what) const {
    const TensorVersion* version = what.version ? &versions.all[*what.version] : nullptr;
    const TensorId tensor =
        version != nullptr ? version->tensor : graph_.operators()[what.reader.op].operands[what.reader.operand];
    const std::int64_t runs = version != nullptr ? runs_of(graph_, *version) : graph_.runs(what.reader.op);
    Picoseconds begin = 0, end = line_.end;
    if (const auto producer = graph_.tensor(tensor).producer; producer && first_[*producer]) {
      begin = graph_.runs(*producer) > runs ? last_end_[*producer] : first_[*producer]->end;
    }
    const auto end_before = [&](OperatorId reader) {
      if (first_[reader] && first_[reader]->begin >= begin) end = std::min(end, first_[reader]->begin);
    };
    if (version == nullptr) {
      end_before(what.reader.op);
    } else {
      for (const Reader& reader : version->readers) end_before(reader.op);
    }
    if (end <= begin) return {0, 0};
    const auto [kernels_before, busy_before] = usage_.until(begin);
    const auto [kernels, busy] = usage_.until(end);
    return {kernels - kernels_before, busy - busy_before};
  }

 private:
  const OperatorGraph& graph_;
  OverlappedTimeline line_;
  Usage usage_;
  IdVector<OperatorId, std::optional<OverlappedTimeline::Span>> first_;  // in the first run of the loop
  IdVector<OperatorId, Picoseconds> last_end_;                           // when the last run ends
};

}  // namespace

HidingWindows::HidingWindows(const SearchedModel& model) : model_(model) {
  std::map<std::tuple<NodeId, NodeId, MatrixId>, std::uint32_t> known;
  for (const ProblemEdge& edge : model.problem.problem.edges) {
    const auto tied = [&](NodeId node) { return model.ties ? (*model.ties)[node] : node; };
    const std::tuple key(tied(edge.from), tied(edge.to), edge.matrix);
    const auto group = known.try_emplace(key, static_cast<std::uint32_t>(members_.size())).first->second;
    if (group == members_.size()) members_.push_back(0);
    ++members_[group];
    group_.push_back(group);
  }
  sums_.resize(members_.size());
}

void HidingWindows::add(const ParallelProgram& program) {
  const OperatorTimes times(model_.graph, program);
  for (const EdgeId id : group_.ids()) {
    const auto [kernels, busy] = times.window(model_.versions, model_.problem.communicated[id]);
    sums_[group_[id]].kernels += kernels;
    sums_[group_[id]].busy += busy;
  }
  ++plans_;
}

StrategyProblem HidingWindows::estimated(const Hiding& hiding) const {
  SHARDPLAN_CHECK(plans_ > 0);
  const StrategyProblem& known = model_.problem.problem;
  StrategyProblem result = without_matrices(known);
  std::vector<std::optional<MatrixId>> of_group(members_.size());
  std::map<MatrixId, MatrixId> unchanged;
  for (const EdgeId id : result.edges.ids()) {
    const std::uint32_t group = group_[id];
    if (!of_group[group]) {
      const Window& sum = sums_[group];
      const Picoseconds room = percent_of(sum.kernels / (members_[group] * plans_), hiding.room_percent);
      const auto busy = sum.kernels > 0 ? static_cast<std::int64_t>(Int128{sum.busy} * 100 / sum.kernels) : 0;
      const std::int64_t crowded = std::max<std::int64_t>(0, (busy - kRoomyPercent) * 100 / (100 - kRoomyPercent));
      const MatrixId of_edge = result.edges[id].matrix;
      const CostMatrix& matrix = known.matrices[of_edge];
      std::vector<std::int64_t> costs = matrix.costs;
      bool is_changed = false;
      for (std::int64_t& cost : costs) {
        if (cost == 0 || cost >= kForbidden) continue;
        const Picoseconds exposed = std::max<Picoseconds>(0, cost - room);
        const Picoseconds hidden = percent_of(cost, hiding.slowdown_percent);
        const Picoseconds estimate = hidden + percent_of(exposed, 100 - hiding.slowdown_percent);
        const Picoseconds least = percent_of(cost, std::min<std::int64_t>(100, crowded));
        cost = std::max(estimate, least);
        is_changed = true;
      }
      if (is_changed) {
        of_group[group] = result.matrices.push_back({matrix.rows, matrix.columns, std::move(costs)});
      } else {
        const auto [shared, is_new] = unchanged.try_emplace(of_edge);
        if (is_new) shared->second = result.matrices.push_back(matrix);
        of_group[group] = shared->second;
      }
    }
    result.edges[id].matrix = *of_group[group];
  }
  return result;
}

}  // namespace shardplan
