#include "layouts/lower_bounds.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace shardplan {
namespace {

constexpr std::size_t kMostSets = 256;

/// All subsets of a set but the empty one.
template <class Visit>
void for_each_subset(std::uint32_t set, Visit visit) {
  for (std::uint32_t some = set; some != 0; some = (some - 1) & set) visit(some);
}

}  // namespace

LowerBounds::LowerBounds(RedistributionGraph& graph, PriceList& prices, std::uint32_t target, std::int64_t least_shards)
    : graph_(graph), prices_(prices), least_shards_(least_shards) {
  if (graph.charts().size() > 1) return;
  const PieceChart& chart = graph.charts().front();
  num_pieces_ = chart.pieces.size();
  std::size_t num_sets = 1;
  for (std::size_t i = 0; i < num_pieces_ && num_sets <= kMostSets; ++i) num_sets *= chart.reductions.empty() ? 2 : 3;
  if (num_sets > kMostSets) return;
  sizes_.assign(std::size_t{1} << num_pieces_, 1);
  for (std::size_t set = 1; set < sizes_.size(); ++set) {
    const auto last = static_cast<std::size_t>(std::countr_zero(set));
    sizes_[set] = sizes_[set & (set - 1)] * chart.pieces[last].size;
  }
  find_all(target);
}

Picoseconds LowerBounds::of(std::uint32_t state) const {
  return sizes_.empty() ? 0 : bounds_[position(sets_of(state))];
}

LowerBounds::Sets LowerBounds::sets_of(std::uint32_t state) const {
  Sets sets;
  const PieceState& places = graph_.state(state);
  for (std::size_t i = 0; i < num_pieces_; ++i) {
    const PieceState::Place place = places.place[i];
    if (place < PieceState::kPartial) {
      sets.cutting |= 1u << i;
    } else if (place != PieceState::kUnused) {
      sets.partial |= 1u << i;
    }
  }
  return sets;
}

Picoseconds LowerBounds::price(CollectiveKind kind, Pieces pieces, std::int64_t divisor) {
  return prices_[graph_.price(kind, 0, static_cast<std::uint16_t>(pieces), divisor)].time;
}

/// The cheapest permute in which all of these pieces, and perhaps others, move.
const std::vector<Picoseconds>& LowerBounds::least_permutes(std::int64_t shards) {
  const auto [known, is_new] = permutes_.try_emplace(shards);
  std::vector<Picoseconds>& least = known->second;
  if (!is_new) return least;
  least.assign(sizes_.size(), kNoWay);
  for (Pieces set = 0; set < sizes_.size(); ++set) {
    if ((set & (set - 1)) != 0) least[set] = price(CollectiveKind::kCollectivePermute, set, shards);
  }
  for (std::size_t i = 0; i < num_pieces_; ++i) {
    for (std::size_t set = 0; set < least.size(); ++set) {
      least[set] = std::min(least[set], least[set | std::size_t{1} << i]);
    }
  }
  return least;
}

/// Dijkstra's algorithm from the target against the steps' directions.
void LowerBounds::find_all(std::uint32_t target) {
  const Pieces all = static_cast<Pieces>(sizes_.size() - 1);
  const bool has_partial = !graph_.charts().front().reductions.empty();
  bounds_.assign(has_partial ? sizes_.size() * sizes_.size() : sizes_.size(), kNoWay);
  // Sets that a permute turns into each other have as many shards and summands.
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Sets>> alike;
  for (Pieces cutting = 0; cutting <= all; ++cutting) {
    const auto add = [&](Pieces partial) { alike[{sizes_[cutting], sizes_[partial]}].push_back({cutting, partial}); };
    add(0);
    if (has_partial) for_each_subset(all & ~cutting, add);
  }
  using Waiting = std::pair<Picoseconds, std::size_t>;
  std::vector<Waiting> waiting;
  const auto reach = [&](const Sets& sets, Picoseconds time) {
    if (sizes_[sets.cutting] < least_shards_) return;
    Picoseconds& known = bounds_[position(sets)];
    if (time >= known) return;
    known = time;
    waiting.emplace_back(time, position(sets));
    std::push_heap(waiting.begin(), waiting.end(), std::greater<>());
  };
  reach(sets_of(target), 0);
  while (!waiting.empty()) {
    std::pop_heap(waiting.begin(), waiting.end(), std::greater<>());
    const auto [time, at] = waiting.back();
    waiting.pop_back();
    if (time > bounds_[at]) continue;
    const Pieces cutting = static_cast<Pieces>(at) & all;
    const Pieces partial = static_cast<Pieces>(at >> num_pieces_);
    const Pieces unused = all & ~(cutting | partial);
    const std::int64_t shards = sizes_[cutting];
    const Picoseconds here = time;
    for (std::size_t i = 0; i < num_pieces_; ++i) {
      const Pieces piece = 1u << i;
      if ((cutting & piece) != 0) reach({cutting & ~piece, partial}, here);  // slice
      if ((partial & piece) != 0) {                                          // to_partial
        reach({cutting, partial & ~piece}, here);
        reach({cutting | piece, partial & ~piece}, here);
      }
    }
    for_each_subset(unused, [&](Pieces some) {
      reach({cutting | some, partial}, here + price(CollectiveKind::kAllGather, some, shards));
      if (has_partial) reach({cutting, partial | some}, here + price(CollectiveKind::kAllReduce, some, shards));
    });
    if (has_partial) {
      for_each_subset(cutting, [&](Pieces some) {
        reach({cutting & ~some, partial | some},
              here + price(CollectiveKind::kReduceScatter, some, shards / sizes_[some]));
      });
    }
    const std::vector<Sets>& others = alike[{shards, sizes_[partial]}];
    if (others.size() == 1) continue;
    const std::vector<Picoseconds>& permutes = least_permutes(shards);
    for (const Sets& other : others) {
      const Picoseconds permute = permutes[(other.cutting ^ cutting) | (other.partial ^ partial)];
      if (permute != kNoWay) reach(other, here + permute);
    }
  }
}

}  // namespace shardplan
