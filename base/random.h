#pragma once

#include <cstdint>

#include "base/integer.h"

namespace shardplan {

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): maps a 64-bit value to a well mixed one. Also the hash with which
/// dropout draws from (seed, global index), so that a mask is the same on every mesh.
constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/// The project's random numbers: a SplitMix64 stream, the same on every machine and library (the standard library's
/// distributions are not). Copying a Random copies its stream.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// An independent stream for one (stage, thread, ...) of a seeded run.
  Random fork(std::uint64_t stream) const { return Random(mix(state_ ^ mix(stream))); }

  std::uint64_t next() {
    const std::uint64_t value = mix(state_);
    state_ += 0x9e3779b97f4a7c15u;
    return value;
  }
  /// Uniform in [0, bound); requires bound >= 1.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<UnsignedInt128>(next()) * bound) >> 64);
  }
  /// Uniform in [0, 1) with 53 bits.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace shardplan
