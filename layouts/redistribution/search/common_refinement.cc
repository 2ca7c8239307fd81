// The atoms in terms of which two layouts of one tensor can both be written.
//
// If one end uses an axis y of size 8 and the other y:(1)2, the axis has to be split at 2. Between [{x}, {y}] and [{y},
// {x}] on x=2, y=4 the first dimension is split at 2 by one end and at 4 by the other, so y is split where x ends,
// although neither layout says so. A list of products at which something is split is a chain if each divides the next;
// each axis has one, and so has each dimension (only where parts end: the pieces within a part follow from the axes).
//
//   1. `add` collects the splits of each layout. Two ends whose splits are not a chain (6 as 2 x 3 and as 3 x 2) have
//      no common refinement, and each gets its own space.
//   2. `align` carries splits over from one end to the other: where one end splits a dimension inside a piece of the
//      other, that piece's axis is split there, which can in turn split the first end's pieces; so it repeats until
//      nothing changes.
//   3. `pieces` and `slots` give the atoms. The Refinement says how many more splits are added, and in which dimensions
//      pieces can be parked after those of the ends: more of both allows cheaper detours and makes more states.

#include "layouts/redistribution/search/common_refinement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "layouts/index_digits.h"

namespace shardplan {
namespace {

/// Products at which something is split, ascending.
using Cuts = std::set<std::int64_t>;

bool is_chain(const Cuts& cuts) {
  std::int64_t last = 1;
  for (const std::int64_t cut : cuts) {
    if (cut % last != 0) return false;
    last = cut;
  }
  return true;
}

bool add_to_chain(Cuts& cuts, std::int64_t cut) {
  if (!cuts.insert(cut).second) return true;
  if (is_chain(cuts)) return true;
  cuts.erase(cut);
  return false;
}

class Refiner {
 public:
  Refiner(const DeviceMesh& mesh, const Shape& shape)
      : mesh_(mesh), shape_(shape), axis_cuts_(mesh.axes().size()), part_cuts_(shape.size()) {}

  /// False if this layout has no common refinement with those added before.
  bool add(const TensorLayout& layout) {
    std::vector<std::vector<IndexDigit>> digits;
    const auto add_axis = [&](const AxisRef& axis) {
      Cuts& cuts = axis_cuts_[axis.axis];
      return add_to_chain(cuts, axis.before) && add_to_chain(cuts, axis.end());
    };
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      digits.push_back(index_digits(layout.dimensions[d], shape_[d]));
      std::int64_t product = 1;
      for (std::size_t i = 0; i < digits[d].size(); ++i) {
        const IndexDigit& digit = digits[d][i];
        product *= digit.size;
        if (digit.axis && !add_axis(*digit.axis)) return false;
        const bool begins_part = digit.axis && i > 0 && !digits[d][i - 1].axis;
        const bool ends_part = !digit.axis && i + 1 < digits[d].size();
        if (begins_part && !add_to_chain(part_cuts_[d], product / digit.size)) return false;
        if (ends_part && !add_to_chain(part_cuts_[d], product)) return false;
      }
    }
    for (const AxisRef& axis : layout.partial) {
      if (!add_axis(axis)) return false;
    }
    ends_.push_back(std::move(digits));
    return true;
  }

  /// Splits axes where the other end splits the same dimension, until nothing changes. False if a part would end inside
  /// a piece that cannot be split there.
  bool align() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t d = 0; d < shape_.size(); ++d) {
        Cuts cuts = part_cuts_[d];
        for (const auto& end : ends_) {
          for_each_piece(end[d], [&](const AxisRef& piece, std::int64_t before) { cuts.insert(before * piece.size); });
        }
        for (const auto& end : ends_) {
          bool fits = true;
          for_each_piece(end[d], [&](const AxisRef& piece, std::int64_t before) {
            for (const std::int64_t cut : part_cuts_[d]) {
              for (const std::int64_t side : {before, before * piece.size}) {
                fits = fits && (cut % side == 0 || side % cut == 0);
              }
            }
            for (auto cut = cuts.upper_bound(before); cut != cuts.end() && *cut < before * piece.size; ++cut) {
              const bool divides = *cut % before == 0 && before * piece.size % *cut == 0;
              Cuts& axis = axis_cuts_[piece.axis];
              const std::size_t known = axis.size();
              if (divides && add_to_chain(axis, piece.before * (*cut / before))) {
                changed = changed || axis.size() != known;
              } else if (part_cuts_[d].contains(*cut)) {
                fits = false;
              }
            }
          });
          if (!fits) return false;
        }
      }
    }
    return true;
  }

  void cut_to_primes() {
    for (std::size_t axis = 0; axis < axis_cuts_.size(); ++axis) {
      Cuts& cuts = axis_cuts_[axis];
      cuts.insert(1);
      cuts.insert(mesh_.axes()[axis].size);
      Cuts more;
      for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
        std::int64_t at = *cut;
        std::int64_t rest = *std::next(cut) / at;
        for (std::int64_t prime = 2; rest > 1; ++prime) {
          if (prime * prime > rest) prime = rest;
          for (; rest % prime == 0; rest /= prime) more.insert(at *= prime);
        }
      }
      cuts.merge(more);
    }
  }

  std::vector<AxisRef> pieces(bool with_unused_axes) const {
    std::vector<AxisRef> pieces;
    for (std::size_t axis = 0; axis < axis_cuts_.size(); ++axis) {
      if (axis_cuts_[axis].empty() && !with_unused_axes) continue;
      Cuts cuts = axis_cuts_[axis];
      cuts.insert(1);
      cuts.insert(mesh_.axes()[axis].size);
      for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
        pieces.push_back({static_cast<std::uint32_t>(axis), *cut, *std::next(cut) / *cut});
      }
    }
    return pieces;
  }

  std::vector<Slot> slots(Refinement refinement) const {
    struct Dimension {
      Cuts cuts;                 // the products at which a digit ends
      std::int64_t divisor = 1;  // by which devices could shard what follows the splits
      bool needs_rest = false;
    };
    std::vector<Dimension> dimensions(shape_.size());
    std::optional<std::size_t> spare;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      // A digit ends wherever a piece of either end does, unless a piece of the other end crosses that place.
      Cuts& cuts = dimensions[d].cuts;
      Cuts ends = part_cuts_[d];
      for (const auto& end : ends_) {
        for_each_piece(end[d], [&](const AxisRef& piece, std::int64_t before) {
          if (before > 1) ends.insert(before);
          ends.insert(before * piece.size);
        });
      }
      for (const std::int64_t cut : ends) {
        const bool fits = std::all_of(ends.begin(), ends.end(),
                                      [&](std::int64_t other) { return cut % other == 0 || other % cut == 0; });
        if (fits) cuts.insert(cut);
      }
      // Where pieces do cross, as 2 x 3 and 3 x 2 in 6, they follow each other after the digits.
      dimensions[d].needs_rest = cuts.size() < ends.size();
      const bool has_digits = refinement == Refinement::kFull && !dimensions[d].needs_rest;
      if (has_digits) add_prime_cuts(cuts, shape_[d]);
      const std::int64_t last = cuts.empty() ? 1 : *cuts.rbegin();
      dimensions[d].divisor = has_digits ? 1 : std::gcd(shape_[d] / last, mesh_.num_devices());
      if (!spare || dimensions[d].divisor > dimensions[*spare].divisor) spare = d;
    }
    std::vector<Slot> slots;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const auto& [cuts, divisor, needs_rest] = dimensions[d];
      std::int64_t last = 1;
      for (const std::int64_t cut : cuts) {
        slots.push_back({d, cut / last, true});
        last = cut;
      }
      const bool has_rest =
          needs_rest || (refinement == Refinement::kOneSpare ? spare == d : refinement != Refinement::kMinimal);
      if (!cuts.empty() || (has_rest && divisor > 1)) slots.push_back({d, has_rest ? divisor : 1, false});
    }
    return slots;
  }

 private:
  /// Splits the remainders between the splits, and after them, into primes; each prime at most as often as there are
  /// pieces of it.
  void add_prime_cuts(Cuts& cuts, std::int64_t extent) const {
    if (extent == 0) return;
    std::map<std::int64_t, std::size_t> left;
    for (const AxisRef& piece : pieces(true)) ++left[piece.size];
    const std::vector<std::int64_t> borders(cuts.begin(), cuts.end());
    std::int64_t last = 1;
    for (const std::int64_t border : borders) {
      const auto digit = left.find(border / last);
      if (digit != left.end() && digit->second > 0) --digit->second;
      last = border;
    }
    const auto fill = [&](std::int64_t from, std::int64_t to) {
      for (auto& [prime, count] : left) {
        for (; count > 0 && to / from % prime == 0; --count) cuts.insert(from *= prime);
      }
    };
    last = 1;
    for (const std::int64_t border : borders) {
      if (!left.contains(border / last)) fill(last, border);
      last = border;
    }
    fill(last, extent);
  }

  template <class Visit>
  void for_each_piece(const std::vector<IndexDigit>& digits, Visit visit) const {
    std::int64_t product = 1;
    for (const IndexDigit& digit : digits) {
      if (digit.axis) {
        const Cuts& cuts = axis_cuts_[digit.axis->axis];
        const std::int64_t end = digit.axis->end();
        std::int64_t at = digit.axis->before;
        const std::vector<std::int64_t> inside(cuts.upper_bound(at), cuts.upper_bound(end));
        for (const std::int64_t cut : inside) {
          visit(AxisRef{digit.axis->axis, at, cut / at}, product);
          product *= cut / at;
          at = cut;
        }
      } else {
        product *= digit.size;
      }
    }
  }

  const DeviceMesh& mesh_;
  const Shape& shape_;
  std::vector<Cuts> axis_cuts_;
  std::vector<Cuts> part_cuts_;
  std::vector<std::vector<std::vector<IndexDigit>>> ends_;  // by end and dimension
};

LayoutSpace make_space(Refiner& refiner, std::vector<Reduction> reductions, Refinement refinement) {
  if (refinement == Refinement::kFull || refinement == Refinement::kPrime) refiner.cut_to_primes();
  // Including partial states even if neither end is partial, since padding and one all_reduce can save launches.
  if (refinement == Refinement::kFull && reductions.empty()) reductions.push_back(Reduction::kSum);
  return {refiner.pieces(refinement != Refinement::kMinimal), refiner.slots(refinement), std::move(reductions)};
}

}  // namespace

std::vector<Reduction> reductions_of(const TensorLayout& from, const TensorLayout& to) {
  std::vector<Reduction> reductions;
  for (const TensorLayout* end : {&from, &to}) {
    if (!end->partial.empty()) reductions.push_back(end->reduction);
  }
  std::sort(reductions.begin(), reductions.end());
  reductions.erase(std::unique(reductions.begin(), reductions.end()), reductions.end());
  return reductions;
}

std::vector<LayoutSpace> common_spaces(const TensorLayout& from, const TensorLayout& to, const DeviceMesh& mesh,
                                       const Shape& shape, Refinement refinement) {
  const std::vector<Reduction> reductions = reductions_of(from, to);
  Refiner both(mesh, shape);
  if (both.add(from) && both.add(to) && both.align()) return {make_space(both, reductions, refinement)};
  std::vector<LayoutSpace> spaces;
  for (const TensorLayout* end : {&from, &to}) {
    Refiner one(mesh, shape);
    one.add(*end);
    one.align();
    spaces.push_back(make_space(one, reductions, refinement));
  }
  return spaces;
}

}  // namespace shardplan
