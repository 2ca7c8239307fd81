#include "simulator/checkpoint/tensor_bytes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"

namespace shardplan {
namespace {

double half_number(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

template <class Stored, class Convert>
TensorValues converted(const std::vector<std::byte>& bytes, const Convert& convert) {
  TensorValues values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert(stored);
  }
  return values;
}

/// The numbers in the bytes; nothing for dtypes that this program does not support.
std::optional<TensorValues> numbers_of(const std::vector<std::byte>& bytes, const std::string& dtype) {
  const auto plain = [](auto number) { return static_cast<double>(number); };
  if (dtype == "F64") return converted<double>(bytes, plain);
  if (dtype == "F32") return converted<float>(bytes, plain);
  if (dtype == "F16") return converted<std::uint16_t>(bytes, half_number);
  if (dtype == "BF16") {
    return converted<std::uint16_t>(
        bytes, [](std::uint16_t b) { return double{std::bit_cast<float>(std::uint32_t{b} << 16)}; });
  }
  if (dtype == "I64") return converted<std::int64_t>(bytes, plain);
  if (dtype == "I32") return converted<std::int32_t>(bytes, plain);
  return std::nullopt;
}

}  // namespace

std::vector<std::byte> bytes_of_numbers(std::span<const double> numbers) {
  std::vector<std::byte> bytes(numbers.size_bytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TensorValues read_numbers(Checkpoint& checkpoint, std::size_t tensor, const PieceRuns& piece, std::int64_t preferred) {
  const CheckpointTensor& of = checkpoint.form().tensors[tensor];
  auto numbers = numbers_of(checkpoint.read(tensor, piece, preferred), of.dtype);
  if (numbers) return *std::move(numbers);
  throw InputError({checkpoint.path(), 0, 0}, "tensor '{}' is {}; expected F64, F32, F16, BF16, I64 or I32", of.name,
                   of.dtype);
}

}  // namespace shardplan
