#include "strategies/strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "layouts/uneven.h"

// A strategy assigns axes to factors; everything else follows from the operator's rule. A dimension that walks several
// factors is sharded by their axes, major first; an axis of a summed factor makes results partial; a windowed dimension
// is sharded as its output factor is, and reads a halo from its neighbours.

namespace shardplan {
namespace {

TensorLayout layout_of_walk(const Operation& operation, const Strategy& strategy, const TensorWalk& walk) {
  const std::vector<Factor>& factors = operation.rule.factors;
  TensorLayout layout;
  layout.dimensions.reserve(walk.size());
  for (const DimensionWalk& dimension : walk) {
    DimensionLayout cut;
    if (dimension.window) {
      cut.parts.push_back({0, strategy.factors[dimension.window->output]});
    } else if (dimension.factors.size() == 1) {
      cut.parts.push_back({0, strategy.factors[dimension.factors[0]]});
    } else {
      for (const std::uint32_t factor : dimension.factors) {
        cut.parts.push_back({factors[factor].size, strategy.factors[factor]});
      }
    }
    if (cut.parts.empty()) cut.parts.push_back({0, {}});
    layout.dimensions.push_back(std::move(cut));
  }
  return layout;
}

const std::vector<std::vector<std::uint32_t>>& groups_of(const Operation& operation, const Strategy& strategy) {
  return strategy.reduction == Reduction::kSum ? operation.rule.linear : operation.rule.monotone;
}

/// Nothing, or why a factor cannot be cut into `pieces` pieces: ": ..." for the end of a message, empty where the
/// numbers say it all.
std::optional<std::string> why_not_in(const Operation& operation, std::size_t factor, std::int64_t pieces) {
  const std::int64_t size = operation.rule.factors[factor].size;
  if (size % pieces == 0) return std::nullopt;
  if (const std::string reason = why_only_even(operation, factor); !reason.empty()) return ": " + reason;
  if (can_be_split(size, pieces)) return std::nullopt;
  if (pieces > size) return std::string();
  const std::int64_t piece = largest_piece(size, pieces);
  return fmt::format(": pieces of {} would leave {} of them empty", piece, pieces - largest_piece(size, piece));
}

std::string axes_text(const DeviceMesh& mesh, const std::vector<AxisRef>& axes) { return mesh.to_string(axes); }

/// A windowed dimension seen from one device: what it reads, and what it owns.
struct WindowPiece {
  Interval reads;
  Interval owns;
};

WindowPiece window_piece(const Operation& operation, const Window& window, std::int64_t extent, std::int64_t pieces,
                         std::int64_t position) {
  const Factor& output = operation.rule.factors[window.output];
  const std::int64_t size = output.size / pieces;
  const Box box{position * size, (position + 1) * size, output.size};
  const std::int64_t owned = extent / pieces;
  return {window_reads(window, operation.rule.factors[window.offset].size, box, extent),
          {position * owned, (position + 1) * owned}};
}

}  // namespace

bool sharded_alike(const Strategy& a, const Strategy& b) {
  if (a.factors.size() != b.factors.size() || joined(a.partial) != joined(b.partial)) return false;
  if (!a.partial.empty() && (a.group != b.group || a.reduction != b.reduction)) return false;
  for (std::size_t f = 0; f < a.factors.size(); ++f) {
    if (a.factors[f] != b.factors[f] && joined(a.factors[f]) != joined(b.factors[f])) return false;
  }
  return true;
}

TensorLayout operand_layout(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                            std::size_t operand) {
  TensorLayout layout = layout_of_walk(operation, strategy, operation.rule.operands[operand]);
  if (!strategy.partial.empty()) {
    const std::vector<std::uint32_t>& group = groups_of(operation, strategy)[strategy.group];
    if (std::find(group.begin(), group.end(), operand) != group.end()) {
      layout.partial = strategy.partial;
      layout.reduction = strategy.reduction;
    }
  }
  return canonical(layout, mesh, operation.operands[operand].shape);
}

TensorLayout result_layout(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                           std::size_t result) {
  const TensorWalk& walk = operation.rule.results[result];
  TensorLayout layout = layout_of_walk(operation, strategy, walk);
  layout.partial = strategy.partial;
  layout.reduction = strategy.reduction;
  for (std::uint32_t factor = 0; factor < operation.rule.factors.size(); ++factor) {
    const Factor& info = operation.rule.factors[factor];
    if (info.kind != FactorKind::kReduction || strategy.factors[factor].empty() || walks(walk, factor)) continue;
    layout.partial.insert(layout.partial.end(), strategy.factors[factor].begin(), strategy.factors[factor].end());
    layout.reduction = info.reduction;
  }
  return canonical(layout, mesh, operation.results[result].shape);
}

bool is_uneven(const Operation& operation, const Strategy& strategy) {
  for (std::size_t factor = 0; factor < strategy.factors.size(); ++factor) {
    if (operation.rule.factors[factor].size % num_pieces(strategy.factors[factor]) != 0) return true;
  }
  return false;
}

std::string why_only_even(const Operation& operation, std::size_t factor) {
  const ShardingRule& rule = operation.rule;
  if (rule.factors[factor].has_equal_pieces) return "its pieces are counted and must be equal";
  for (const std::vector<TensorWalk>* tensors : {&rule.operands, &rule.results}) {
    for (const TensorWalk& walk : *tensors) {
      for (const DimensionWalk& dimension : walk) {
        if (dimension.window && (dimension.window->output == factor || dimension.window->offset == factor)) {
          return "it is read through a window, whose pieces must be equal";
        }
        bool is_here = false;
        bool has_others = false;
        for (const std::uint32_t other : dimension.factors) {
          is_here = is_here || other == factor;
          has_others = has_others || (other != factor && rule.factors[other].size > 1);
        }
        if (is_here && has_others) return "it shares a dimension with other factors, so its pieces must be equal";
      }
    }
  }
  return {};
}

std::vector<std::int64_t> local_extents(const Operation& operation, const Strategy& strategy) {
  std::vector<std::int64_t> extents;
  extents.reserve(operation.rule.factors.size());
  for (std::size_t factor = 0; factor < operation.rule.factors.size(); ++factor) {
    extents.push_back(largest_piece(operation.rule.factors[factor].size, num_pieces(strategy.factors[factor])));
  }
  return extents;
}

std::vector<Box> boxes(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                       std::int64_t point) {
  std::vector<Box> result;
  result.reserve(operation.rule.factors.size());
  for (std::size_t factor = 0; factor < operation.rule.factors.size(); ++factor) {
    const std::int64_t extent = operation.rule.factors[factor].size;
    const auto [begin, end] =
        piece_bounds(extent, num_pieces(strategy.factors[factor]), mesh.coordinate(point, strategy.factors[factor]));
    result.push_back({begin, end, extent});
  }
  return result;
}

bool runs_in_phases(const Operation& operation, const Strategy& strategy) {
  for (std::size_t factor = 0; factor < operation.rule.factors.size(); ++factor) {
    if (operation.rule.factors[factor].kind == FactorKind::kNormalised && num_pieces(strategy.factors[factor]) > 1)
      return true;
  }
  return false;
}

Phases phases_of(const Operation& operation, const Strategy& strategy) {
  SHARDPLAN_CHECK(operation.type->phases != nullptr);
  std::vector<std::int64_t> pieces;
  for (const std::vector<AxisRef>& axes : strategy.factors) pieces.push_back(num_pieces(axes));
  return operation.type->phases(operation, pieces);
}

std::string check_strategy(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh) {
  const ShardingRule& rule = operation.rule;
  SHARDPLAN_CHECK(strategy.factors.size() == rule.factors.size());
  std::vector<AxisRef> used = strategy.partial;
  std::optional<Reduction> reduction;
  if (!strategy.partial.empty()) {
    const auto& groups = groups_of(operation, strategy);
    if (strategy.group >= groups.size()) return "a partial operand does not pass through this operator";
    reduction = strategy.reduction;
  }
  for (std::size_t factor = 0; factor < rule.factors.size(); ++factor) {
    const std::vector<AxisRef>& axes = strategy.factors[factor];
    if (axes.empty()) continue;
    const Factor& info = rule.factors[factor];
    const std::int64_t pieces = num_pieces(axes);
    if (info.kind == FactorKind::kNeedReplication) {
      return fmt::format("{} cannot be sharded, but is over {}", info.name, axes_text(mesh, axes));
    }
    if (const std::optional<std::string> reason = why_not_in(operation, factor, pieces)) {
      return fmt::format("{} of size {} cannot be split into {} by {}{}", info.name, info.size, pieces,
                         axes_text(mesh, axes), *reason);
    }
    if (info.kind == FactorKind::kReduction) {
      if (reduction && *reduction != info.reduction) return "partial results of two kinds (sum and max)";
      reduction = info.reduction;
    }
    used.insert(used.end(), axes.begin(), axes.end());
  }
  for (std::size_t a = 0; a < used.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (overlaps(used[a], used[b])) return fmt::format("axis {} is used twice", mesh.axes()[used[a].axis].name);
    }
  }
  for (std::size_t operand = 0; operand < rule.operands.size(); ++operand) {
    for (std::size_t d = 0; d < rule.operands[operand].size(); ++d) {
      const std::optional<Window>& window = rule.operands[operand][d].window;
      if (!window || strategy.factors[window->output].empty()) continue;
      const std::int64_t extent = operation.operands[operand].shape[d];
      const std::int64_t pieces = num_pieces(strategy.factors[window->output]);
      if (extent % pieces != 0) {
        return fmt::format("dimension {} of size {} cannot be split into {} by {}", d, extent, pieces,
                           axes_text(mesh, strategy.factors[window->output]));
      }
      const std::int64_t owned = extent / pieces;
      for (std::int64_t position = 0; position < pieces; ++position) {
        const WindowPiece piece = window_piece(operation, *window, extent, pieces, position);
        const std::int64_t before = piece.owns.begin - piece.reads.begin;
        const std::int64_t after = piece.reads.end - piece.owns.end;
        if (before > owned || after > owned) {
          return fmt::format("dimension {} cut in {} needs {} rows of its neighbours, which hold {} each", d, pieces,
                             std::max(before, after), owned);
        }
      }
    }
  }
  return {};
}

std::vector<Halo> halos(const Operation& operation, const Strategy& strategy, const DeviceMesh&) {
  std::vector<Halo> result;
  for (std::size_t operand = 0; operand < operation.rule.operands.size(); ++operand) {
    for (std::size_t d = 0; d < operation.rule.operands[operand].size(); ++d) {
      const std::optional<Window>& window = operation.rule.operands[operand][d].window;
      if (!window || strategy.factors[window->output].empty()) continue;
      const std::int64_t extent = operation.operands[operand].shape[d];
      const std::int64_t pieces = num_pieces(strategy.factors[window->output]);
      Halo halo{operand, d, strategy.factors[window->output], 0, 0};
      for (std::int64_t position = 0; position < pieces; ++position) {
        const WindowPiece piece = window_piece(operation, *window, extent, pieces, position);
        halo.before = std::max(halo.before, piece.owns.begin - piece.reads.begin);
        halo.after = std::max(halo.after, piece.reads.end - piece.owns.end);
      }
      if (halo.before > 0 || halo.after > 0) result.push_back(std::move(halo));
    }
  }
  return result;
}

}  // namespace shardplan
