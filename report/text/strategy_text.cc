#include "report/text/strategy_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan {
namespace {

/// True if the strategy's pieces, factor by factor, are consecutive row-major ranks, starting with the most major.
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
    // Several parts, or one that covers only part of the dimension, give pieces other elements than a tuple.
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

std::string tuple_text(const StrategyTuples& tuples) {
  std::vector<std::string> texts;
  for (const std::vector<std::int64_t>& tuple : tuples) texts.push_back(tuple_text(tuple));
  return fmt::format("({})", fmt::join(texts, ", "));
}

std::string axes_text(const std::vector<AxisRef>& axes, const DeviceMesh& mesh) {
  const std::string text = mesh.to_string(joined(axes));  // "{x, y}"
  return text.substr(1, text.size() - 2);
}

std::string strategy_words(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh) {
  std::string text;
  for (std::size_t f = 0; f < strategy.factors.size(); ++f) {
    if (strategy.factors[f].empty()) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} over {}", operation.rule.factors[f].name, axes_text(strategy.factors[f], mesh));
  }
  if (!strategy.partial.empty()) {
    if (!text.empty()) text += ", ";
    text += fmt::format("partial over {}", axes_text({strategy.partial.begin(), strategy.partial.end()}, mesh));
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

std::string device_matrix_text(const TensorLayout& layout, const DeviceMesh& mesh) {
  const auto converted = per_axis_mindspore_layout(layout, mesh);
  if (!converted) return fmt::format("\"{}\"", to_string(layout, mesh));
  return fmt::format("{{device_matrix: {}, tensor_map: {}}}", tuple_text(converted->device_matrix),
                     tensor_map_text(*converted));
}

}  // namespace shardplan
