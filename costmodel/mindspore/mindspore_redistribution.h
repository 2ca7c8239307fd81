#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layouts/mindspore_layout.h"
#include "layouts/shape.h"

namespace shardplan {

/// A tensor in MindSpore's layout, each dimension sharded by at most one entry of the device matrix: 512 x 1024 with
/// matrix (8, 4) and map (1, 0) has slices of 64 x 256.
struct MindSporeTensorLayout {
  MindSporeLayout layout;
  Shape shape;

  std::int64_t slice_elements() const;
  bool operator==(const MindSporeTensorLayout&) const = default;
};

/// Both ends over one device matrix and one shape.
struct UnifiedLayouts {
  MindSporeTensorLayout from;
  MindSporeTensorLayout to;

  bool operator==(const UnifiedLayouts&) const = default;
};

/// Refines device matrices (union of their running products) and shapes until both ends agree; the shapes may
/// initially differ if they have the same number of elements (a reshape). Nothing if the products do not divide each
/// other.
std::optional<UnifiedLayouts> unify(const MindSporeTensorLayout& from, const MindSporeTensorLayout& to);

/// The cost of an edge, in elements; callers multiply by the element size.
struct MindSporeRedistributionCost {
  double forward = 0;   // communication of the forward pass
  double backward = 0;  // and of its gradient
  double computation = 0;
  double memory = 0;

  double communication() const { return forward + backward; }
  bool operator==(const MindSporeRedistributionCost&) const = default;
};

/// The cost of an edge as in MindSpore's search, including two quirks on which its published choices depend: every
/// step is charged with the slice of the first layout, and permutes and gathers additionally pay the work of a split.
/// Ends that cannot be unified are gathered completely and split again. The steps are those of the greedy order
/// (layouts/redistribution/greedy_order.h), which layouts/redistribution/greedy_redistribution.h applies to our
/// layouts; here only their cost is computed, on layouts unified as in MindSpore (through reshapes too).
MindSporeRedistributionCost mindspore_edge_cost(const MindSporeTensorLayout& from, const MindSporeTensorLayout& to);

}  // namespace shardplan
