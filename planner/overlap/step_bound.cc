// Where weights come from. For one choice the best weights are a cover of least time (least_cover.h): a minimum cut
// between communications and the kernels that they may overlap with. With several levels of links collectives may also
// overlap with each other: then one family counts first (`Counting::first`, what joins or what is on the busiest
// level), and others beside it with limited weights (most_of_each). Callers mix the best of these. The weights of a
// loop's last iteration and of the earlier iterations are determined separately.
#include "planner/overlap/step_bound.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/integer.h"
#include "planner/overlap/joined_problem.h"
#include "planner/overlap/least_cover.h"
#include "planner/overlap/together.h"

namespace shardplan {
namespace {

constexpr std::int64_t kWholeWeight = OverlapWeights::kWhole;
constexpr std::int64_t kFullSpeed = 1'000'000;

std::int64_t of_all_runs(std::int64_t cost, std::int64_t runs) {
  return cost > kForbidden / runs ? kForbidden : cost * runs;
}

std::int64_t sum_of(std::int64_t a, std::int64_t b) { return std::min(kForbidden, a + b); }

/// The time alone of something that takes `time` at a fraction of its speed.
Picoseconds at_speed(Picoseconds time, std::int64_t ppm) { return multiply_divide(time, kFullSpeed, ppm); }

}  // namespace

StepBound::StepBound(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem,
                     Matrices matrices, const IdVector<NodeId, NodeId>& ties, const std::vector<SpeedsTogether>& speeds,
                     bool has_collective_matmul)
    : graph_(graph),
      versions_(versions),
      problem_(problem),
      matrices_(std::move(matrices)),
      ties_(ties),
      has_collective_matmul_(has_collective_matmul),
      num_levels_(speeds.size()) {
  for (const SpeedsTogether& level : speeds) {
    kernels_ppm_ = std::max(kernels_ppm_, level.kernels_ppm);
    collectives_ppm_ = std::max(collectives_ppm_, level.collectives_ppm);
  }
  // If overlapping gains nothing, both have weight 1.
  slowed_kernel_ = std::min(kWholeWeight, (kFullSpeed - collectives_ppm_) * kWholeWeight / kernels_ppm_);
  slowing_collective_ = std::min(kWholeWeight, (kFullSpeed - kernels_ppm_) * kWholeWeight / collectives_ppm_);
  group();
}

void StepBound::group() {
  kernel_group_ = {};
  kernel_runs_.clear();
  groups_.clear();
  own_group_ = {};
  edge_group_ = {};
  group_kernels();
  const std::vector<Item> items =
      group_items(Concurrency(graph_, versions_, problem_, has_collective_matmul_, tells_copies_));
  if (num_levels_ > 1) find_together(items);
}

void StepBound::group_kernels() {
  std::map<std::tuple<NodeId, StrategyTableId, std::int64_t, bool>, std::uint32_t> known;
  for (const OperatorId op : graph_.operators().ids()) {
    const std::tuple key(ties_[problem_.operator_nodes[op]], problem_.operator_tables[op], graph_.runs(op),
                         is_told_copy(op));
    const auto [found, is_new] = known.try_emplace(key, static_cast<std::uint32_t>(kernel_runs_.size()));
    if (is_new) kernel_runs_.push_back(graph_.runs(op));
    kernel_group_.push_back(found->second);
  }
}

std::vector<StepBound::Item> StepBound::group_items(const Concurrency& concurrency) {
  std::map<MatrixId, bool> costs;
  using Key = std::tuple<NodeId, NodeId, MatrixId, bool, bool, bool, std::int64_t, std::int64_t>;
  std::map<Key, std::uint32_t> known;
  std::vector<OperatorSet> others;  // by group: operators whose groups do not overlap with it yet
  OperatorSet all(graph_.operators().size());
  for (const OperatorId op : graph_.operators().ids()) all.insert(op);
  std::vector<Item> items;
  const auto add = [&](const Key& key, Item item, Concurrency::Place place, const Group& like) {
    const auto [found, is_new] = known.try_emplace(key, static_cast<std::uint32_t>(groups_.size()));
    if (is_new) {
      groups_.push_back(like);
      groups_.back().beside = OperatorSet(kernel_runs_.size());
      others.push_back(all);
    }
    Group& group = groups_[found->second];
    OperatorSet beside = concurrency.beside(place);
    beside &= others[found->second];
    beside.for_each([&](OperatorId op) {
      group.beside.insert(OperatorId(kernel_group_[op]));
      others[found->second].erase(op);
    });
    if (num_levels_ == 1) return found->second;
    if (is_new) {
      group.before = place.before;
      group.behind = std::move(place.behind);
    } else {
      group.before &= place.before;
      group.behind &= place.behind;
    }
    item.group = found->second;
    item.before = std::move(place.before);
    items.push_back(std::move(item));
    return found->second;
  };
  for (const EdgeId id : problem_.problem.edges.ids()) {
    edge_group_.push_back(kNone);
    const ProblemEdge& edge = problem_.problem.edges[id];
    const auto [found, is_new] = costs.try_emplace(edge.matrix, false);
    const std::vector<std::int64_t>& entries = problem_.problem.matrices[edge.matrix].costs;
    if (is_new) found->second = std::any_of(entries.begin(), entries.end(), is_paid);
    if (!found->second) continue;
    const ModelProblem::Communicated& what = problem_.communicated[id];
    Item item;
    item.edge = id;
    Concurrency::Place place =
        what.version ? concurrency.of_version(*what.version) : concurrency.of_operand(what.reader);
    if (what.version) {
      for (const Reader& reader : versions_.all[*what.version].readers) item.waiting.push_back(reader.op);
    } else {
      item.waiting.push_back(what.reader.op);
    }
    std::erase_if(item.waiting, [&](OperatorId op) { return !place.behind.contains(op); });
    Group like;
    like.is_of_edges = true;
    like.joins = matrices_.joins[id] != 0;
    like.outlives_run = concurrency.outlives_run(place);
    like.runs = what.version ? runs_of(graph_, versions_.all[*what.version]) : graph_.runs(what.reader.op);
    const Key key(ties_[edge.from], ties_[edge.to], matrices_.on_all[id], like.joins, like.outlives_run,
                  is_of_told_copy(what), like.runs, -1);
    edge_group_[id] = add(key, std::move(item), std::move(place), like);
  }
  for (const OperatorId op : graph_.operators().ids()) {
    own_group_.push_back(kNone);
    const std::vector<Cost>& entries = problem_.problem.strategy_tables[problem_.operator_tables[op]].costs;
    const auto communicates = [](const Cost& cost) { return is_paid(cost.communication); };
    // A collective that completes a gradient may share a bucket: its short time is left out of the bound.
    if (graph_.operators()[op].parameter || std::none_of(entries.begin(), entries.end(), communicates)) continue;
    Group like;
    like.runs = graph_.runs(op);
    like.outlives_run = like.runs > 1;
    const NodeId node = ties_[problem_.operator_nodes[op]];
    const Key key(node, node, MatrixId(), false, like.outlives_run, is_told_copy(op), like.runs,
                  static_cast<std::int64_t>(problem_.operator_tables[op].value()));
    own_group_[op] = add(key, Item(), concurrency.of_own(op), like);
  }
  return items;
}

bool StepBound::is_of_told_copy(const ModelProblem::Communicated& what) const {
  if (!what.version) return is_told_copy(what.reader.op);
  const auto producer = graph_.tensor(versions_.all[*what.version].tensor).producer;
  return producer && is_told_copy(*producer);
}

void StepBound::find_together(const std::vector<Item>& items) {
  std::vector<PlacedCommunication> communications;
  std::map<VersionId, std::size_t> of_version;
  for (const Item& item : items) {
    const auto version = item.edge ? problem_.communicated[*item.edge].version : std::nullopt;
    if (version) of_version.emplace(*version, communications.size());
    communications.push_back({&item.before, item.waiting, item.group});
  }
  std::vector<std::pair<std::size_t, std::size_t>> known;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].edge) continue;
    for (const VersionId source : made_from(versions_, problem_.communicated[*items[i].edge])) {
      const auto found = of_version.find(source);
      if (found != of_version.end()) known.emplace_back(found->second, i);
    }
  }
  const std::vector<OperatorSet> sets = together(communications, groups_.size(), known, graph_.operators().size());
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].together = sets[i];
    // Of pairs of joining groups nothing is known.
    for (std::size_t j = 0; groups_[i].joins && j < groups_.size(); ++j) {
      if (groups_[j].joins) groups_[i].together.insert(OperatorId(j));
    }
  }
}

// If one kernel waits for all of one group and all of the other group wait for it, no pair needs to be compared; so
// two joining groups are also known to exclude each other.
void StepBound::refine(Matrices matrices) {
  matrices_ = std::move(matrices);
  const auto& operators = graph_.operators();
  if (std::any_of(operators.begin(), operators.end(), [](const GraphOperator& op) { return op.is_copy; })) {
    tells_copies_ = true;
    group();
  }
  if (num_levels_ == 1) return;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (std::size_t j = i; j < groups_.size(); ++j) {
      const Group &one = groups_[i], &other = groups_[j];
      if (!one.behind.meets(other.before) && !other.behind.meets(one.before)) continue;
      groups_[i].together.erase(OperatorId(j));
      groups_[j].together.erase(OperatorId(i));
    }
  }
}

bool StepBound::is_apart(std::size_t item, const std::vector<std::size_t>& others) const {
  const OperatorSet& together = groups_[item].together;
  if (groups_[item].joins || together.contains(OperatorId(item))) return false;
  return std::none_of(others.begin(), others.end(),
                      [&](std::size_t other) { return together.contains(OperatorId(other)); });
}

StepBound::Times StepBound::times_of(const Choice& choice) const {
  const std::vector<Picoseconds> none(groups_.size(), 0);
  Times times{std::vector<Picoseconds>(kernel_runs_.size(), 0), none, {matrices_.on_part.size(), none}};
  const auto add = [](Picoseconds& sum, Picoseconds time) { sum = sum_of(sum, time); };
  for (const OperatorId op : graph_.operators().ids()) {
    const StrategyTable& table = problem_.problem.strategy_tables[problem_.operator_tables[op]];
    const Cost& cost = table.costs[choice.strategy[problem_.operator_nodes[op]].value()];
    add(times.kernels[kernel_group_[op]], of_all_runs(cost.computation, graph_.runs(op)));
    if (own_group_[op] != kNone) add(times.items[own_group_[op]], of_all_runs(cost.communication, graph_.runs(op)));
  }
  for (const EdgeId id : problem_.problem.edges.ids()) {
    const std::uint32_t group = edge_group_[id];
    if (group == kNone) continue;
    add(times.items[group], edge_time(matrices_.on_all[id], id, choice));
    for (std::size_t part = 0; part < matrices_.on_part.size(); ++part) {
      add(times.on_part[part][group], edge_time(matrices_.on_part[part][id], id, choice));
    }
  }
  return times;
}

StepBound::Times StepBound::mean(const std::vector<Times>& times, const std::vector<std::int64_t>& counts) {
  const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  Times result = times.front();
  const auto average = [&](std::vector<Picoseconds>& items, const auto& of) {
    for (std::size_t item = 0; item < items.size(); ++item) {
      Int128 sum = 0;
      for (std::size_t i = 0; i < times.size(); ++i) sum += Int128{counts[i]} * of(times[i])[item];
      items[item] = static_cast<Picoseconds>(sum / all);
    }
  };
  average(
      result.kernels, [](const Times& one) -> const auto& { return one.kernels; });
  average(
      result.items, [](const Times& one) -> const auto& { return one.items; });
  for (std::size_t part = 0; part < result.on_part.size(); ++part) {
    average(
        result.on_part[part], [&](const Times& one) -> const auto& { return one.on_part[part]; });
  }
  return result;
}

StepBound::Weighing StepBound::one_level(const std::vector<std::size_t>& region, const std::vector<Picoseconds>& items,
                                         const std::vector<Picoseconds>& kernels) const {
  Weighing result{std::vector<std::int64_t>(groups_.size(), kWholeWeight),
                  std::vector<std::int64_t>(kernels.size(), kWholeWeight),
                  {}};
  std::vector<Hideable> hideables;
  std::vector<std::size_t> numbers;
  for (const std::size_t i : region) {
    if (groups_[i].outlives_run) {
      result.items[i] = slowing_collective_;
      continue;
    }
    hideables.push_back({at_speed(items[i], collectives_ppm_), groups_[i].beside});
    numbers.push_back(i);
  }
  std::vector<Picoseconds> takers;
  for (const Picoseconds time : kernels) takers.push_back(at_speed(time, kernels_ppm_));
  const Cover cover = least_cover(hideables, takers);
  for (std::size_t h = 0; h < numbers.size(); ++h) {
    if (cover.communications[h]) result.items[numbers[h]] = slowing_collective_;
  }
  for (std::size_t group = 0; group < kernels.size(); ++group) {
    if (cover.kernels[group]) result.kernels[group] = slowed_kernel_;
  }
  return result;
}

// The largest weight of each communication: of those that may run together, either those that exclude each other,
// beginning with what no kernels can hide, or all with one fraction. One without time here may take time under other
// choices: it gets the fraction if that is free.
std::vector<std::int64_t> StepBound::most_of_each(const std::vector<std::size_t>& others,
                                                  const std::vector<Picoseconds>& items,
                                                  const std::vector<Picoseconds>& kernels, bool shares,
                                                  std::int64_t part) const {
  std::vector<std::int64_t> most(groups_.size(), shares ? part : 0);
  if (shares) return most;
  std::vector<Picoseconds> exposed(groups_.size(), 0);  // at least, whatever overlaps with it
  for (const std::size_t i : others) {
    Picoseconds beside = 0;
    groups_[i].beside.for_each([&](OperatorId group) { beside = sum_of(beside, kernels[group.value()]); });
    exposed[i] = std::max<Picoseconds>(0, items[i] - beside);
  }
  std::vector<std::size_t> in_turn = others, whole;
  std::stable_sort(in_turn.begin(), in_turn.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(exposed[a], items[a]) > std::pair(exposed[b], items[b]);
  });
  for (const std::size_t i : in_turn) {
    if (items[i] > 0 && is_apart(i, whole)) whole.push_back(i);
  }
  for (const std::size_t i : others) {
    const bool excludes_all = std::none_of(
        whole.begin(), whole.end(), [&](std::size_t other) { return groups_[i].together.contains(OperatorId(other)); });
    if (excludes_all) most[i] = part;
  }
  for (const std::size_t i : whole) most[i] = kWholeWeight;
  return most;
}

// First the communications that never overlap with each other, against everything that may overlap with them: kernels
// and other communications. Then the others against the kernels that still count.
StepBound::Weighing StepBound::several_levels(const Counting& counting, const std::vector<Picoseconds>& kernels) const {
  Weighing result{std::vector<std::int64_t>(groups_.size(), 0), std::vector<std::int64_t>(kernels.size(), kWholeWeight),
                  std::vector<std::int64_t>(groups_.size(), 0)};
  std::vector<std::size_t> others = counting.others;
  std::erase_if(others, [&](std::size_t i) { return counting.most[i] == 0; });
  const auto time_of_other = [&](std::size_t i) {
    return at_speed(weighted_share(counting.time_others[i], counting.most[i]), collectives_ppm_);
  };
  std::vector<Picoseconds> takers;
  for (const Picoseconds time : kernels) takers.push_back(at_speed(time, kernels_ppm_));
  const std::vector<Picoseconds> of_kernels = takers;
  for (const std::size_t i : others) takers.push_back(time_of_other(i));
  std::vector<Hideable> hideables;
  for (const std::size_t i : counting.first) {
    OperatorSet beside = groups_[i].beside.resized(takers.size());
    for (std::size_t j = 0; j < others.size(); ++j) {
      if (groups_[i].together.contains(OperatorId(others[j]))) beside.insert(OperatorId(kernels.size() + j));
    }
    hideables.push_back({at_speed(counting.time_first[i], collectives_ppm_), std::move(beside)});
  }
  const Cover first = least_cover(hideables, takers);
  OperatorSet covered(kernels.size());
  for (std::size_t group = 0; group < kernels.size(); ++group) {
    if (!first.kernels[group]) continue;
    result.kernels[group] = slowed_kernel_;
    covered.insert(OperatorId(group));
  }
  std::vector<std::size_t> left;
  std::vector<Hideable> of_left;
  for (std::size_t j = 0; j < others.size(); ++j) {
    if (first.kernels[kernels.size() + j]) continue;
    OperatorSet beside = groups_[others[j]].beside;
    beside -= covered;
    of_left.push_back({time_of_other(others[j]), std::move(beside)});
    left.push_back(others[j]);
  }
  const Cover second = least_cover(of_left, of_kernels);
  for (std::size_t group = 0; group < kernels.size(); ++group) {
    if (second.kernels[group]) result.kernels[group] = slowed_kernel_;
  }
  for (std::size_t j = 0; j < left.size(); ++j) {
    if (!second.communications[j]) result.others[left[j]] = counting.most[left[j]];
  }
  for (std::size_t h = 0; h < counting.first.size(); ++h) {
    const std::size_t i = counting.first[h];
    const bool is_alone = std::none_of(others.begin(), others.end(), [&](std::size_t other) {
      return result.others[other] > 0 && groups_[i].together.contains(OperatorId(other));
    });
    if (!first.communications[h]) {
      result.items[i] = kWholeWeight;
    } else if (is_alone) {
      result.items[i] = slowing_collective_;
    }
  }
  return result;
}

StepBound::Weighing StepBound::weighing(const std::vector<std::size_t>& region, const Times& of_run, Counted counted,
                                        bool shares) const {
  const std::vector<std::size_t> none;
  if (counted == Counted::kOnLevel) return one_level(region, of_run.on_part[kOnLevel], of_run.kernels);
  if (counted == Counted::kElsewhere) return one_level(region, of_run.on_part[kElsewhere], of_run.kernels);
  if (num_levels_ == 1) return one_level(region, of_run.items, of_run.kernels);
  std::vector<std::size_t> ended;  // before the iteration ends
  for (const std::size_t i : region) {
    if (!groups_[i].outlives_run) ended.push_back(i);
  }
  Counting counting{none, ended, of_run.items, of_run.items, {}};
  std::size_t levels = num_levels_;
  if (counted != Counted::kAll) counting.time_first = of_run.on_part[kOnLevel];
  if (counted == Counted::kJoining) {
    // Communications that do not join count with their full time.
    const auto joins = [&](std::size_t i) { return groups_[i].joins; };
    std::copy_if(ended.begin(), ended.end(), std::back_inserter(counting.first), joins);
    std::erase_if(counting.others, joins);
  } else if (counted == Counted::kBoth) {
    counting.first = ended;
    counting.time_others = of_run.on_part[kElsewhere];
    --levels;
    for (const std::size_t i : ended) {
      // What one shortest path has elsewhere another may have on the busiest level: their total counts more.
      const Picoseconds rest = groups_[i].is_of_edges ? of_run.items[i] - counting.time_first[i] : 0;
      counting.time_others[i] = std::max(counting.time_others[i], rest);
    }
  }
  if (levels == 1) {
    counting.most.assign(groups_.size(), kWholeWeight);
  } else {
    counting.most = most_of_each(counting.others, counting.time_others, of_run.kernels, shares,
                                 kWholeWeight / static_cast<std::int64_t>(levels));
  }
  return several_levels(counting, of_run.kernels);
}

OverlapWeights StepBound::weights_at(const Times& times, Counted counted, bool shares) const {
  // For one iteration: a region contains each instruction once.
  Times of_run = times;
  for (std::size_t group = 0; group < kernel_runs_.size(); ++group) of_run.kernels[group] /= kernel_runs_[group];
  std::vector<std::size_t> all, repeated;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    of_run.items[i] /= groups_[i].runs;
    for (std::vector<Picoseconds>& part : of_run.on_part) part[i] /= groups_[i].runs;
    all.push_back(i);
    if (groups_[i].runs > 1) repeated.push_back(i);
  }
  const Weighing last = weighing(all, of_run, counted, shares);
  const Weighing rest = graph_.micro_batches() > 1 ? weighing(repeated, of_run, counted, shares) : last;
  const auto of_runs = [](std::int64_t of_last, std::int64_t of_rest, std::int64_t runs) {
    return (of_last + (runs - 1) * of_rest) / runs;
  };
  OverlapWeights weights;
  for (std::size_t group = 0; group < kernel_runs_.size(); ++group) {
    weights.kernels.push_back(of_runs(last.kernels[group], rest.kernels[group], kernel_runs_[group]));
  }
  const std::vector<std::int64_t> none(groups_.size(), 0);
  weights.items = none;
  weights.on_part.resize(matrices_.on_part.size(), none);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const std::int64_t of_item = of_runs(last.items[i], rest.items[i], groups_[i].runs);
    const std::int64_t of_others = last.others.empty() ? 0 : of_runs(last.others[i], rest.others[i], groups_[i].runs);
    switch (counted) {
      case Counted::kAll:
        weights.items[i] = num_levels_ == 1 ? of_item : of_others;
        break;
      case Counted::kJoining:
        weights.items[i] = of_others;
        weights.on_part[kOnLevel][i] = of_item;
        break;
      case Counted::kOnLevel:
        weights.on_part[kOnLevel][i] = of_item;
        break;
      case Counted::kElsewhere:
        weights.on_part[kElsewhere][i] = of_item;
        break;
      case Counted::kBoth:
        if (!groups_[i].is_of_edges) break;
        // Both parts with equal weights are the full time.
        weights.items[i] = std::min(of_item, of_others);
        weights.on_part[kOnLevel][i] = of_item - weights.items[i];
        weights.on_part[kElsewhere][i] = of_others - weights.items[i];
        break;
    }
  }
  return weights;
}

std::vector<OverlapWeights> StepBound::weights_at(const Times& times) const {
  if (num_levels_ == 1) return {weights_at(times, Counted::kAll, false)};
  std::vector<OverlapWeights> result;
  for (const bool shares : {false, true}) result.push_back(weights_at(times, Counted::kAll, shares));
  if (!is_fine()) {
    for (const bool shares : {false, true}) result.push_back(weights_at(times, Counted::kJoining, shares));
    return result;
  }
  result.push_back(weights_at(times, Counted::kOnLevel, false));
  result.push_back(weights_at(times, Counted::kBoth, false));
  // With two levels, what is elsewhere is on one level.
  if (num_levels_ == 2) result.push_back(weights_at(times, Counted::kElsewhere, false));
  return result;
}

Picoseconds StepBound::least_step(const Times& times) const {
  Picoseconds least = 0;
  for (const OverlapWeights& weights : weights_at(times)) least = std::max(least, sum(weights, times));
  return least;
}

OverlapWeights StepBound::weights_of_slowdown() const {
  const std::int64_t collective = slowing_collective_ / static_cast<std::int64_t>(num_levels_);
  OverlapWeights weights;
  weights.kernels.resize(kernel_runs_.size(), kWholeWeight);
  weights.items.resize(groups_.size(), collective);
  weights.on_part.resize(matrices_.on_part.size(), std::vector<std::int64_t>(groups_.size(), 0));
  return weights;
}

Picoseconds StepBound::sum(const OverlapWeights& weights, const Times& times) {
  Picoseconds sum = 0;
  const auto add = [&](const std::vector<std::int64_t>& shares, const std::vector<Picoseconds>& of) {
    for (std::size_t i = 0; i < of.size(); ++i) sum = sum_of(sum, weighted_share(of[i], shares[i]));
  };
  add(weights.kernels, times.kernels);
  add(weights.items, times.items);
  for (std::size_t part = 0; part < times.on_part.size(); ++part) {
    add(weights.on_part[part], times.on_part[part]);
  }
  return sum;
}

StrategyProblem StepBound::weighted(const OverlapWeights& weights) const {
  StrategyProblem result;
  result.name = problem_.problem.name;
  result.strategy_tables = problem_.problem.strategy_tables;
  result.usage_tables = problem_.problem.usage_tables;
  result.nodes = problem_.problem.nodes;
  result.memory_limits = problem_.problem.memory_limits;
  // All operators that a node stands for.
  using Part = std::tuple<StrategyTableId, std::int64_t, std::int64_t, std::int64_t>;  // runs, weights
  IdVector<NodeId, std::vector<Part>> parts(result.nodes.size());
  for (const OperatorId op : graph_.operators().ids()) {
    parts[problem_.operator_nodes[op]].emplace_back(problem_.operator_tables[op], graph_.runs(op),
                                                    weights.kernels[kernel_group_[op]],
                                                    own_group_[op] == kNone ? 0 : weights.items[own_group_[op]]);
  }
  std::map<std::vector<Part>, StrategyTableId> tables;
  for (const NodeId id : result.nodes.ids()) {
    if (parts[id].empty()) continue;  // a node of a version
    const auto [found, is_new] = tables.try_emplace(parts[id]);
    if (is_new) {
      StrategyTable table;
      table.costs.resize(result.num_strategies(id));
      for (std::size_t i = 0; i < table.costs.size(); ++i) {
        for (const auto& [of, runs, kernel, own] : parts[id]) {
          const Cost& cost = problem_.problem.strategy_tables[of].costs[i];
          Cost& sum = table.costs[i];
          sum.computation = sum_of(sum.computation, weighted_share(of_all_runs(cost.computation, runs), kernel));
          sum.communication = sum_of(sum.communication, weighted_share(of_all_runs(cost.communication, runs), own));
        }
      }
      found->second = result.strategy_tables.push_back(std::move(table));
    }
    result.nodes[id].strategies = found->second;
  }
  // An edge costs the weighted sum of its times on all levels and of their parts. An edge that costs and forbids
  // nothing is omitted.
  struct Weighted {
    MatrixId id;
    bool is_nothing = false;
  };
  using Weighed = std::pair<MatrixId, std::int64_t>;
  std::map<std::vector<Weighed>, Weighted> matrices;
  for (const EdgeId id : problem_.problem.edges.ids()) {
    const std::uint32_t group = edge_group_[id];
    std::vector<Weighed> counted = {{matrices_.on_all[id], group == kNone ? 0 : weights.items[group]}};
    for (std::size_t part = 0; part < matrices_.on_part.size(); ++part) {
      const std::int64_t weight = group == kNone ? 0 : weights.on_part[part][group];
      if (weight > 0) counted.emplace_back(matrices_.on_part[part][id], weight);
    }
    const auto [found, is_new] = matrices.try_emplace(counted);
    if (is_new) {
      const CostMatrix& like = problem_.problem.matrices[counted.front().first];
      std::vector<std::int64_t> costs(like.costs.size());
      bool is_nothing = true;
      for (std::size_t i = 0; i < costs.size(); ++i) {
        for (const auto& [of, weight] : counted) {
          costs[i] = sum_of(costs[i], weighted_share(problem_.problem.matrices[of].costs[i], weight));
        }
        is_nothing = is_nothing && costs[i] == 0;
      }
      found->second.is_nothing = is_nothing;
      if (!is_nothing) found->second.id = result.matrices.push_back({like.rows, like.columns, std::move(costs)});
    }
    if (found->second.is_nothing) continue;
    const ProblemEdge& edge = problem_.problem.edges[id];
    result.edges.push_back({edge.from, edge.to, found->second.id});
  }
  return result;
}

}  // namespace shardplan
