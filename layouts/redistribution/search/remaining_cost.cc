#include "layouts/redistribution/search/remaining_cost.h"

#include <algorithm>
#include <bit>

namespace shardplan {
namespace {

constexpr std::size_t kMostSets = 729;  // with partial ones told apart
constexpr std::size_t kMostSetsOfCutting = 512;

/// All subsets of a set but the empty one.
template <class Visit>
void for_each_subset(std::uint32_t set, Visit visit) {
  for (std::uint32_t some = set; some != 0; some = (some - 1) & set) visit(some);
}

}  // namespace

LowerBounds::LowerBounds(RedistributionGraph& graph, PriceList& prices, std::uint32_t target, std::int64_t least_shards)
    : graph_(graph), prices_(prices), least_shards_(least_shards) {
  if (!list_sets()) return;
  if (charts_.size() > 1) join_charts();
  find_all(target);
}

/// False if there are too many.
bool LowerBounds::list_sets() {
  std::size_t num_sets = 0;
  std::size_t num_cutting = 0;
  bool has_partial = false;
  for (std::size_t c = 0; c < graph_.charts().size(); ++c) {
    const PieceChart& all = graph_.charts()[c];
    has_partial = has_partial || !all.reductions.empty();
    Chart& chart = charts_.emplace_back();
    std::int64_t staying = 1;
    for (std::size_t i = 0; i < all.pieces.size(); ++i) {
      if (graph_.stays_in_bin(i)) {
        staying *= all.pieces[i].size;
      } else {
        chart.pieces.push_back(i);
      }
    }
    std::size_t sets = 1;
    for (std::size_t i = 0; i < chart.pieces.size() && sets <= kMostSets; ++i) sets *= all.reductions.empty() ? 2 : 3;
    num_sets += sets;
    num_cutting += std::size_t{1} << chart.pieces.size();
    chart.sizes.assign(1, staying);
  }
  with_partial_ = has_partial && num_sets <= kMostSets;
  // Where everything may become partial at any time, nothing is left of a bound that does not tell partial from unused.
  if (num_cutting > kMostSetsOfCutting || (has_partial && !with_partial_ && !graph_.has_only_ends())) return false;
  std::size_t first = 0;
  for (std::size_t c = 0; c < charts_.size(); ++c) {
    Chart& chart = charts_[c];
    chart.sizes.resize(std::size_t{1} << chart.pieces.size());
    for (std::size_t set = 1; set < chart.sizes.size(); ++set) {
      const std::size_t last = chart.pieces[static_cast<std::size_t>(std::countr_zero(set))];
      chart.sizes[set] = chart.sizes[set & (set - 1)] * graph_.charts()[c].pieces[last].size;
    }
    for (Pieces cutting = 0; cutting <= chart.all(); ++cutting) {
      const auto add = [&](Pieces partial) {
        chart.alike[{chart.sizes[cutting], chart.sizes[partial]}].push_back({cutting, partial});
      };
      add(0);
      if (with_partial_) for_each_subset(chart.all() & ~cutting, add);
    }
    chart.first = first;
    first += with_partial_ ? chart.sizes.size() * chart.sizes.size() : chart.sizes.size();
  }
  bounds_.assign(first, kNoWay);
  return true;
}

/// Finds the sets that several charts can say, and links each to the next in a ring.
void LowerBounds::join_charts() {
  using Key = std::pair<std::vector<AxisRef>, std::vector<AxisRef>>;
  std::map<Key, std::pair<std::uint32_t, Sets>> known;
  same_as_.resize(bounds_.size());
  for (std::uint32_t c = 0; c < charts_.size(); ++c) {
    const auto axes = [&](Pieces pieces) {
      std::vector<AxisRef> result;
      for (std::size_t i = 0; i < charts_[c].pieces.size(); ++i) {
        if ((pieces & 1u << i) != 0) result.push_back(graph_.charts()[c].pieces[charts_[c].pieces[i]]);
      }
      return joined(result);
    };
    for (const auto& [numbers, list] : charts_[c].alike) {
      for (const Sets& sets : list) {
        same_as_[charts_[c].position(sets)] = {c, sets};
        const auto [same, is_new] = known.try_emplace({axes(sets.cutting), axes(sets.partial)}, c, sets);
        if (is_new) continue;
        const auto& [other, other_sets] = same->second;
        std::swap(same_as_[charts_[c].position(sets)], same_as_[charts_[other].position(other_sets)]);
      }
    }
  }
}

std::size_t LowerBounds::position(std::uint32_t state) const {
  const std::size_t c = graph_.chart_of(state);
  const PieceState& places = *graph_.state(state, c);
  Sets sets;
  for (std::size_t i = 0; i < charts_[c].pieces.size(); ++i) {
    const PieceState::Place place = places.place[charts_[c].pieces[i]];
    if (place < PieceState::kPartial) {
      sets.cutting |= 1u << i;
    } else if (place != PieceState::kUnused && with_partial_) {
      sets.partial |= 1u << i;
    }
  }
  return charts_[c].position(sets);
}

/// Dijkstra's algorithm from the target against the steps' directions.
void LowerBounds::find_all(std::uint32_t target) {
  const std::size_t last = position(target);
  for (std::uint32_t c = 0; c < charts_.size(); ++c) {
    for (const auto& [numbers, list] : charts_[c].alike) {
      for (const Sets& sets : list) {
        if (charts_[c].position(sets) == last) reach(c, sets, 0);
      }
    }
  }
  while (!waiting_.empty()) {
    std::pop_heap(waiting_.begin(), waiting_.end());
    const auto [time, chart, sets] = waiting_.back();
    waiting_.pop_back();
    if (time == bounds_[charts_[chart].position(sets)]) leave(chart, sets, time);
  }
}

void LowerBounds::reach(std::uint32_t c, const Sets& sets, Picoseconds time) {
  if (charts_[c].sizes[sets.cutting] < least_shards_) return;
  Picoseconds& known = bounds_[charts_[c].position(sets)];
  if (time >= known) return;
  known = time;
  waiting_.push_back({time, c, sets});
  std::push_heap(waiting_.begin(), waiting_.end());
}

/// To all sets from which one step leads to these.
void LowerBounds::leave(std::uint32_t c, const Sets& sets, Picoseconds time) {
  Chart& chart = charts_[c];
  const auto [cutting, partial] = sets;
  const Pieces unused = chart.all() & ~(cutting | partial);
  const std::int64_t shards = chart.sizes[cutting];
  if (!same_as_.empty()) {
    const auto& [other, other_sets] = same_as_[chart.position(sets)];
    reach(other, other_sets, time);
  }
  for (std::size_t i = 0; i < chart.pieces.size(); ++i) {
    const Pieces piece = 1u << i;
    if ((cutting & piece) != 0) reach(c, {cutting & ~piece, partial}, time);  // slice
    if ((partial & piece) != 0) {                                             // to_partial
      reach(c, {cutting, partial & ~piece}, time);
      reach(c, {cutting | piece, partial & ~piece}, time);
    }
    if (!with_partial_ && (unused & piece) != 0 && graph_.may_become_partial(chart.pieces[i])) {
      reach(c, {cutting | piece, partial}, time);
    }
  }
  for_each_subset(unused, [&](Pieces some) {
    reach(c, {cutting | some, partial}, time + price(c, CollectiveKind::kAllGather, some, shards));
    if (with_partial_) reach(c, {cutting, partial | some}, time + price(c, CollectiveKind::kAllReduce, some, shards));
  });
  if (with_partial_) {
    for_each_subset(cutting, [&](Pieces some) {
      const std::int64_t before = chart.sizes[cutting & ~some];
      reach(c, {cutting & ~some, partial | some}, time + price(c, CollectiveKind::kReduceScatter, some, before));
    });
  }
  const std::vector<Sets>& others = chart.alike[{shards, chart.sizes[partial]}];
  if (others.size() == 1) return;
  const std::vector<Picoseconds>& permutes = least_permutes(c, shards);
  for (const Sets& other : others) {
    const Picoseconds permute = permutes[(other.cutting ^ cutting) | (other.partial ^ partial)];
    if (permute != kNoWay) reach(c, other, time + permute);
  }
}

Picoseconds LowerBounds::price(std::uint32_t c, CollectiveKind kind, Pieces pieces, std::int64_t divisor) {
  std::uint16_t of_graph = 0;
  for (Pieces left = pieces; left != 0; left &= left - 1) {
    of_graph |= static_cast<std::uint16_t>(1u << charts_[c].pieces[static_cast<std::size_t>(std::countr_zero(left))]);
  }
  return prices_[graph_.price(kind, static_cast<std::uint8_t>(c), of_graph, divisor)].time;
}

/// The cheapest permute in which all of these pieces, and perhaps others, move.
const std::vector<Picoseconds>& LowerBounds::least_permutes(std::uint32_t c, std::int64_t shards) {
  const auto [known, is_new] = charts_[c].permutes.try_emplace(shards);
  std::vector<Picoseconds>& least = known->second;
  if (!is_new) return least;
  least.assign(charts_[c].sizes.size(), kNoWay);
  for (Pieces set = 0; set < least.size(); ++set) {
    if ((set & (set - 1)) != 0) least[set] = price(c, CollectiveKind::kCollectivePermute, set, shards);
  }
  for (std::size_t i = 0; i < charts_[c].pieces.size(); ++i) {
    for (std::size_t set = 0; set < least.size(); ++set) {
      least[set] = std::min(least[set], least[set | std::size_t{1} << i]);
    }
  }
  return least;
}

}  // namespace shardplan
