#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "costmodel/fusion.h"
#include "costmodel/matrix_units.h"
#include "costmodel/tf32.h"
#include "layouts/collective.h"
#include "operators/data_type.h"

namespace shardplan {

/// Who has a link into a level: every device, or each group of the level below (whose devices share it).
enum class LinkPer { kDevice, kGroup };

/// How the parts of a level are linked: each with all others, through a switch or (a full mesh) by a link to each of them, or
/// only with its neighbours. Each device of a ring has two links along it; a line is a ring without the link that closes it.
/// Rings within rings are a torus, whose dimensions are levels (costmodel/torus.h).
enum class Topology { kSwitch, kFullMesh, kRing, kLine };

/// Another protocol for a level's links, which a library uses for small messages: it starts sooner and uses less of
/// the bandwidth (NCCL's LL and LL128).
struct LinkProtocol {
  Picoseconds latency = 0;
  std::int64_t bandwidth_ppm = 1'000'000;  // fraction of the level's sustained bandwidth

  bool operator==(const LinkProtocol&) const = default;
};

/// How the software runs a collective.
struct CollectiveSoftware {
  Picoseconds launch = 0;  // fixed time of each: a kernel on every device, and their synchronisation
  /// Host time per device of a group, if the software handles the pieces of a tensor one by one (PyTorch's lists of
  /// tensors: a view and a copy for each). Not for permute, which has only one piece.
  Picoseconds per_device = 0;
  /// Fixed time of an all_reduce in one kernel, whose devices read each other's memory; within the innermost level. 0: the
  /// software has none (NCCL).
  Picoseconds direct_all_reduce = 0;
  /// Also use one ring over all devices of a group with one channel per link, and trees
  /// (costmodel/hierarchical_costs.h); false: level by level only.
  bool has_rings_and_trees = false;
  /// Collectives that gather an operand of a product, or scatter its result, run piece by piece beside the product
  /// (program/collective_matmul.h).
  bool collective_matmul = false;

  bool operator==(const CollectiveSoftware&) const = default;
};

/// The speeds that a kernel and a collective keep while they run at the same time, in parts per million.
struct SpeedsTogether {
  std::int64_t kernels_ppm = 1'000'000;
  std::int64_t collectives_ppm = 1'000'000;

  bool operator==(const SpeedsTogether&) const = default;
};

/// One level of links; it joins `count` groups of the level below. Rates are exact integers in bytes (or operations)
/// per second.
struct ClusterLevel {
  std::string name;
  std::int64_t count = 1;
  Picoseconds latency = 0;
  std::int64_t bandwidth = 0;  // bytes per second, one direction of one link, line rate; in a full mesh, of all links
  std::int64_t efficiency_ppm = 1'000'000;  // measured fraction of the line rate, parts per million
  LinkPer link_per = LinkPer::kDevice;      // of rings and lines kDevice
  std::int64_t contention_ppm = 1'000'000;  // fraction of the bandwidth left when all groups communicate at once
  std::vector<LinkProtocol> protocols;      // in addition to `latency` with the full bandwidth
  SpeedsTogether together = {};
  Topology topology = Topology::kSwitch;

  bool operator==(const ClusterLevel&) const = default;
};

struct ClusterDevice {
  std::string name;
  Bytes capacity = 0;
  Bytes reserved = 0;
  std::int64_t memory_bandwidth = 0;       // bytes per second
  std::map<DataType, std::int64_t> flops;  // per second; a dtype that is not listed cannot be computed
  std::optional<std::int64_t> tf32_flops;  // rate of f32 products that are computed in TF32
  std::int64_t matmul_efficiency_ppm = 1'000'000;
  std::optional<std::int64_t> matmul_f32_efficiency_ppm;   // of products of f32 but for TF32; not set: as for others
  std::optional<std::int64_t> matmul_f8_efficiency_ppm;    // of products of f8e4m3; not set: as for others
  std::optional<std::int64_t> odd_rows_efficiency_ppm;     // of two-byte matmuls with odd rows; not set: as for others
  std::optional<std::int64_t> attention_efficiency_ppm;    // of fused attention; not set: as for matmul
  std::optional<std::int64_t> convolution_efficiency_ppm;  // not set: as for matmul
  std::optional<std::int64_t> depthwise_efficiency_ppm;    // of the rate of f32; not set: as other convolutions
  std::int64_t memory_efficiency_ppm = 1'000'000;
  MatrixUnits matrix_units;
  std::int64_t attention_fill = 0;  // time to start and end a row of fused attention, in keys
  std::int64_t depthwise_fill = 0;  // time to start and end a result of a depthwise convolution, in products
  Picoseconds start = 0;            // fixed time of one kernel

  bool operator==(const ClusterDevice&) const = default;
};

/// Efficiencies that a cluster may leave out, by their keys in `efficiency`.
inline constexpr std::pair<const char*, std::optional<std::int64_t> ClusterDevice::*> kOptionalEfficiencies[] = {
    {"matmul_f32", &ClusterDevice::matmul_f32_efficiency_ppm},
    {"matmul_f8", &ClusterDevice::matmul_f8_efficiency_ppm},
    {"odd_rows", &ClusterDevice::odd_rows_efficiency_ppm},
    {"attention", &ClusterDevice::attention_efficiency_ppm},
    {"convolution", &ClusterDevice::convolution_efficiency_ppm},
    {"depthwise", &ClusterDevice::depthwise_efficiency_ppm}};

/// Measured times that replace the formula of one collective along one level over that many devices (or groups of the
/// level below). Bytes are those of the complete tensor of the group, ascending; times do not decrease.
struct CollectiveTable {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::string level;
  std::int64_t devices = 0;
  std::int64_t level_count = 0;  // of the level when it was measured, if it has fewer parts now; else 0
  std::vector<std::pair<Bytes, Picoseconds>> points;

  bool operator==(const CollectiveTable&) const = default;
};

/// How far a constant of a cluster file can be trusted, according to the text of its source.
enum class Provenance { kDatasheet, kMeasured, kMeasuredElsewhere, kAssumed, kToBeVerified, kNotSaid };
/// "datasheet", "measured", "measured elsewhere", "assumed", "to be verified", "no source given".
std::string_view to_string(Provenance provenance);

/// What the machine is: one kind of device and the levels of links that join them, outermost first.
struct Cluster {
  std::string name;
  ClusterDevice device;
  Fusion fusion = Fusion::kNone;
  Tf32 tf32 = Tf32::kNone;  // other than kNone only where `device.tf32_flops` is known
  CollectiveSoftware collectives;
  std::vector<ClusterLevel> levels;
  std::vector<CollectiveTable> tables;
  std::vector<std::pair<std::string, std::string>> sources;
  std::string text;  // the file's, for plan.json
  std::vector<std::string> notices;
  std::vector<std::int64_t> position_of_rank;  // from a rank table: where rank r stands; empty: r

  std::int64_t num_devices() const;
  Bytes usable_bytes() const { return device.capacity - device.reserved; }
  /// For each key of `sources` in order, then `device` and each level that no source mentions. The words of the text
  /// decide: the least certain of "to be verified", "assumed", "measured elsewhere", "measured", "datasheet" that it
  /// contains.
  std::vector<std::pair<std::string, Provenance>> provenance() const;

  bool operator==(const Cluster&) const = default;
};

/// More devices than this are refused.
inline constexpr std::int64_t kMostClusterDevices = 1 << 20;

/// Whether it is the path of a cluster file, with '/' or ".yaml", and no preset's name.
bool is_cluster_path(std::string_view name_or_path);
/// A preset's name ("dgx-a100", "dgx-a100x8") or the path of a cluster file. `num_bases`:
/// how many files lead here, each by its key `base`. Throws InputError.
Cluster read_cluster(const std::string& name_or_path, int num_bases = 0);
Cluster read_cluster_text(const std::string& text, const std::string& file, int num_bases = 0);
/// The text of a cluster file that reads back as this cluster (but for `text` and `notices`).
std::string write_cluster(const Cluster& cluster);
/// Name and text of the presets, sorted by name. They are in the program: no file is looked for.
const std::vector<std::pair<std::string, std::string>>& cluster_presets();
/// Their names, separated by commas.
std::string preset_list();
/// The first `device_num` devices; what is left of a ring of more is a line, of a full mesh one with
/// fewer links. Throws InputError if they are not whole groups, or that names the preset that would do.
Cluster take_devices(const Cluster& cluster, std::int64_t device_num);
/// The cluster with devices of which `capacity` is usable, whatever the file says of capacity and reserved. Requires
/// at least one byte.
Cluster with_capacity(const Cluster& cluster, Bytes capacity);

}  // namespace shardplan
