#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace shardplan {

/// The objective of a plan: the levels 0, 1 and 2 of `shard(..., level)`.
enum class Level {
  kRatio = 0,   // the greatest ratio of computation to communication: the least communication, then computation
  kMemory = 1,  // the least peak memory, then the shortest step within a little more memory
  kSpeed = 2,   // the shortest step
};
inline constexpr Level kLevels[] = {Level::kRatio, Level::kMemory, Level::kSpeed};

/// 0, 1, 2.
constexpr int number_of(Level level) { return static_cast<int>(level); }
/// Requires 0, 1 or 2.
Level level_of(std::int64_t number);
/// "ratio", "memory", "speed".
std::string_view to_string(Level level);

/// A value of a level's objective: for kRatio picoseconds of communication, for kMemory bytes of the peak, for kSpeed
/// picoseconds of a step.
struct LevelValue {
  Level level = Level::kRatio;
  std::int64_t amount = 0;

  bool is_in_bytes() const { return level == Level::kMemory; }
  bool operator==(const LevelValue&) const = default;
};
/// With its unit: "5.63 ms", "27.0 MiB".
std::string to_string(const LevelValue& value);

/// (cost - bound) / bound; 0 if `cost` is not above, nothing if the bound is 0. Requires the same level.
std::optional<double> gap(const LevelValue& cost, const LevelValue& bound);

}  // namespace shardplan
