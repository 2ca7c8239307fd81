#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "layouts/collective.h"
#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// The layouts of one tensor with uneven dimensions that a search may pass through, and the steps between them. A state
/// says which pieces of the mesh are in which dimension and which are partial; a dimension that a layout has in parts
/// is in a *form*: it is gathered and sliced as a whole.
class UnevenStates {
 public:
  using Pieces = std::vector<std::uint8_t>;  // numbers of pieces, major to minor

  struct State {
    std::vector<Pieces> dimensions;
    std::vector<char> parts;  // by dimension: the number of its form, from 1; 0: not in parts
    Pieces partial;           // ascending
    Reduction reduction = Reduction::kSum;

    auto operator<=>(const State&) const = default;
  };

  struct Edge {
    State target;
    CollectiveStep step;  // kind, axes and dimensions
  };
  using Visit = std::function<void(Edge)>;

  /// How a search compares paths: those within the memory bound first.
  struct Label {
    std::int64_t largest = 0;  // elements of a shard on the way, or the bound
    Picoseconds time = 0;
    Bytes sent = 0;
    std::int64_t steps = 0;

    auto operator<=>(const Label&) const = default;
    Label then(const StepCost& cost, std::int64_t elements) const;
  };

  /// `pieces` of the mesh; all layouts are made of these.
  UnevenStates(const Shape& shape, Bytes element_bytes, std::vector<AxisRef> pieces, const CollectiveCosts& costs);

  /// The state of a canonical layout. Its forms and its reduction become possible.
  State encode(const TensorLayout& layout);
  TensorLayout decode(const State& state) const;
  /// How many forms and reductions are known: the steps that leave a state are the same ones while it does not change.
  std::size_t num_known() const;

  /// One device's elements, with padding.
  std::int64_t local_elements(const State& state) const;
  /// The elements of the larger buffer of a step, with the padding that all its pieces have.
  std::int64_t padded_elements(const State& before, const Edge& edge) const;
  StepCost cost_of(const State& before, const Edge& edge) const;

  /// The steps that leave a state. Towards a `target` only its forms are entered, and where there are many pieces they are
  /// permuted and made partial only as they are there.
  void leave(const State& state, const State* target, const Visit& visit) const;

  static constexpr std::size_t kMostPermuted = 5;  // pieces of which all permutations are tried

 private:
  struct Form {
    DimensionLayout layout;
    Pieces pieces;
  };

  void append(const AxisRef& axis, Pieces& pieces) const;
  char form(std::size_t d, Form wanted);
  std::vector<AxisRef> axes(const Pieces& pieces) const;
  std::int64_t product(const Pieces& pieces) const;
  std::int64_t local_extent(const State& state, std::size_t d) const;
  Edge edge(State target, CollectiveKind kind, const Pieces& group, std::optional<std::size_t> from_dim,
            std::optional<std::size_t> to_dim) const;
  bool may_follow(const State& state, std::size_t d, const Pieces& group) const;
  void place(const State& state, std::size_t d, const Pieces& pieces, const Pieces& placed,
             const std::function<void(State, const Pieces&)>& visit) const;
  void take(const State& state, std::size_t d, const State* target, const Visit& visit) const;
  void make_partial(const State& without, const Pieces& pieces, std::optional<std::size_t> from_dim,
                    const State* target, const Visit& visit) const;
  void leave_parts(const State& state, std::size_t d, const Pieces& unused, const State* target,
                   const Visit& visit) const;
  void permutes(const State& state, const State* target, const Visit& visit) const;
  void fill(const State& state, std::size_t d, const State& next, const State* target, const Visit& visit) const;
  Pieces moved(const State& before, const State& after) const;

  Shape shape_;
  Bytes element_bytes_;
  std::vector<AxisRef> pieces_;
  const CollectiveCosts& costs_;
  std::vector<std::vector<Form>> forms_;  // by dimension
  std::vector<Reduction> reductions_;     // that states may be partial over
};

/// Whether a layout's axes are rows of whole ones of `pieces`.
bool consists_of(const TensorLayout& layout, const std::vector<AxisRef>& pieces);

}  // namespace shardplan
