#include "operators/sharding_rule.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan {
namespace {

std::string dimension_text(const ShardingRule& rule, const DimensionWalk& walk) {
  if (walk.window) {
    const Window& window = *walk.window;
    const auto times = [](std::int64_t by, const std::string& name) {
      return by == 1 ? name : fmt::format("{}*{}", by, name);
    };
    return fmt::format("{}+{}", times(window.stride, rule.factors[window.output].name),
                       times(window.dilation, rule.factors[window.offset].name));
  }
  if (walk.factors.empty()) return "1";
  if (walk.factors.size() == 1) return rule.factors[walk.factors[0]].name;
  std::string text = "(";
  for (const std::uint32_t factor : walk.factors) {
    if (text.size() > 1) text += ' ';
    text += rule.factors[factor].name;
  }
  return text + ")";
}

std::string tensors_text(const ShardingRule& rule, const std::vector<TensorWalk>& tensors) {
  std::string text;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (i > 0) text += ",";
    for (std::size_t d = 0; d < tensors[i].size(); ++d) {
      if (d > 0 || i > 0) text += ' ';
      text += dimension_text(rule, tensors[i][d]);
    }
  }
  return text;
}

std::string_view kind_text(const Factor& factor) {
  switch (factor.kind) {
    case FactorKind::kReduction:
      return to_string(factor.reduction);
    case FactorKind::kNormalised:
      return "normalised";
    case FactorKind::kNeedReplication:
      return "whole";
    case FactorKind::kPassThrough:
      break;
  }
  return "passes through";
}

}  // namespace

bool walks(const TensorWalk& walk, std::uint32_t factor) {
  return std::any_of(walk.begin(), walk.end(), [&](const DimensionWalk& dimension) {
    if (dimension.window) return dimension.window->output == factor || dimension.window->offset == factor;
    return std::find(dimension.factors.begin(), dimension.factors.end(), factor) != dimension.factors.end();
  });
}

std::optional<std::uint32_t> ShardingRule::find(std::string_view factor) const {
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (factors[i].name == factor) return static_cast<std::uint32_t>(i);
  }
  return std::nullopt;
}

std::string to_string(const ShardingRule& rule) {
  std::string text = tensors_text(rule, rule.operands) + " -> " + tensors_text(rule, rule.results);
  for (const Factor& factor : rule.factors) {
    if (factor.kind != FactorKind::kPassThrough) text += fmt::format("; {}: {}", factor.name, kind_text(factor));
  }
  return text;
}

Interval window_reads(const Window& window, std::int64_t window_size, const Box& output, std::int64_t extent) {
  const std::int64_t first = window.stride * output.begin - window.pad_before;
  const std::int64_t last = window.stride * (output.end - 1) + window.dilation * (window_size - 1) - window.pad_before;
  Interval reads{std::clamp<std::int64_t>(first, 0, extent), std::clamp<std::int64_t>(last + 1, 0, extent)};
  if (reads.end < reads.begin) reads.end = reads.begin;  // a window that is completely in the padding
  return reads;
}

}  // namespace shardplan
