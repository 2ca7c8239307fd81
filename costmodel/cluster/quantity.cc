#include "costmodel/cluster/quantity.h"

#include <optional>
#include <span>

#include "base/error.h"
#include "base/integer.h"

namespace shardplan {
namespace {

/// One unit is `size` / `parts` of what is counted (a bit is 1/8 byte).
struct Unit {
  const char* name;
  std::int64_t size;
  std::int64_t parts = 1;
};

constexpr std::int64_t kKilo = 1'000;
constexpr std::int64_t kMega = 1'000'000;
constexpr std::int64_t kGiga = 1'000'000'000;
constexpr std::int64_t kTera = 1'000'000'000'000;

constexpr Unit kTimes[] = {{"ns", kKilo}, {"us", kMega}, {"ms", kGiga}, {"s", kTera}};
constexpr Unit kSizes[] = {{"B", 1},         {"KB", kKilo},    {"MB", kMega},
                           {"GB", kGiga},    {"TB", kTera},    {"KiB", 1 << 10},
                           {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", std::int64_t{1} << 40}};
constexpr Unit kByteRates[] = {{"B/s", 1},         {"KB/s", kKilo},    {"MB/s", kMega},
                               {"GB/s", kGiga},    {"TB/s", kTera},    {"KiB/s", 1 << 10},
                               {"MiB/s", 1 << 20}, {"GiB/s", 1 << 30}, {"TiB/s", std::int64_t{1} << 40},
                               {"b/s", 1, 8},      {"Kb/s", kKilo, 8}, {"Mb/s", kMega, 8},
                               {"Gb/s", kGiga, 8}, {"Tb/s", kTera, 8}};
constexpr Unit kOperationRates[] = {{"GFLOP/s", kGiga}, {"TFLOP/s", kTera}, {"PFLOP/s", kTera* kKilo}};

/// A decimal number as digits / 10^decimals.
struct Decimal {
  std::int64_t digits = 0;
  std::int64_t power = 1;  // 10^decimals
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Reads a decimal at the start of `text` and removes it; nothing if there is none or its digits exceed 64 bits.
bool take_decimal(std::string_view& text, Decimal& decimal) {
  std::size_t at = 0;
  int num_digits = 0;
  bool after_point = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !after_point)); ++at) {
    if (text[at] == '.') {
      if (num_digits == 0) return false;
      after_point = true;
      continue;
    }
    const std::optional<std::int64_t> digits = checked_multiply(decimal.digits, 10);
    const std::optional<std::int64_t> more = digits ? checked_add(*digits, text[at] - '0') : std::nullopt;
    const std::optional<std::int64_t> power = checked_multiply(decimal.power, after_point ? 10 : 1);
    if (!more || !power) return false;
    decimal = {*more, *power};
    ++num_digits;
  }
  if (num_digits == 0 || text[at - 1] == '.') return false;
  text.remove_prefix(at);
  return true;
}

std::string names(std::span<const Unit> units) {
  std::string text;
  for (const Unit& unit : units) {
    if (!text.empty()) text += &unit == &units.back() ? " or " : ", ";
    text += unit.name;
  }
  return text;
}

/// `what` is the counted thing ("picoseconds"), `example` a valid value.
std::int64_t parse(std::string_view whole, std::span<const Unit> units, const char* what, const char* example) {
  std::string_view text = whole;
  Decimal decimal;
  if (!take_decimal(text, decimal)) {
    throw InputError(SourcePlace{}, "'{}' is not a number with a unit; expected a value such as {}", whole, example);
  }
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  if (text.empty()) {
    throw InputError(SourcePlace{}, "'{}' has no unit; expected {}, as in {}", whole, names(units), example);
  }
  for (const Unit& unit : units) {
    if (text != unit.name) continue;
    const Int128 product = static_cast<Int128>(decimal.digits) * unit.size;
    const Int128 divisor = static_cast<Int128>(decimal.power) * unit.parts;
    // 1.95 GiB is not a whole number of bytes; a fraction of a byte does not matter there, but would in 1.5 B.
    const bool is_odd = product % divisor != 0 && product / divisor < 1000;
    if (is_odd) throw InputError(SourcePlace{}, "'{}' is not a whole number of {}", whole, what);
    if (product / divisor > INT64_MAX / 2) throw InputError(SourcePlace{}, "'{}' is too large", whole);
    return static_cast<std::int64_t>(product / divisor);
  }
  throw InputError(SourcePlace{}, "'{}' has the unknown unit '{}'; expected {}", whole, text, names(units));
}

/// `value` in the unit that gives the shortest text; units of whole powers of 1000 are `decimal`.
std::string write(std::int64_t value, std::span<const Unit> units) {
  std::string best;
  for (const Unit& unit : units) {
    if (unit.parts != 1) continue;
    std::string text = fmt::format("{}", value / unit.size);
    Int128 rest = static_cast<Int128>(value % unit.size);
    if (rest != 0) text += '.';
    for (int decimals = 0; rest != 0 && decimals < 15; ++decimals) {
      rest *= 10;
      text += static_cast<char>('0' + static_cast<int>(rest / unit.size));
      rest %= unit.size;
    }
    if (rest != 0) continue;
    text += fmt::format(" {}", unit.name);
    if (best.empty() || text.size() < best.size()) best = text;
  }
  return best;
}

}  // namespace

std::vector<std::string> unit_names(Quantity quantity) {
  std::span<const Unit> units = kTimes;
  if (quantity == Quantity::kBytes) units = kSizes;
  if (quantity == Quantity::kByteRate) units = kByteRates;
  if (quantity == Quantity::kOperationRate) units = kOperationRates;
  std::vector<std::string> names;
  for (const Unit& unit : units) names.emplace_back(unit.name);
  return names;
}

Picoseconds parse_time(std::string_view text) { return parse(text, kTimes, "picoseconds", "5 us"); }
Bytes parse_bytes(std::string_view text) { return parse(text, kSizes, "bytes", "32 GiB"); }
std::int64_t parse_byte_rate(std::string_view text) { return parse(text, kByteRates, "bytes per second", "12.5 GB/s"); }
std::int64_t parse_operation_rate(std::string_view text) {
  return parse(text, kOperationRates, "operations per second", "256 TFLOP/s");
}

std::int64_t parse_share(std::string_view text) {
  std::string_view rest = text;
  Decimal decimal;
  if (!take_decimal(rest, decimal) || !rest.empty()) {
    throw InputError(SourcePlace{}, "'{}' is not a share; expected a number above 0 and at most 1, such as 0.85", text);
  }
  if (decimal.digits == 0 || decimal.digits > decimal.power) {
    throw InputError(SourcePlace{}, "{} is outside the range above 0 and at most 1", text);
  }
  const Int128 parts = static_cast<Int128>(decimal.digits) * kMega;
  if (parts % decimal.power != 0) throw InputError(SourcePlace{}, "{} has more than six decimals", text);
  return static_cast<std::int64_t>(parts / decimal.power);
}

std::string write_time(Picoseconds time) { return write(time, kTimes); }
std::string write_bytes(Bytes bytes) { return write(bytes, kSizes); }
std::string write_byte_rate(std::int64_t rate) { return write(rate, kByteRates); }
std::string write_operation_rate(std::int64_t rate) { return write(rate, kOperationRates); }
std::string write_share(std::int64_t parts_per_million) {
  std::string text = fmt::format("{}.{:06}", parts_per_million / kMega, parts_per_million % kMega);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace shardplan
