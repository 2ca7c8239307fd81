#include "layouts/redistribution/search/remaining_cost.h"

#include <algorithm>
#include <bit>

namespace shardplan {
namespace {

constexpr std::size_t kMostSets = 729;  // of sharding and partial pieces
constexpr std::size_t kMostShardingSets = 512;

/// All subsets of a set but the empty one.
template <class Visit>
void for_each_subset(std::uint32_t set, Visit visit) {
  for (std::uint32_t some = set; some != 0; some = (some - 1) & set) visit(some);
}

}  // namespace

RemainingCost::RemainingCost(RedistributionGraph& graph, EdgeCosts& costs, std::uint32_t target,
                             std::int64_t least_shards)
    : graph_(graph), costs_(costs), least_shards_(least_shards) {
  if (!list_sets()) return;
  if (spaces_.size() > 1) join_spaces();
  find_all(target);
}

/// False if there are too many.
bool RemainingCost::list_sets() {
  std::size_t num_sets = 0;
  std::size_t num_sharding = 0;
  bool has_partial = false;
  for (std::size_t c = 0; c < graph_.spaces().size(); ++c) {
    const LayoutSpace& all = graph_.spaces()[c];
    has_partial = has_partial || !all.reductions.empty();
    Space& space = spaces_.emplace_back();
    std::int64_t staying = 1;
    for (std::size_t i = 0; i < all.pieces.size(); ++i) {
      if (graph_.stays_in_slot(i)) {
        staying *= all.pieces[i].size;
      } else {
        space.pieces.push_back(i);
      }
    }
    std::size_t sets = 1;
    for (std::size_t i = 0; i < space.pieces.size() && sets <= kMostSets; ++i) sets *= all.reductions.empty() ? 2 : 3;
    num_sets += sets;
    num_sharding += std::size_t{1} << space.pieces.size();
    space.sizes.assign(1, staying);
  }
  with_partial_ = has_partial && num_sets <= kMostSets;
  // Where everything may become partial at any time, nothing remains to pay if partial counts as unused.
  if (num_sharding > kMostShardingSets || (has_partial && !with_partial_ && !graph_.has_only_ends())) return false;
  std::size_t first = 0;
  for (std::size_t c = 0; c < spaces_.size(); ++c) {
    Space& space = spaces_[c];
    space.sizes.resize(std::size_t{1} << space.pieces.size());
    for (std::size_t set = 1; set < space.sizes.size(); ++set) {
      const std::size_t last = space.pieces[static_cast<std::size_t>(std::countr_zero(set))];
      space.sizes[set] = space.sizes[set & (set - 1)] * graph_.spaces()[c].pieces[last].size;
    }
    for (Pieces sharding = 0; sharding <= space.all(); ++sharding) {
      const auto add = [&](Pieces partial) {
        space.alike[{space.sizes[sharding], space.sizes[partial]}].push_back({sharding, partial});
      };
      add(0);
      if (with_partial_) for_each_subset(space.all() & ~sharding, add);
    }
    space.first = first;
    first += with_partial_ ? space.sizes.size() * space.sizes.size() : space.sizes.size();
  }
  remaining_.assign(first, kUnreachable);
  return true;
}

/// Finds the sets that several spaces can say, and links each to the next in a ring.
void RemainingCost::join_spaces() {
  using Key = std::pair<std::vector<AxisRef>, std::vector<AxisRef>>;
  std::map<Key, std::pair<std::uint32_t, Sets>> known;
  same_as_.resize(remaining_.size());
  for (std::uint32_t c = 0; c < spaces_.size(); ++c) {
    const auto axes = [&](Pieces pieces) {
      std::vector<AxisRef> result;
      for (std::size_t i = 0; i < spaces_[c].pieces.size(); ++i) {
        if ((pieces & 1u << i) != 0) result.push_back(graph_.spaces()[c].pieces[spaces_[c].pieces[i]]);
      }
      return joined(result);
    };
    for (const auto& [numbers, list] : spaces_[c].alike) {
      for (const Sets& sets : list) {
        same_as_[spaces_[c].position(sets)] = {c, sets};
        const auto [same, is_new] = known.try_emplace({axes(sets.sharding), axes(sets.partial)}, c, sets);
        if (is_new) continue;
        const auto& [other, other_sets] = same->second;
        std::swap(same_as_[spaces_[c].position(sets)], same_as_[spaces_[other].position(other_sets)]);
      }
    }
  }
}

std::size_t RemainingCost::position(std::uint32_t state) const {
  const std::size_t c = graph_.space_of(state);
  const Placement& placement = *graph_.placement(state, c);
  Sets sets;
  for (std::size_t i = 0; i < spaces_[c].pieces.size(); ++i) {
    const Placement::Position position = placement.positions[spaces_[c].pieces[i]];
    if (Placement::is_in_slot(position)) {
      sets.sharding |= 1u << i;
    } else if (position != Placement::kUnused && with_partial_) {
      sets.partial |= 1u << i;
    }
  }
  return spaces_[c].position(sets);
}

/// Dijkstra's algorithm from the target against the steps' directions.
void RemainingCost::find_all(std::uint32_t target) {
  const std::size_t last = position(target);
  for (std::uint32_t c = 0; c < spaces_.size(); ++c) {
    for (const auto& [numbers, list] : spaces_[c].alike) {
      for (const Sets& sets : list) {
        if (spaces_[c].position(sets) == last) reach(c, sets, 0);
      }
    }
  }
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    const auto [time, space, sets] = queue_.back();
    queue_.pop_back();
    if (time == remaining_[spaces_[space].position(sets)]) leave(space, sets, time);
  }
}

void RemainingCost::reach(std::uint32_t c, const Sets& sets, Picoseconds time) {
  if (spaces_[c].sizes[sets.sharding] < least_shards_) return;
  Picoseconds& known = remaining_[spaces_[c].position(sets)];
  if (time >= known) return;
  known = time;
  queue_.push_back({time, c, sets});
  std::push_heap(queue_.begin(), queue_.end());
}

/// To all sets from which one step leads to these.
void RemainingCost::leave(std::uint32_t c, const Sets& sets, Picoseconds time) {
  Space& space = spaces_[c];
  const auto [sharding, partial] = sets;
  const Pieces unused = space.all() & ~(sharding | partial);
  const std::int64_t shards = space.sizes[sharding];
  if (!same_as_.empty()) {
    const auto& [other, other_sets] = same_as_[space.position(sets)];
    reach(other, other_sets, time);
  }
  for (std::size_t i = 0; i < space.pieces.size(); ++i) {
    const Pieces piece = 1u << i;
    if ((sharding & piece) != 0) reach(c, {sharding & ~piece, partial}, time);  // slice
    if ((partial & piece) != 0) {                                               // to_partial
      reach(c, {sharding, partial & ~piece}, time);
      reach(c, {sharding | piece, partial & ~piece}, time);
    }
    if (!with_partial_ && (unused & piece) != 0 && graph_.may_become_partial(space.pieces[i])) {
      reach(c, {sharding | piece, partial}, time);
    }
  }
  for_each_subset(unused, [&](Pieces some) {
    reach(c, {sharding | some, partial}, time + time_of(c, CollectiveKind::kAllGather, some, shards));
    if (with_partial_)
      reach(c, {sharding, partial | some}, time + time_of(c, CollectiveKind::kAllReduce, some, shards));
  });
  if (with_partial_) {
    for_each_subset(sharding, [&](Pieces some) {
      const std::int64_t before = space.sizes[sharding & ~some];
      reach(c, {sharding & ~some, partial | some}, time + time_of(c, CollectiveKind::kReduceScatter, some, before));
    });
  }
  const std::vector<Sets>& others = space.alike[{shards, space.sizes[partial]}];
  if (others.size() == 1) return;
  const std::vector<Picoseconds>& permutes = least_permutes(c, shards);
  for (const Sets& other : others) {
    const Picoseconds permute = permutes[(other.sharding ^ sharding) | (other.partial ^ partial)];
    if (permute != kUnreachable) reach(c, other, time + permute);
  }
}

Picoseconds RemainingCost::time_of(std::uint32_t c, CollectiveKind kind, Pieces pieces, std::int64_t divisor) {
  std::uint16_t of_graph = 0;
  for (Pieces left = pieces; left != 0; left &= left - 1) {
    of_graph |= static_cast<std::uint16_t>(1u << spaces_[c].pieces[static_cast<std::size_t>(std::countr_zero(left))]);
  }
  return costs_[graph_.edge_class(kind, static_cast<std::uint8_t>(c), of_graph, divisor)].time;
}

/// The cheapest permute in which all of these pieces, and perhaps others, move.
const std::vector<Picoseconds>& RemainingCost::least_permutes(std::uint32_t c, std::int64_t shards) {
  const auto [known, is_new] = spaces_[c].permutes.try_emplace(shards);
  std::vector<Picoseconds>& least = known->second;
  if (!is_new) return least;
  least.assign(spaces_[c].sizes.size(), kUnreachable);
  for (Pieces set = 0; set < least.size(); ++set) {
    if ((set & (set - 1)) != 0) least[set] = time_of(c, CollectiveKind::kCollectivePermute, set, shards);
  }
  for (std::size_t i = 0; i < spaces_[c].pieces.size(); ++i) {
    for (std::size_t set = 0; set < least.size(); ++set) {
      least[set] = std::min(least[set], least[set | std::size_t{1} << i]);
    }
  }
  return least;
}

}  // namespace shardplan
