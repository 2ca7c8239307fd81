#include "model/size_function.h"

#include <algorithm>
#include <utility>

#include "layouts/uneven.h"

namespace shardplan {

void SizeFunction::depend(std::size_t d, std::int64_t doubled) {
  if (doubled == full) return;
  dims.insert(d);
  for (int exponent = 1; exponent <= 3; ++exponent) {
    if (doubled == full << exponent) exponents[d] = exponent;
    if (full == doubled << exponent) exponents[d] = -exponent;
  }
  if (exponents[d] == 0) is_monomial = false;
}

void SizeFunction::set_scale(std::span<const std::int64_t> full_values) {
  numerator = full;
  for (std::size_t d = 0; d < full_values.size(); ++d) {
    for (int e = 0; e < exponents[d]; ++e) denominator *= full_values[d];
    for (int e = 0; e > exponents[d]; --e) numerator *= full_values[d];
    // Beyond any size of a real model: treat it as unknown rather than overflow.
    const Int128 limit = static_cast<Int128>(1) << 90;
    if (numerator > limit || denominator > limit) is_monomial = false;
    if (!is_monomial) return;
  }
  Int128 a = numerator;
  Int128 b = denominator;
  while (b != 0) a = std::exchange(b, a % b);
  numerator /= a;
  denominator /= a;
}

std::optional<std::int64_t> SizeFunction::at(std::span<const std::int64_t> values) const {
  Int128 above = numerator;
  Int128 below = denominator;
  for (std::size_t d = 0; d < values.size(); ++d) {
    for (int e = 0; e < exponents[d]; ++e) above *= values[d];
    for (int e = 0; e > exponents[d]; --e) below *= values[d];
  }
  if (above % below != 0) return std::nullopt;
  return static_cast<std::int64_t>(above / below);
}

std::vector<std::int64_t> sizes_of(const Model& model, const OperatorGraph& graph) {
  std::vector<std::int64_t> sizes;
  for (const OperatorId id : graph.operators().ids()) {
    for (const Factor& factor : graph.operation(id).rule.factors) sizes.push_back(factor.size);
  }
  for (const GraphTensor& tensor : graph.tensors()) {
    sizes.insert(sizes.end(), tensor.type.shape.begin(), tensor.type.shape.end());
  }
  for (const auto& [name, value] : model.dims) sizes.push_back(value);
  for (const GraphTensor& tensor : graph.tensors()) {
    if (tensor.index_extent > 0) sizes.push_back(tensor.index_extent);
  }
  return sizes;
}

std::vector<std::pair<std::size_t, std::size_t>> index_extents(const Model& model, const OperatorGraph& graph) {
  std::size_t end = 0;  // of a tensor's dimensions
  for (const OperatorId id : graph.operators().ids()) end += graph.operation(id).rule.factors.size();
  std::size_t extent = end + model.dims.size();
  for (const GraphTensor& tensor : graph.tensors()) extent += tensor.type.shape.size();
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (const GraphTensor& tensor : graph.tensors()) {
    end += tensor.type.shape.size();
    if (tensor.index_extent == 0) continue;
    if (!tensor.type.shape.empty()) found.emplace_back(extent, end - 1);
    ++extent;
  }
  return found;
}

bool SizeDemand::holds(std::int64_t size) const {
  return size % multiple_of == residue && size >= least && std::ranges::all_of(uneven, [&](std::int64_t pieces) {
           return size % pieces != 0 && can_be_split(size, pieces);
         });
}

}  // namespace shardplan
