#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/tensor_layout.h"

namespace shardplan {

/// What sharding a factor means.
enum class FactorKind {
  kPassThrough,      // every device computes an independent part
  kReduction,        // every device gets a summand (or a maximum, ...) of the results that do not walk it
  kNormalised,       // like kReduction inside: if sharded, the operator runs in phases; otherwise as one kernel
  kNeedReplication,  // cannot be sharded
};

/// One index of an operator's iteration space. A name is one letter or more; phases of an operator share its names.
struct Factor {
  std::string name;
  std::int64_t size = 1;
  FactorKind kind = FactorKind::kPassThrough;
  Reduction reduction = Reduction::kSum;  // how a kReduction combines
  bool has_equal_pieces = false;          // sharded into equal pieces only, since phases count them

  bool operator==(const Factor&) const = default;
};

/// A dimension that an operator reads through a sliding window: position = stride * i + dilation * r - pad_before.
struct Window {
  std::uint32_t output = 0;  // the factor i; sharding it needs a halo of the neighbours
  std::uint32_t offset = 0;  // the factor r within the window; never sharded
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_before = 0;
  std::int64_t pad_after = 0;

  bool operator==(const Window&) const = default;
};

/// The factors that index one dimension: their product, major to minor (none: the dimension has size 1 or is never
/// sharded), or a window of two.
struct DimensionWalk {
  std::vector<std::uint32_t> factors;
  std::optional<Window> window;

  bool operator==(const DimensionWalk&) const = default;
};
using TensorWalk = std::vector<DimensionWalk>;

/// Whether a factor indexes any dimension, as one of a window as well.
bool walks(const TensorWalk& walk, std::uint32_t factor);

/// How one operator instance can be sharded. MatMul of [32, 64] and [64, 16]: factors m=32, k=64 (sum), n=16;
/// operands m k, k n; result m n.
///
/// `linear` holds groups of operands such that a sum over the group passes through the operator. {{0}, {1}}
/// (product): a partial sum in either one, with the other replicated over that axis; {{0, 1}} (add): in both
/// together. All operands outside the group must be replicated over the axis. `monotone` is the same for maxima and
/// minima.
struct ShardingRule {
  std::vector<Factor> factors;
  std::vector<TensorWalk> operands;
  std::vector<TensorWalk> results;
  std::vector<std::vector<std::uint32_t>> linear;
  std::vector<std::vector<std::uint32_t>> monotone;

  std::optional<std::uint32_t> find(std::string_view factor) const;
  bool operator==(const ShardingRule&) const = default;
};

/// "b m k, k n -> b m n; k: sum", compound dimensions as "(b s) h", windows as "2*h+kh".
std::string to_string(const ShardingRule& rule);

/// The box of one device in a factor: [begin, end) of `extent` positions.
struct Box {
  std::int64_t begin = 0;
  std::int64_t end = 1;
  std::int64_t extent = 1;

  std::int64_t size() const { return end - begin; }
  bool operator==(const Box&) const = default;
};

/// The positions of a windowed dimension of size `extent` that the box of its output factor reads, clipped to the tensor.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  bool operator==(const Interval&) const = default;
};
Interval window_reads(const Window& window, std::int64_t window_size, const Box& output, std::int64_t extent);

}  // namespace shardplan
