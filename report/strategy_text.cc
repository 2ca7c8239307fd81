#include "report/strategy_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan {
namespace {

/// True if the strategy's cuts, factor by factor, are consecutive pieces of the row-major ranks from the most major on.
bool takes_consecutive_ranks(const Strategy& strategy, const DeviceMesh& mesh) {
  std::size_t axis = 0;
  std::int64_t before = 1;
  for (const std::vector<AxisRef>& factor : strategy.factors) {
    for (const AxisRef& ref : factor) {
      while (axis < mesh.axes().size() && before == mesh.axes()[axis].size) {
        ++axis;
        before = 1;
      }
      if (ref.size == 1) continue;
      if (ref.axis != axis || ref.before != before) return false;
      before *= ref.size;
    }
  }
  return true;
}

std::optional<std::vector<std::int64_t>> pieces(const TensorLayout& layout) {
  std::vector<std::int64_t> result;
  for (const DimensionLayout& dimension : layout.dimensions) {
    // Several parts, or one that is a part of the dimension only, place other elements than the plain tuple does.
    if (dimension.is_sharded() && dimension.parts.size() != 1) return std::nullopt;
    result.push_back(dimension.num_pieces());
  }
  return result;
}

template <class LayoutOf>
std::optional<StrategyTuples> tuples(const Strategy& strategy, const DeviceMesh& mesh, std::size_t count,
                                     LayoutOf layout_of) {
  if (!takes_consecutive_ranks(strategy, mesh) || !strategy.partial.empty()) return std::nullopt;
  StrategyTuples result;
  for (std::size_t i = 0; i < count; ++i) {
    const auto tuple = pieces(layout_of(i));
    if (!tuple) return std::nullopt;
    result.push_back(*tuple);
  }
  return result;
}

}  // namespace

std::optional<StrategyTuples> input_tuples(const Operation& operation, const Strategy& strategy,
                                           const DeviceMesh& mesh) {
  return tuples(strategy, mesh, operation.operands.size(),
                [&](std::size_t i) { return operand_layout(operation, strategy, mesh, i); });
}

std::optional<StrategyTuples> output_tuples(const Operation& operation, const Strategy& strategy,
                                            const DeviceMesh& mesh) {
  return tuples(strategy, mesh, operation.results.size(),
                [&](std::size_t i) { return result_layout(operation, strategy, mesh, i); });
}

std::string tuple_text(const std::vector<std::int64_t>& values) { return fmt::format("({})", fmt::join(values, ", ")); }

std::string tuple_text(const StrategyTuples& tuples) {
  std::vector<std::string> texts;
  for (const std::vector<std::int64_t>& tuple : tuples) texts.push_back(tuple_text(tuple));
  return fmt::format("({})", fmt::join(texts, ", "));
}

std::string strategy_words(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh) {
  std::string text;
  for (std::size_t f = 0; f < strategy.factors.size(); ++f) {
    if (strategy.factors[f].empty()) continue;
    const std::string axes = mesh.to_string(strategy.factors[f]);  // "{x, y}"
    if (!text.empty()) text += ", ";
    text += fmt::format("{} over {}", operation.rule.factors[f].name, axes.substr(1, axes.size() - 2));
  }
  if (!strategy.partial.empty()) {
    if (!text.empty()) text += ", ";
    text += fmt::format("partial over {}", mesh.to_string(strategy.partial));
  }
  return text.empty() ? "all repeated" : text;
}

std::string entry_text(const StrategyEntry& entry) {
  switch (entry.kind) {
    case StrategyEntry::Kind::kTuple:
      return tuple_text(entry.tuple);
    case StrategyEntry::Kind::kLayout:
      return entry.layout;
    case StrategyEntry::Kind::kDataParallel:
      return "None";
    case StrategyEntry::Kind::kFollow:
      return "()";
  }
  return {};
}

std::string entries_text(const std::vector<StrategyEntry>& entries) {
  std::vector<std::string> texts;
  for (const StrategyEntry& entry : entries) texts.push_back(entry_text(entry));
  return fmt::format("({})", fmt::join(texts, ", "));
}

std::vector<AxisRef> axes_of(const TensorLayout& layout) {
  std::vector<AxisRef> axes;
  for (const DimensionLayout& dimension : layout.dimensions) {
    for (const DimensionPart& part : dimension.parts) axes.insert(axes.end(), part.axes.begin(), part.axes.end());
  }
  axes.insert(axes.end(), layout.partial.begin(), layout.partial.end());
  return axes;
}

RefinedAxes::RefinedAxes(const DeviceMesh& mesh, const std::vector<AxisRef>& refs) {
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    // Positions (products of the parts to the left) at which the axis is cut; each must divide the next.
    std::vector<std::int64_t> cuts{1, mesh.axes()[axis].size};
    for (const AxisRef& ref : refs) {
      if (ref.axis != axis) continue;
      for (const std::int64_t cut : {ref.before, ref.end()}) {
        const bool fits = std::all_of(cuts.begin(), cuts.end(), [&](std::int64_t other) {
          return cut == other || (cut > other ? cut % other : other % cut) == 0;
        });
        if (fits && std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (std::size_t i = 0; i + 1 < cuts.size() || (cuts.size() == 1 && i == 0); ++i) {
      const std::int64_t size = cuts.size() == 1 ? 1 : cuts[i + 1] / cuts[i];
      const std::string& name = mesh.axes()[axis].name;
      axes_.push_back({cuts.size() <= 2 ? name : fmt::format("{}_{}", name, i), size});
      parts_.push_back({static_cast<std::uint32_t>(axis), cuts[i], size});
    }
  }
}

std::optional<std::vector<std::size_t>> RefinedAxes::find(const AxisRef& ref) const {
  std::vector<std::size_t> found;
  std::int64_t reached = ref.before;
  for (std::size_t i = 0; i < parts_.size() && reached < ref.end(); ++i) {
    if (parts_[i].axis != ref.axis || parts_[i].before != reached || parts_[i].size == 1) continue;
    found.push_back(i);
    reached *= parts_[i].size;
  }
  if (reached != ref.end()) return std::nullopt;
  return found;
}

std::optional<DeviceMatrixLayout> device_matrix_layout(const TensorLayout& layout, const DeviceMesh& mesh) {
  const RefinedAxes axes(mesh, axes_of(layout));
  DeviceMatrixLayout result;
  for (const RefinedAxes::Axis& axis : axes.axes()) result.device_matrix.push_back(axis.size);
  for (const DimensionLayout& dimension : layout.dimensions) {
    std::vector<std::int64_t> map;
    if (dimension.is_sharded() && dimension.parts.size() != 1) return std::nullopt;
    for (const DimensionPart& part : dimension.parts) {
      for (const AxisRef& ref : part.axes) {
        const auto found = axes.find(ref);
        if (!found) return std::nullopt;
        for (const std::size_t i : *found) map.push_back(static_cast<std::int64_t>(axes.axes().size() - 1 - i));
      }
    }
    if (map.empty()) map.push_back(-1);
    result.tensor_map.push_back(std::move(map));
  }
  return result;
}

std::string device_matrix_text(const TensorLayout& layout, const DeviceMesh& mesh) {
  const auto converted = device_matrix_layout(layout, mesh);
  if (!converted) return fmt::format("\"{}\"", to_string(layout, mesh));
  std::vector<std::string> map;
  for (const std::vector<std::int64_t>& axes : converted->tensor_map) {
    map.push_back(axes.size() == 1 ? fmt::format("{}", axes[0]) : tuple_text(axes));
  }
  return fmt::format("{{device_matrix: {}, tensor_map: ({})}}", tuple_text(converted->device_matrix),
                     fmt::join(map, ", "));
}

}  // namespace shardplan
