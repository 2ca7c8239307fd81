#include "planner/plan.h"

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
  return {level, time.step()};
}

}  // namespace shardplan
