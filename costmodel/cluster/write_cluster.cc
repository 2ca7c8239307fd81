#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "costmodel/cluster/cluster.h"
#include "costmodel/cluster/cluster_keys.h"
#include "costmodel/cluster/quantity.h"

namespace shardplan {
namespace {

/// Unquoted if YAML would read it as one plain text, quoted otherwise.
std::string quoted(const std::string& text) {
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ' ' ||
           c == '-';
  };
  const bool is_word = std::all_of(text.begin(), text.end(), is_safe) && !text.empty() && text.front() != '-' &&
                       text.front() != ' ' && text.back() != ' ' && text != "null" && text != "Null" && text != "NULL";
  if (is_word) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string other_efficiencies(const ClusterDevice& device) {
  std::string text;
  for (const auto& [name, member] : kOptionalEfficiencies) {
    if (device.*member) text += fmt::format("{}: {}, ", name, write_share(*(device.*member)));
  }
  return text;
}

std::string shape_constants(const ClusterDevice& device) {
  std::string text;
  const MatrixUnits& units = device.matrix_units;
  if (units.count > 0) {
    text += fmt::format("  matrix_units: {{count: {}, tile: {}", units.count, units.tile);
    text += units.fill > 0 ? fmt::format(", fill: {}}}\n", units.fill) : "}\n";
  }
  if (device.attention_fill > 0) text += fmt::format("  attention_fill: {}\n", device.attention_fill);
  if (device.depthwise_fill > 0) text += fmt::format("  depthwise_fill: {}\n", device.depthwise_fill);
  return text;
}

}  // namespace

std::string write_cluster(const Cluster& cluster) {
  const ClusterDevice& device = cluster.device;
  std::string flops;
  for (const auto& [type, rate] : device.flops) {
    flops += fmt::format("{}{}: {}", flops.empty() ? "" : ", ", to_string(type), write_operation_rate(rate));
  }
  if (device.tf32_flops) {
    flops += fmt::format("{}tf32: {}", flops.empty() ? "" : ", ", write_operation_rate(*device.tf32_flops));
  }
  std::string text = fmt::format(
      "shardplan: 1\ncluster: {}\ndevice:\n  name: {}\n"
      "  memory: {{capacity: {}, reserved: {}, bandwidth: {}}}\n  flops: {{{}}}\n"
      "  efficiency: {{matmul: {}, {}memory: {}}}\n{}  start: {}\n{}",
      quoted(cluster.name), quoted(device.name), write_bytes(device.capacity), write_bytes(device.reserved),
      write_byte_rate(device.memory_bandwidth), flops, write_share(device.matmul_efficiency_ppm),
      other_efficiencies(device), write_share(device.memory_efficiency_ppm), shape_constants(device),
      write_time(device.start),
      cluster.fusion == Fusion::kNone ? "" : fmt::format("fusion: {}\n", word_of(kFusionWords, cluster.fusion)));
  if (cluster.tf32 != Tf32::kNone) text += fmt::format("tf32: {}\n", word_of(kTf32Words, cluster.tf32));
  if (cluster.collectives != CollectiveSoftware{}) {
    const CollectiveSoftware& software = cluster.collectives;
    std::string times;
    if (software.per_device > 0) times += fmt::format("per_device: {}, ", write_time(software.per_device));
    if (software.direct_all_reduce > 0)
      times += fmt::format("direct_all_reduce: {}, ", write_time(software.direct_all_reduce));
    text += fmt::format("collectives: {{launch: {}, {}algorithms: {}{}}}\n", write_time(software.launch), times,
                        software.has_rings_and_trees ? "rings and trees" : "level by level",
                        software.collective_matmul ? ", collective_matmul: true" : "");
  }
  text += "levels:\n";
  for (const ClusterLevel& level : cluster.levels) {
    text += fmt::format("  - {{name: {}, count: {}, latency: {}, bandwidth: {}, efficiency: {}, link_per: {}",
                        quoted(level.name), level.count, write_time(level.latency), write_byte_rate(level.bandwidth),
                        write_share(level.efficiency_ppm), level.link_per == LinkPer::kGroup ? "group" : "device");
    if (level.topology != Topology::kSwitch) {
      text += fmt::format(", topology: {}", word_of(kTopologyWords, level.topology));
    }
    if (level.contention_ppm != 1'000'000) text += fmt::format(", contention: {}", write_share(level.contention_ppm));
    std::string protocols;
    for (const LinkProtocol& protocol : level.protocols) {
      protocols += fmt::format("{}{{latency: {}, bandwidth: {}}}", protocols.empty() ? "" : ", ",
                               write_time(protocol.latency), write_share(protocol.bandwidth_ppm));
    }
    if (!protocols.empty()) text += fmt::format(", protocols: [{}]", protocols);
    if (level.together != SpeedsTogether{}) {
      text += fmt::format(", together: {{kernels: {}, collectives: {}}}", write_share(level.together.kernels_ppm),
                          write_share(level.together.collectives_ppm));
    }
    text += "}\n";
  }
  if (!cluster.position_of_rank.empty()) {
    text += fmt::format("ranks: [{}]\n", fmt::join(cluster.position_of_rank, ", "));
  }
  if (!cluster.tables.empty()) text += "tables:\n";
  for (const CollectiveTable& table : cluster.tables) {
    std::string bytes;
    std::string times;
    for (const auto& [size, time] : table.points) {
      bytes += (bytes.empty() ? "" : ", ") + write_bytes(size);
      times += (times.empty() ? "" : ", ") + write_time(time);
    }
    const std::string of = table.level_count > 0 ? fmt::format(", of: {}", table.level_count) : "";
    text += fmt::format("  - {{collective: {}, level: {}, devices: {}{}, bytes: [{}], time: [{}]}}\n",
                        word_of(kCollectiveWords, table.kind), quoted(table.level), table.devices, of, bytes, times);
  }
  if (!cluster.sources.empty()) text += "sources:\n";
  for (const auto& [key, source] : cluster.sources) text += fmt::format("  {}: {}\n", quoted(key), quoted(source));
  return text;
}

}  // namespace shardplan
