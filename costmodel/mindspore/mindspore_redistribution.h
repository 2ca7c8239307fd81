#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layouts/tensor_layout.h"

namespace shardplan {

/// A layout as MindSpore writes it. The map's entries count the matrix's dimensions from the right, -1 is not cut: 512
/// x 1024 with matrix (8, 4) and map (1, 0) has slices of 64 x 256.
struct MindSporeLayout {
  std::vector<std::int64_t> device_matrix;
  std::vector<std::int64_t> tensor_map;
  Shape shape;

  std::int64_t slice_elements() const;
  bool operator==(const MindSporeLayout&) const = default;
};

/// One step of MindSpore's greedy way from one layout to another, on the unified layouts.
struct MindSporeStep {
  enum class Kind { kSplit, kConcat, kPermute };
  Kind kind = Kind::kSplit;
  std::size_t dimension = 0;         // that is cut (split, permute) or put together (concat)
  std::size_t concat_dimension = 0;  // of a permute: that is put together
  std::int64_t devices = 1;

  bool operator==(const MindSporeStep&) const = default;
};

/// Both ends over one device matrix and one shape.
struct UnifiedLayouts {
  MindSporeLayout from;
  MindSporeLayout to;

  bool operator==(const UnifiedLayouts&) const = default;
};

/// Refines device matrices (union of their running products) and shapes until both ends agree; the shapes may differ in
/// the beginning if they hold as many elements (a reshape). Nothing if the products do not divide each other.
std::optional<UnifiedLayouts> unify(const MindSporeLayout& from, const MindSporeLayout& to);

/// The order of MindSpore's operator inference with AllToAll: cuts, permutes until none is left, then gathers; a gather
/// of the first dimension breaks a cycle.
std::vector<MindSporeStep> greedy_steps(const std::vector<std::int64_t>& device_matrix,
                                        const std::vector<std::int64_t>& from_map,
                                        const std::vector<std::int64_t>& to_map);

/// What an edge costs, in elements; callers multiply by the size of one.
struct MindSporeRedistributionCost {
  double forward = 0;   // communication of the forward pass
  double backward = 0;  // and of its gradient
  double computation = 0;
  double memory = 0;

  double communication() const { return forward + backward; }
  bool operator==(const MindSporeRedistributionCost&) const = default;
};

/// As MindSpore's search sees an edge, its two quirks included, since its published choices depend on them: every step
/// is charged with the slice of the first layout, and permutes and gathers pay the work of a cut on top. Ends that
/// cannot be unified are gathered whole and cut again.
MindSporeRedistributionCost mindspore_edge_cost(const MindSporeLayout& from, const MindSporeLayout& to);

}  // namespace shardplan
