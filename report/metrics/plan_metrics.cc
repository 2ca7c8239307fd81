#include "report/metrics/plan_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace shardplan {

std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

std::optional<double> ratio(const StepTime& time) {
  if (time.repeated > 0) return std::nullopt;
  if (time.communication == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(time.computation) / static_cast<double>(time.communication);
}

std::string ratio_text(const StepTime& time) {
  const std::optional<double> value = ratio(time);
  if (!value) return "-";
  return *value == std::numeric_limits<double>::infinity() ? "inf" : three_digits(*value);
}

std::string gap_text(const std::optional<double>& gap) {
  if (!gap) return "-";
  constexpr double kLeast = 0.1;
  return fmt::format("{:.1f}", *gap > 0 ? std::max(100 * *gap, kLeast) : 0.0);
}

std::pair<double, std::string_view> weighted_unit(const MindSporeValue& largest) {
  double size = 1;
  for (const std::string_view name : {"B", "KB", "MB", "GB", "TB"}) {
    if (largest.weighted_bytes() < 999.5 * size) return {size, name};
    size *= 1000;
  }
  return {size, "PB"};
}

std::string mesh_words(const DeviceMesh& mesh) { return mesh.axes().empty() ? "of one device" : mesh.to_string(); }

std::string training_words(const OperatorGraph& graph) {
  if (!graph.is_training()) return {};
  return graph.micro_batches() == 1 ? "training, "
                                    : fmt::format("training in {} micro-batches, ", graph.micro_batches());
}

bool is_border(const OperatorGraph& graph, OperatorId op) { return !graph.operators()[op].border_of.empty(); }

std::size_t num_operators(const OperatorGraph& graph) {
  std::size_t count = 0;
  for (const OperatorId op : graph.operators().ids()) count += is_border(graph, op) ? 0 : 1;
  return count;
}

std::string_view to_string(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return "forward";
    case Pass::kBackward:
      return "backward";
    case Pass::kUpdate:
      return "update";
  }
  return {};
}

}  // namespace shardplan
