#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "layouts/tensor_layout.h"

namespace shardplan {

/// The position of each piece of a mesh: in a slot, at some order among its pieces; among the partial axes; or nowhere
/// (replicated). Two bytes per piece, so that placements are compared and hashed as a few words.
struct Placement {
  static constexpr std::size_t kMostPieces = 16;
  static constexpr std::size_t kMostSlots = 40;
  using Position = std::uint16_t;  // sorts by slot, then order
  static constexpr Position kUnused = 0xffff;
  static constexpr Position kPartial = 0xff00;  // + index of the reduction in LayoutSpace::reductions

  std::array<Position, kMostPieces> positions;  // by piece of the space

  Placement() { positions.fill(kUnused); }
  static Position in_slot(std::size_t slot, std::size_t order) { return static_cast<Position>(slot << 8 | order); }
  static bool is_in_slot(Position position) { return position < kPartial; }
  static std::size_t slot(Position position) { return position >> 8; }
  static std::size_t order(Position position) { return position & 255; }
  using Words = std::array<std::uint64_t, 4>;
  Words words() const { return std::bit_cast<Words>(positions); }
  bool operator==(const Placement& other) const {
    const Words a = words();
    const Words b = other.words();
    return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) == 0;
  }
  auto operator<=>(const Placement& other) const { return positions <=> other.positions; }
};

/// A digit of a dimension's index that pieces may shard, outermost first: the product of those in it must divide
/// `extent`. Of a dimension's last slot only the greatest common divisor with the number of devices is kept, so that
/// tensors of many shapes share one space.
struct Slot {
  std::size_t dimension = 0;
  std::int64_t extent = 1;
  bool continues = false;  // the next slot is the next digit of the same dimension

  auto operator<=>(const Slot&) const = default;
};

/// The layouts of one search: all that put whole `pieces` of the mesh (in mesh order, disjoint) into `slots` of the
/// tensor's dimensions. With the pieces x, y:(1)2, y:(2)2 of x=2, y=4 and one slot for each dimension of a matrix, [{x,
/// y:(2)2}, {y:(1)2}] is the placement x in slot 0 first, y:(1)2 in slot 1 first, y:(2)2 in slot 0 second; [{x}, {y}]
/// is in this space too, since y consists of its two halves.
struct LayoutSpace {
  std::vector<AxisRef> pieces;
  std::vector<Slot> slots;
  std::vector<Reduction> reductions;  // that partial layouts may have; at most two

  auto operator<=>(const LayoutSpace&) const = default;

  /// Nothing if the layout is not in this space. Dimensions without a slot must not be sharded.
  std::optional<Placement> encode(const TensorLayout& layout, const Shape& shape) const;
  /// In canonical form.
  TensorLayout decode(const Placement& placement, const Shape& shape) const;
};

/// Of the space's pieces.
std::int64_t num_devices(const LayoutSpace& space);

/// An estimate of the number of placements, as if every digit except a dimension's last had room for one piece, and
/// pieces of different sizes did not interfere. Saturates.
std::int64_t num_placements(const LayoutSpace& space);

}  // namespace shardplan
