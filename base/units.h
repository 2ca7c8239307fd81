#pragma once

#include <cstdint>
#include <string>

namespace shardplan {

/// Times and sizes are integers, so that sums, ties and bounds are exact and the same on every machine. 2^63
/// picoseconds are 106 days; 2^63 bytes are 8 EiB.
using Picoseconds = std::int64_t;
using Bytes = std::int64_t;

inline constexpr Picoseconds kPicosecondsPerSecond = 1'000'000'000'000;

/// Three digits and a suitable unit: 25100000 -> "25.1 us", 83800000000 -> "83.8 ms", 0 -> "0 us".
std::string format_time(Picoseconds time);

/// Powers of 1024 with one decimal: 28311552 -> "27.0 MiB", 512 -> "512 B".
std::string format_bytes(Bytes bytes);
/// The same rounded up: a memory of that size holds the bytes.
std::string format_bytes_above(Bytes bytes);

/// Seconds as a double for JSON, whose shortest decimal text reads back as the same number of picoseconds.
double to_seconds(Picoseconds time);

}  // namespace shardplan
