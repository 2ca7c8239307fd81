#include "planner/level.h"

#include "base/error.h"

namespace shardplan {

Level level_of(std::int64_t number) {
  SHARDPLAN_CHECK(number >= 0 && number <= 2);
  return static_cast<Level>(number);
}

std::string_view to_string(Level level) {
  switch (level) {
    case Level::kRatio:
      return "ratio";
    case Level::kMemory:
      return "memory";
    case Level::kSpeed:
      return "speed";
  }
  return {};
}

std::string to_string(const LevelValue& value) {
  return value.is_in_bytes() ? format_bytes(value.amount) : format_time(value.amount);
}

std::optional<double> gap(const LevelValue& cost, const LevelValue& bound) {
  SHARDPLAN_CHECK(cost.level == bound.level);
  if (cost.amount <= bound.amount) return 0.0;
  if (bound.amount <= 0) return std::nullopt;
  return static_cast<double>(cost.amount - bound.amount) / static_cast<double>(bound.amount);
}

}  // namespace shardplan
