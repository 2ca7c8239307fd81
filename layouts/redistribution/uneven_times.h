#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.h"
#include "layouts/collective.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// The times of `uneven_redistribution` for many pairs of layouts of one tensor, a few microseconds each.
class UnevenTimes {
 public:
  UnevenTimes(const Shape& shape, Bytes element_bytes, const CollectiveCosts& costs, bool bounded_memory,
              const std::vector<AxisRef>& pieces);
  ~UnevenTimes();

  /// Announces a layout. What was found before is found again if its parts are new: all layouts should be announced first.
  void add(const TensorLayout& layout);

  /// `uneven_redistribution(from, to, ..., pieces).time`, for canonical layouts. Nothing if it has to be asked for: one of
  /// them places no whole pieces, or there are too many pieces.
  std::optional<Picoseconds> time(const TensorLayout& from, const TensorLayout& to);

 private:
  struct Graph;

  std::vector<AxisRef> pieces_;
  std::array<std::unique_ptr<Graph>, 3> graphs_;  // by the reduction that states may be partial over beside sums
};

}  // namespace shardplan
