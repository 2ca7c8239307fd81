#include "graph/padded_shape.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan {

std::int64_t padded_size(const PaddedDimension& dimension) {
  std::int64_t size = 1;
  for (const PaddedPart& part : dimension) size *= part.padded;
  return size;
}

std::int64_t real_size(const PaddedDimension& dimension) {
  std::int64_t size = 1;
  for (const PaddedPart& part : dimension) size *= part.real;
  return size;
}

bool has_padding(const PaddedShape& shape) {
  return std::any_of(shape.begin(), shape.end(), [](const PaddedDimension& d) { return has_padding(d); });
}

Shape real_shape(const PaddedShape& shape) {
  Shape result;
  for (const PaddedDimension& dimension : shape) result.push_back(real_size(dimension));
  return result;
}

PaddedDimension joined(const PaddedDimension& parts) {
  PaddedDimension result;
  for (const PaddedPart& part : parts) {
    if (part.padded == 1) continue;
    if (!result.empty() && part.real == part.padded) {
      result.back().padded *= part.padded;
      result.back().real *= part.padded;
    } else {
      result.push_back(part);
    }
  }
  if (result.empty()) result.push_back({1, 1});
  return result;
}

RealPosition real_position(const PaddedDimension& dimension, std::int64_t position) {
  RealPosition result;
  std::int64_t stride = 1;
  for (std::size_t i = dimension.size(); i-- > 0;) {
    const std::int64_t coordinate = position % dimension[i].padded;
    position /= dimension[i].padded;
    result.exists = result.exists && coordinate < dimension[i].real;
    result.at += coordinate * stride;
    stride *= dimension[i].real;
  }
  return result;
}

std::string to_string(const PaddedDimension& dimension) {
  const std::int64_t padded = padded_size(dimension);
  const std::int64_t real = real_size(dimension);
  return padded == real ? fmt::format("{}", padded) : fmt::format("{} ({} + {} padding)", padded, real, padded - real);
}

}  // namespace shardplan
