#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace shardplan {
namespace {

struct Unit {
  double size;
  const char* name;
};

/// At least three significant digits, without exponents: 5.63, 56.3, 563, 5630.
std::string three_digits(double value) {
  const double magnitude = value < 0 ? -value : value;
  if (magnitude < 9.995) return fmt::format("{:.2f}", value);
  if (magnitude < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

/// Bytes in the unit in which they are written.
std::pair<double, const char*> in_unit(Bytes bytes) {
  double value = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* next : {"MiB", "GiB", "TiB", "PiB"}) {
    if (value < 1023.95 && value > -1023.95) break;
    value /= 1024;
    unit = next;
  }
  return {value, unit};
}

}  // namespace

std::string format_time(Picoseconds time) {
  if (time == 0) return "0 us";
  constexpr std::array<Unit, 3> kUnits{{{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}}};
  for (const Unit& unit : kUnits) {
    const double value = static_cast<double>(time) / unit.size;
    if (value >= 0.9995 || value <= -0.9995) return fmt::format("{} {}", three_digits(value), unit.name);
  }
  return fmt::format("{} us", three_digits(static_cast<double>(time) / 1e6));
}

std::string format_bytes(Bytes bytes) {
  if (bytes < 1024 && bytes > -1024) return fmt::format("{} B", bytes);
  const auto [value, unit] = in_unit(bytes);
  return fmt::format("{:.1f} {}", value, unit);
}

std::string format_bytes_above(Bytes bytes) {
  if (bytes < 1024 && bytes > -1024) return fmt::format("{} B", bytes);
  const auto [value, unit] = in_unit(bytes);
  return fmt::format("{:.1f} {}", std::ceil(value * 10) / 10, unit);
}

double to_seconds(Picoseconds time) { return static_cast<double>(time) / static_cast<double>(kPicosecondsPerSecond); }

}  // namespace shardplan
