#include "layouts/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/integer.h"

namespace shardplan {

std::int64_t num_elements(const Shape& shape) { return num_bytes(shape, 1); }

Bytes num_bytes(const Shape& shape, Bytes element_bytes) {
  Bytes bytes = element_bytes;
  for (const std::int64_t extent : shape) bytes = checked_multiply(bytes, extent).value_or(INT64_MAX);
  return bytes;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace shardplan
