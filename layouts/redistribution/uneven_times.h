#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.h"
#include "layouts/collective.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// The times of `uneven_redistribution` for many pairs of layouts of one tensor, some nanoseconds each.
class UnevenTimes {
 public:
  /// A layout as a state of the graphs that it is in: one for each reduction that states may be partial over beside sums.
  struct End {
    std::array<std::optional<std::uint32_t>, 3> states;  // by reduction; none if it places no whole pieces
    Reduction reduction = Reduction::kSum;
  };

  UnevenTimes(const Shape& shape, Bytes element_bytes, const CollectiveCosts& costs, bool bounded_memory,
              const std::vector<AxisRef>& pieces);
  UnevenTimes(UnevenTimes&&) noexcept;
  ~UnevenTimes();

  /// Announces a canonical layout. What was found before is found again if it is a new state: all layouts should be
  /// announced first. The answer stays valid.
  End add(const TensorLayout& layout);

  /// `uneven_redistribution(from, to, ..., pieces).time`. Nothing if it has to be asked for: one of them places no whole
  /// pieces, or there are too many pieces.
  std::optional<Picoseconds> time(const End& from, const End& to);

 private:
  struct Graph;

  std::vector<AxisRef> pieces_;
  std::array<std::unique_ptr<Graph>, 3> graphs_;
};

}  // namespace shardplan
