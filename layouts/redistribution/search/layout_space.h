#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "layouts/index_digits.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// Where each piece of a mesh stands: in a bin (a part of a dimension) at a position, among the partial axes, or
/// nowhere (replicated). Two bytes a piece, so that states are compared and hashed as a few words.
struct PieceState {
  static constexpr std::size_t kMostPieces = 16;
  static constexpr std::size_t kMostBins = 40;
  using Place = std::uint16_t;  // sorts by bin, then position
  static constexpr Place kUnused = 0xffff;
  static constexpr Place kPartial = 0xff00;  // + position of the reduction in PieceChart::reductions

  std::array<Place, kMostPieces> place;

  PieceState() { place.fill(kUnused); }
  static Place in_bin(std::size_t bin, std::size_t position) { return static_cast<Place>(bin << 8 | position); }
  static std::size_t bin(Place place) { return place >> 8; }
  static std::size_t position(Place place) { return place & 255; }
  using Words = std::array<std::uint64_t, 4>;
  Words words() const { return std::bit_cast<Words>(place); }
  bool operator==(const PieceState& other) const {
    const Words a = words();
    const Words b = other.words();
    return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) == 0;
  }
  auto operator<=>(const PieceState& other) const { return place <=> other.place; }
};

/// A digit of a dimension's index that pieces may cut, outermost first: the product of those in it must divide
/// `extent`. Of a dimension's last bin only the greatest common divisor with the number of devices is kept, so that
/// tensors of many shapes share one chart.
struct Bin {
  std::size_t dimension = 0;
  std::int64_t extent = 1;
  bool continues = false;  // the next bin is the next digit of the same dimension

  auto operator<=>(const Bin&) const = default;
};

/// A vocabulary for layouts: atoms of the mesh's axes (`pieces`, in mesh order, disjoint) and of the tensor's
/// dimensions (`bins`). All layouts that place whole pieces in bins are the states of a redistribution's search.
struct PieceChart {
  std::vector<AxisRef> pieces;
  std::vector<Bin> bins;
  std::vector<Reduction> reductions;  // that partial layouts may have; at most two

  auto operator<=>(const PieceChart&) const = default;

  /// Nothing if the layout cannot be said with these pieces and bins. Dimensions without a bin must not be cut.
  std::optional<PieceState> encode(const TensorLayout& layout, const Shape& shape) const;
  /// In canonical form.
  TensorLayout decode(const PieceState& state, const Shape& shape) const;
};

/// The states of a chart, roughly: as if every digit but a dimension's last had room for one piece, and pieces of
/// different sizes did not get in each other's way. Saturates.
std::int64_t num_states(const PieceChart& chart);

}  // namespace shardplan
