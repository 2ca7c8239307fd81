#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/integer.h"
#include "graph/operator_graph.h"
#include "model/model.h"

namespace shardplan {

/// A size of a model as a function of unknowns (its dims), as far as doubling them one by one shows it. Almost all are
/// monomials: scale * product of unknown^exponent. With B 32, H 768, heads 12: the size 2048 of B*64 is 64 * B, and the
/// size 64 of H/heads is H^1 * heads^-1.
struct SizeFunction {
  std::int64_t full = 1;       // at the model's own unknowns
  std::vector<int> exponents;  // by unknown
  std::set<std::size_t> dims;  // unknowns that it depends on at all
  bool is_monomial = true;
  Int128 numerator = 1;  // of the scale
  Int128 denominator = 1;

  /// Records that the size is `doubled` where unknown `d` is twice as large.
  void depend(std::size_t d, std::int64_t doubled);
  /// Sets the scale; `full_values`: the model's own unknowns. A function whose scale is beyond any size of a real model
  /// becomes one that is not known.
  void set_scale(std::span<const std::int64_t> full_values);
  /// The size at these values of the unknowns; nothing if it is not whole. Requires a monomial.
  std::optional<std::int64_t> at(std::span<const std::int64_t> values) const;

  auto key() const { return std::tie(full, exponents, dims, is_monomial); }
  bool operator<(const SizeFunction& other) const { return key() < other.key(); }
};

/// All sizes of one model, in an order that depends on the graph's structure only: factors of operators, dimensions
/// of tensors, dims of the file, extents of indices.
std::vector<std::int64_t> sizes_of(const Model& model, const OperatorGraph& graph);

/// Among these sizes: the positions of the extent of each tensor of indices and of the length of its rows.
std::vector<std::pair<std::size_t, std::size_t>> index_extents(const Model& model, const OperatorGraph& graph);

/// What a size must be.
struct SizeDemand {
  std::int64_t multiple_of = 1;
  std::int64_t residue = 0;
  std::int64_t least = 1;
  std::set<std::int64_t> uneven;  // numbers of pieces that must not divide it, and leave none empty

  bool holds(std::int64_t size) const;
};

}  // namespace shardplan
