#include "planner/plan.h"

#include "program/timeline.h"

namespace shardplan {

std::string_view to_string(StrategyCosts costs) { return costs == StrategyCosts::kMindSpore ? "mindspore" : "cluster"; }

LevelValue value_at(Level level, const StepTime& time, Bytes peak) {
  switch (level) {
    case Level::kRatio:
      return {level, time.communication};
    case Level::kMemory:
      return {level, peak};
    case Level::kSpeed:
      break;
  }
  return {level, time.additive()};
}

std::vector<OverlappedTimeline::Span> Plan::spans() const {
  if (is_overlapped) return overlapped_timeline(program).spans;
  const Timeline times = timeline(program);
  std::vector<OverlappedTimeline::Span> spans;
  for (std::size_t i = 0; i < times.starts.size(); ++i) {
    spans.push_back({times.starts[i], times.starts[i] + program.instructions[i].time});
  }
  return spans;
}

}  // namespace shardplan
