#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/cluster/cluster.h"

namespace shardplan {

/// The values that a key of a cluster file may have.
enum class ClusterValue {
  kVersion,  // 1
  kText,
  kName,           // letters, digits, '_', '-'
  kCount,          // a whole number from 1
  kTime,           // "5 us"
  kTimeList,       // a list of them
  kBytes,          // "32 GiB"
  kByteList,       // a list of them
  kByteRate,       // "1.2 TB/s", "100 Gb/s"
  kShare,          // above 0, at most 1
  kOperationRate,  // "256 TFLOP/s"
  kLinkPer,        // device or group
  kTopology,       // switch, full_mesh, ring, line
  kFusion,         // none, library, hand-written, elementwise
  kTf32,           // none, convolutions, all
  kAlgorithms,     // level by level, or rings and trees
  kTruth,          // true or false
  kCollective,     // all_gather, reduce_scatter, all_reduce, all_to_all, permute
  kDevice,         // the maps and lists of the sections below
  kMemory,
  kFlops,
  kEfficiency,
  kMatrixUnits,
  kCollectives,
  kLevels,
  kRanks,  // a list of all positions
  kProtocols,
  kSpeedsTogether,
  kTables,
  kSources,
};

/// One key of a map in a cluster file: the reader accepts exactly these, and the schema lists them.
struct ClusterKey {
  std::string name;
  ClusterValue value = ClusterValue::kText;
  bool is_needed = false;
  std::string meaning;
};
using ClusterKeys = std::vector<ClusterKey>;

const ClusterKeys& cluster_file_keys();
const ClusterKeys& cluster_device_keys();
const ClusterKeys& cluster_memory_keys();
const ClusterKeys& cluster_flops_keys();
const ClusterKeys& cluster_efficiency_keys();
const ClusterKeys& cluster_matrix_units_keys();
const ClusterKeys& cluster_collectives_keys();
const ClusterKeys& cluster_level_keys();
const ClusterKeys& cluster_protocol_keys();
const ClusterKeys& cluster_together_keys();
const ClusterKeys& cluster_table_keys();

/// The words of the keys `fusion` and `tf32`, of `topology` in a level and of `collective` in a table.
inline constexpr std::pair<std::string_view, Fusion> kFusionWords[] = {{"none", Fusion::kNone},
                                                                       {"library", Fusion::kLibrary},
                                                                       {"hand-written", Fusion::kHandWritten},
                                                                       {"elementwise", Fusion::kElementwise}};

inline constexpr std::pair<std::string_view, Tf32> kTf32Words[] = {
    {"none", Tf32::kNone}, {"convolutions", Tf32::kConvolutions}, {"all", Tf32::kAll}};

inline constexpr std::pair<std::string_view, Topology> kTopologyWords[] = {{"switch", Topology::kSwitch},
                                                                           {"full_mesh", Topology::kFullMesh},
                                                                           {"ring", Topology::kRing},
                                                                           {"line", Topology::kLine}};

inline constexpr std::pair<std::string_view, CollectiveKind> kCollectiveWords[] = {
    {"all_gather", CollectiveKind::kAllGather},
    {"reduce_scatter", CollectiveKind::kReduceScatter},
    {"all_reduce", CollectiveKind::kAllReduce},
    {"all_to_all", CollectiveKind::kAllToAll},
    {"permute", CollectiveKind::kCollectivePermute}};

/// The word of `value` in one of these tables.
template <class Table, class Value>
std::string_view word_of(const Table& table, const Value& value) {
  return std::find_if(std::begin(table), std::end(table), [&](const auto& one) { return one.second == value; })->first;
}

std::vector<std::string> key_names(const ClusterKeys& keys);

}  // namespace shardplan
