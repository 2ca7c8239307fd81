#include "layouts/redistribution/search/stuck_piece.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace shardplan {
namespace {

/// A slot of a space in which the piece may stand.
struct Place {
  std::size_t space = 0;
  std::size_t slot = 0;
  std::size_t dimension = 0;
  std::vector<std::int64_t> before;  // the products of digits that may stand before the piece in its dimension
};

/// The one piece of a space whose size a prime divides; nothing if there are none or several.
std::optional<std::size_t> only_piece(const LayoutSpace& space, std::int64_t prime) {
  std::optional<std::size_t> result;
  for (std::size_t i = 0; i < space.pieces.size(); ++i) {
    if (space.pieces[i].size % prime != 0) continue;
    if (result) return std::nullopt;
    result = i;
  }
  return result;
}

/// The slots of a space that can be split into as many parts as the piece has. Within a slot only other pieces may
/// precede it. The last slot of a dimension is all the rest: a piece from another space may be there beyond the slot's
/// extent.
std::vector<Place> places_in(const LayoutSpace& space, std::size_t space_index, const AxisRef& piece,
                             const Shape& shape) {
  const std::int64_t others = num_devices(space) / piece.size;
  std::vector<Place> places;
  std::int64_t rows = 1;  // of the slots before this one in its dimension
  for (std::size_t slot = 0; slot < space.slots.size(); ++slot) {
    const Slot& at = space.slots[slot];
    const std::int64_t extent = at.continues ? at.extent : shape[at.dimension] / rows;
    if (extent % piece.size == 0) {
      Place place{space_index, slot, at.dimension, {}};
      for (std::int64_t product = 1; product <= others; ++product) {
        if (others % product == 0 && (extent / piece.size) % product == 0) place.before.push_back(rows * product);
      }
      places.push_back(std::move(place));
    }
    rows = at.continues ? rows * at.extent : 1;
  }
  return places;
}

class PlacesOfPrime {
 public:
  /// Nothing can be said of the prime unless `can_tell`.
  PlacesOfPrime(const RedistributionGraph& graph, const Shape& shape, std::int64_t prime, std::int64_t least_shards)
      : graph_(graph) {
    for (std::size_t space = 0; space < graph.spaces().size(); ++space) {
      const LayoutSpace& of = graph.spaces()[space];
      const std::optional<std::size_t> piece = only_piece(of, prime);
      can_tell_ = piece && num_devices(of) / of.pieces[*piece].size < least_shards;
      if (!can_tell_) return;
      pieces_.push_back(*piece);
      for (Place& place : places_in(of, space, of.pieces[*piece], shape)) places_.push_back(std::move(place));
    }
  }

  bool can_tell() const { return can_tell_; }

  bool may_lead(std::uint32_t source, std::uint32_t target) const {
    std::vector<char> is_reached(places_.size(), 0);
    std::vector<std::size_t> open;
    const auto reach = [&](std::size_t place) {
      if (is_reached[place] == 0) open.push_back(place);
      is_reached[place] = 1;
    };
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (stands_in(source, places_[i])) reach(i);
    }
    while (!open.empty()) {
      const Place& here = places_[open.back()];
      open.pop_back();
      if (stands_in(target, here)) return true;
      for (std::size_t i = 0; i < places_.size(); ++i) {
        if (may_move(here, places_[i])) reach(i);
      }
    }
    return false;
  }

 private:
  const AxisRef& piece(std::size_t space) const { return graph_.spaces()[space].pieces[pieces_[space]]; }

  bool stands_in(std::uint32_t state, const Place& place) const {
    const Placement* const placement = graph_.placement(state, place.space);
    if (placement == nullptr) return false;
    const Placement::Position position = placement->positions[pieces_[place.space]];
    return Placement::is_in_slot(position) && Placement::slot(position) == place.slot;
  }

  /// Within a space by a collective; from one to another where a layout is in both. There an axis that the spaces cut
  /// otherwise stands at the same rows: 3 of 6 behind 2 rows is the same as 2 of 6 behind 1.
  bool may_move(const Place& from, const Place& to) const {
    if (from.space == to.space) return true;
    if (from.dimension != to.dimension) return false;
    const std::int64_t of_from = piece(from.space).before, of_to = piece(to.space).before;
    return std::any_of(from.before.begin(), from.before.end(), [&](std::int64_t rows) {
      return std::any_of(to.before.begin(), to.before.end(),
                         [&](std::int64_t other) { return rows * of_to == other * of_from; });
    });
  }

  const RedistributionGraph& graph_;
  bool can_tell_ = false;
  std::vector<std::size_t> pieces_;  // by space
  std::vector<Place> places_;
};

std::vector<std::int64_t> primes_of(std::int64_t number) {
  std::vector<std::int64_t> primes;
  for (std::int64_t prime = 2; number > 1; ++prime) {
    if (prime * prime > number) prime = number;
    if (number % prime != 0) continue;
    primes.push_back(prime);
    while (number % prime == 0) number /= prime;
  }
  return primes;
}

}  // namespace

bool has_stuck_piece(const RedistributionGraph& graph, const Shape& shape, std::uint32_t source, std::uint32_t target,
                     std::int64_t least_shards) {
  const std::vector<std::int64_t> primes = primes_of(num_devices(graph.spaces().front()));
  return std::any_of(primes.begin(), primes.end(), [&](std::int64_t prime) {
    const PlacesOfPrime places(graph, shape, prime, least_shards);
    return places.can_tell() && !places.may_lead(source, target);
  });
}

}  // namespace shardplan
