#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "operators/building/sliding_window.h"
#include "operators/kernel.h"

namespace shardplan {

/// One window for each of three spatial dimensions, whatever number an operator has.
using ThreeWindows = std::array<SlidingWindow, 3>;

/// With dimensions of one position before those that there are.
inline ThreeWindows as_three(const SpatialWindows& windows) {
  ThreeWindows three;
  std::ranges::copy(windows, three.end() - static_cast<std::ptrdiff_t>(windows.size()));
  return three;
}

/// The spatial part of a local tensor, and its place in the global one.
struct Volume {
  std::array<Interval, 3> ranges = {Interval{0, 1}, Interval{0, 1}, Interval{0, 1}};

  static Volume of(const OperandView& view) {
    Volume volume;
    for (std::size_t d = 2; d < view.shape.size(); ++d) {
      volume.ranges[3 - view.shape.size() + d] = {view.begin[d], view.begin[d] + view.shape[d]};
    }
    return volume;
  }
  std::int64_t extent(std::size_t d) const { return ranges[d].end - ranges[d].begin; }
  std::int64_t size() const { return extent(0) * extent(1) * extent(2); }
  std::int64_t offset(std::int64_t layer, std::int64_t row, std::int64_t column) const {
    return ((layer - ranges[0].begin) * extent(1) + row - ranges[1].begin) * extent(2) + column - ranges[2].begin;
  }
};

/// Calls body(offset in x, offset in y, count, step in x) for each run of products of one weight in one pair of
/// channels.
template <class Body>
void for_each_run(const ThreeWindows& windows, std::int64_t tap, const Volume& x, const Volume& y, Body body) {
  std::array<std::int64_t, 3> r{};
  std::array<Interval, 3> outputs;
  for (std::size_t d = 3; d-- > 0; tap /= windows[d].kernel) {
    r[d] = tap % windows[d].kernel;
    outputs[d] = windows[d].outputs_reading(r[d], x.ranges[d], y.ranges[d]);
  }
  const auto& [layers, rows, columns] = outputs;
  if (columns.begin >= columns.end) return;
  for (std::int64_t k = layers.begin; k < layers.end; ++k) {
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      body(x.offset(windows[0].position(k, r[0]), windows[1].position(i, r[1]),
                    windows[2].position(columns.begin, r[2])),
           y.offset(k, i, columns.begin), columns.end - columns.begin, windows[2].stride);
    }
  }
}

}  // namespace shardplan
