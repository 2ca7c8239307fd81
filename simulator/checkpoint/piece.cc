#include "simulator/checkpoint/piece.h"

#include <algorithm>

namespace shardplan {
namespace {

/// A run of positions that two pieces share along a dimension, as offsets in each.
struct Shared {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t count = 0;
};

std::vector<Shared> shared_runs(const std::vector<PieceRuns::Run>& from, const std::vector<PieceRuns::Run>& to) {
  std::vector<Shared> shared;
  std::int64_t from_offset = 0;
  std::int64_t to_offset = 0;
  for (std::size_t i = 0, k = 0; i < from.size() && k < to.size();) {
    const std::int64_t begin = std::max(from[i].begin, to[k].begin);
    const std::int64_t from_end = from[i].begin + from[i].count;
    const std::int64_t to_end = to[k].begin + to[k].count;
    const std::int64_t end = std::min(from_end, to_end);
    if (begin < end)
      shared.push_back({from_offset + begin - from[i].begin, to_offset + begin - to[k].begin, end - begin});
    if (from_end <= to_end) {
      from_offset += from[i++].count;
    } else {
      to_offset += to[k++].count;
    }
  }
  return shared;
}

}  // namespace

Shape PieceRuns::shape() const {
  Shape shape;
  for (const std::vector<Run>& runs : dimensions) {
    std::int64_t count = 0;
    for (const Run& run : runs) count += run.count;
    shape.push_back(count);
  }
  return shape;
}

Shape PieceRuns::begin() const {
  Shape begin;
  for (const std::vector<Run>& runs : dimensions) begin.push_back(runs.front().begin);
  return begin;
}

PieceRuns whole_piece(const Shape& shape) {
  PieceRuns piece;
  for (const std::int64_t size : shape) piece.dimensions.push_back({{0, size}});
  return piece;
}

PieceRuns held_piece(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape, std::int64_t point) {
  if (layout.is_replicated()) return whole_piece(shape);
  PieceRuns piece;
  for (const std::vector<std::int64_t>& positions : held_indices(layout, mesh, shape, point)) {
    std::vector<PieceRuns::Run> runs;
    for (const std::int64_t position : positions) {
      if (!runs.empty() && runs.back().begin + runs.back().count == position) {
        ++runs.back().count;
      } else {
        runs.push_back({position, 1});
      }
    }
    piece.dimensions.push_back(std::move(runs));
  }
  return piece;
}

void for_each_shared_row(const PieceRuns& from, const PieceRuns& to,
                         const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& copy) {
  const Shape from_shape = from.shape();
  const Shape to_shape = to.shape();
  std::vector<std::vector<Shared>> shared;
  for (std::size_t d = 0; d < from_shape.size(); ++d) {
    shared.push_back(shared_runs(from.dimensions[d], to.dimensions[d]));
    if (shared.back().empty()) return;
  }
  std::size_t outer = shared.size();
  std::int64_t inner = 1;
  while (outer > 0) {
    const Shared& only = shared[outer - 1].front();
    const bool is_whole =
        shared[outer - 1].size() == 1 && only.count == from_shape[outer - 1] && only.count == to_shape[outer - 1];
    if (!is_whole) break;
    inner *= only.count;
    --outer;
  }
  const auto visit = [&](const auto& self, std::size_t d, std::int64_t from_at, std::int64_t to_at) -> void {
    if (d == outer) return copy(from_at, to_at, inner);
    for (const Shared& run : shared[d]) {
      const std::int64_t from_row = from_at * from_shape[d] + run.from;
      const std::int64_t to_row = to_at * to_shape[d] + run.to;
      if (d + 1 == outer) {
        copy(from_row * inner, to_row * inner, run.count * inner);
        continue;
      }
      for (std::int64_t i = 0; i < run.count; ++i) self(self, d + 1, from_row + i, to_row + i);
    }
  };
  visit(visit, 0, 0, 0);
}

}  // namespace shardplan
