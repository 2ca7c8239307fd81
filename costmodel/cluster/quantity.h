#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace shardplan {

/// Numbers with units, as cluster files and `--capacity` write them: "32 GiB", "1.2 TB/s", "100 Gb/s", "256 TFLOP/s",
/// "5 us". The space may be left out, the unit may not: GB against GiB is 7 %. All are exact decimals; what is over a
/// whole number of the result's unit is dropped from a thousand of them on (1.95 GiB), below that refused.
///
/// All functions throw InputError (without a place: the caller adds it) that says what was found and what would be
/// right.

enum class Quantity { kTime, kBytes, kByteRate, kOperationRate };
/// The units that a quantity may have, as they are written.
std::vector<std::string> unit_names(Quantity quantity);

/// ns, us, ms, s; in picoseconds.
Picoseconds parse_time(std::string_view text);
/// B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (1024).
Bytes parse_bytes(std::string_view text);
/// The same per second, and b/s, Kb/s, Mb/s, Gb/s, Tb/s in bits; in bytes per second.
std::int64_t parse_byte_rate(std::string_view text);
/// GFLOP/s, TFLOP/s, PFLOP/s; in operations per second.
std::int64_t parse_operation_rate(std::string_view text);
/// A share above 0 and at most 1 with up to six decimals; in parts per million.
std::int64_t parse_share(std::string_view text);

/// The shortest text with these units that reads back as the same number: "32 GiB", "1.2 TB/s", "12.5 GB/s", "5 us",
/// "0.775".
std::string write_time(Picoseconds time);
std::string write_bytes(Bytes bytes);
std::string write_byte_rate(std::int64_t rate);
std::string write_operation_rate(std::int64_t rate);
std::string write_share(std::int64_t parts_per_million);

}  // namespace shardplan
