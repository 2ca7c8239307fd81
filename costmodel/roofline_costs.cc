#include "costmodel/roofline_costs.h"

#include <algorithm>

#include "base/error.h"
#include "base/integer.h"
#include "costmodel/matrix_units.h"
#include "operators/operator_type.h"

namespace shardplan {
namespace {

/// The whole number not below `value`; large values stay at a bound that no cluster reaches in a step.
std::int64_t rounded_up(double value) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  if (value >= static_cast<double>(kMost)) return kMost;
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) < value ? whole + 1 : whole;
}

/// Amount over rate in picoseconds, rounded up. `share` is the sustained part of the rate in parts per million.
Picoseconds duration(std::int64_t amount, std::int64_t rate, std::int64_t share) {
  const std::int64_t sustained = std::max<std::int64_t>(1, multiply_divide(rate, share, 1'000'000));
  return std::min(kLongestTime, multiply_divide(amount, kPicosecondsPerSecond, sustained));
}

[[noreturn]] void throw_cannot_compute(const Cluster& cluster, const Operation& operation, DataType type) {
  std::string has;
  for (const auto& [known, rate] : cluster.device.flops)
    has += fmt::format("{}{}", has.empty() ? "" : ", ", to_string(known));
  throw InputError(SourcePlace{}, "{} in {}: {} (cluster {}) does not compute {}; it has {}", operation.type->name,
                   to_string(type), cluster.device.name, cluster.name, to_string(type), has);
}

std::int64_t rate_of(const Cluster& cluster, const Operation& operation, DataType type) {
  const auto found = cluster.device.flops.find(type);
  if (found == cluster.device.flops.end()) throw_cannot_compute(cluster, operation, type);
  return found->second;
}

/// What a contraction multiplies: its first operand.
DataType contracted_type(const Operation& operation) {
  return operation.operands.empty() ? operation.results.front().dtype : operation.operands.front().dtype;
}

/// The plain rate of elementwise work, or nothing if no floating-point number is touched. The vector unit works in f32
/// (shorter types are widened on the way), so f32's rate counts for all but f64; still each dtype must be one that the
/// device has, but f8e4m3, which every device can store and widen.
std::int64_t plain_rate(const Cluster& cluster, const Operation& operation) {
  std::int64_t rate = 0;
  for (const std::vector<TensorType>* tensors : {&operation.operands, &operation.results}) {
    for (const TensorType& tensor : *tensors) {
      if (!is_floating(tensor.dtype)) continue;
      const auto f32 = cluster.device.flops.find(DataType::kF32);
      const bool is_widened = tensor.dtype == DataType::kF8E4M3 && f32 != cluster.device.flops.end();
      std::int64_t own = is_widened ? f32->second : rate_of(cluster, operation, tensor.dtype);
      if (tensor.dtype != DataType::kF64 && f32 != cluster.device.flops.end()) own = f32->second;
      rate = rate == 0 ? own : std::min(rate, own);
    }
  }
  return rate;
}

/// Keys that a query sees on average: "t", or in a phase pieces of "u" each.
std::int64_t seen_keys(const Operation& operation, std::span<const std::int64_t> factor_extents) {
  const std::optional<std::uint32_t> factor = operation.rule.find("t");
  if (!factor) return 0;
  std::int64_t keys = factor_extents[*factor];
  if (const std::optional<std::uint32_t> in_piece = operation.rule.find("u")) keys *= factor_extents[*in_piece];
  return operation.attributes.contains("causal") && operation.flag("causal") ? std::max<std::int64_t>(1, keys / 2)
                                                                             : keys;
}

bool is_in_tf32(const Cluster& cluster, const Operation& operation, bool is_convolution) {
  return contracted_type(operation) == DataType::kF32 &&
         (cluster.tf32 == Tf32::kAll || (cluster.tf32 == Tf32::kConvolutions && is_convolution));
}

/// The rate at which a contraction is computed, before any efficiency.
std::int64_t product_rate(const Cluster& cluster, const Operation& operation, bool is_convolution) {
  return is_in_tf32(cluster, operation, is_convolution) ? *cluster.device.tf32_flops
                                                        : rate_of(cluster, operation, contracted_type(operation));
}

/// The share of that rate which a matmul reaches.
std::int64_t matmul_efficiency(const Cluster& cluster, const Operation& operation) {
  const ClusterDevice& device = cluster.device;
  if (contracted_type(operation) == DataType::kF8E4M3)
    return device.matmul_f8_efficiency_ppm.value_or(device.matmul_efficiency_ppm);
  const bool is_plain = contracted_type(operation) == DataType::kF32 && !is_in_tf32(cluster, operation, false);
  return is_plain ? device.matmul_f32_efficiency_ppm.value_or(device.matmul_efficiency_ppm)
                  : device.matmul_efficiency_ppm;
}

/// True for convolutions, also transposed ones and gradients, whose groups have fewer channels than the blocks that matrix
/// units multiply: depthwise ones, and those of ResNeXt's first stage.
bool has_narrow_groups(const Operation& operation) {
  constexpr std::int64_t kFewChannels = 8;
  const ShardingRule& rule = operation.rule;
  return rule.find("g") &&
         std::min(rule.factors[*rule.find("i")].size, rule.factors[*rule.find("o")].size) < kFewChannels;
}

/// The time of a convolution with narrow groups by flops. Windows of up to four elements along one dimension have kernels of
/// their own (causal-conv1d of Mamba), which are as fast as memory.
Picoseconds narrow_groups_time(const ClusterDevice& device, const Operation& operation, std::int64_t operations,
                               std::int64_t rate) {
  constexpr std::int64_t kShortWindow = 4;
  const bool is_weight_computed = operation.type->name.ends_with("BackpropFilter");
  const Shape& weight = is_weight_computed ? operation.results[0].shape : operation.operands[1].shape;
  std::int64_t window = 1, longest = 1;
  for (std::size_t d = 2; d < weight.size(); ++d) {
    window *= weight[d];
    longest = std::max(longest, weight[d]);
  }
  if (window == longest && window <= kShortWindow) return duration(operations, rate, 1'000'000);
  const std::int64_t products = window * weight[1];  // summed into one element of the forward operator's result
  return multiply_divide(duration(operations, rate, *device.depthwise_efficiency_ppm), products + device.depthwise_fill,
                         products);
}

/// Whether rows of an operand or a result have an odd length, so that every other one begins in the middle of four bytes:
/// the least that matrix units' loads copy (cp.async in NVIDIA's PTX).
bool has_odd_rows(const Operation& operation, std::span<const std::int64_t> factor_extents) {
  const auto is_odd = [&](const TensorWalk& walk) {
    if (walk.empty()) return false;
    std::int64_t length = 1;
    for (const std::uint32_t factor : walk.back().factors) length *= factor_extents[factor];
    return length > 1 && length % 2 != 0;
  };
  return std::ranges::any_of(operation.rule.operands, is_odd) || std::ranges::any_of(operation.rule.results, is_odd);
}

/// The time of a contraction by flops: at the rate of the device's matrix units, or of its vector units where groups are
/// narrow.
Picoseconds contraction_time(const Cluster& cluster, const Operation& operation,
                             std::span<const std::int64_t> factor_extents) {
  const ClusterDevice& device = cluster.device;
  const bool is_convolution = operation.type->name.starts_with("Conv");
  const std::int64_t rate = product_rate(cluster, operation, is_convolution);
  const std::int64_t operations = rounded_up(flops(operation, factor_extents));
  if (is_convolution && device.depthwise_efficiency_ppm && has_narrow_groups(operation)) {
    if (const std::int64_t plain = plain_rate(cluster, operation); plain > 0)
      return narrow_groups_time(device, operation, operations, plain);
  }
  if (operation.type->role == OperatorRole::kAttention) {
    const std::int64_t share = device.attention_efficiency_ppm.value_or(device.matmul_efficiency_ppm);
    const Picoseconds time = duration(operations, rate, share);
    const std::int64_t keys = seen_keys(operation, factor_extents);
    return keys == 0 ? time : multiply_divide(time, keys + device.attention_fill, keys);
  }
  const std::int64_t share = is_convolution ? device.convolution_efficiency_ppm.value_or(device.matmul_efficiency_ppm)
                                            : matmul_efficiency(cluster, operation);
  const Picoseconds time = duration(operations, rate, share);
  const std::optional<ProductShape> shape = product_shape(operation, factor_extents);
  if (!shape) return time;
  const Picoseconds by_shape = multiply_divide(time, units_overhead_ppm(*shape, device.matrix_units), 1'000'000);
  const bool is_narrow = element_bytes(contracted_type(operation)) == 2;
  if (is_convolution || !is_narrow || !device.odd_rows_efficiency_ppm || cluster.fusion == Fusion::kElementwise ||
      !has_odd_rows(operation, factor_extents)) {
    return by_shape;
  }
  // Kernels for such rows have small tiles, which waste little at the borders of small products.
  return std::max(by_shape, duration(operations, rate, *device.odd_rows_efficiency_ppm));
}

}  // namespace

RooflineCosts::RooflineCosts(Cluster cluster, DeviceMesh mesh)
    : cluster_(std::move(cluster)),
      mesh_(std::move(mesh)),
      collectives_(std::make_shared<const HierarchicalCosts>(cluster_, mesh_)) {}

Picoseconds RooflineCosts::computation(const Operation& operation, std::span<const std::int64_t> factor_extents,
                                       Bytes local_bytes, bool is_started) const {
  const WorkKind work = operation.type->work;
  if (work == WorkKind::kView) return 0;
  const ClusterDevice& device = cluster_.device;
  Picoseconds time = reading(local_bytes);
  if (work == WorkKind::kContraction) {
    time = std::max(time, contraction_time(cluster_, operation, factor_extents));
  } else if (const std::int64_t rate = plain_rate(cluster_, operation); rate > 0) {
    time = std::max(time, duration(rounded_up(flops(operation, factor_extents)), rate, 1'000'000));
  }
  return std::min(kLongestTime, (is_started ? device.start : 0) + time);
}

Picoseconds RooflineCosts::reading(Bytes bytes) const {
  return duration(bytes, cluster_.device.memory_bandwidth, cluster_.device.memory_efficiency_ppm);
}

std::vector<SpeedsTogether> RooflineCosts::speeds_together() const {
  std::vector<SpeedsTogether> speeds;
  for (const ClusterLevel& level : cluster_.levels) speeds.push_back(level.together);
  return speeds;
}

Picoseconds RooflineCosts::neighbour_exchange(const std::vector<AxisRef>& axes, Bytes sent) const {
  return collectives_->neighbour_exchange(axes, sent);
}

}  // namespace shardplan
