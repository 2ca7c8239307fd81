#include "report/cluster_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/json_text.h"
#include "costmodel/cluster/cluster_keys.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/cluster/quantity.h"
#include "costmodel/roofline_costs.h"
#include "report/text/text_table.h"

namespace shardplan {
namespace {

constexpr Bytes kExampleBytes = 1'000'000'000;

/// For each level the time of an all_reduce of 1 GB along it; empty for levels that join a single part.
std::vector<std::optional<Picoseconds>> all_reduce_times(Cluster cluster) {
  cluster.position_of_rank.clear();  // along the level, wherever ranks stand
  const RooflineCosts model(cluster, make_mesh(cluster));
  std::vector<std::optional<Picoseconds>> times;
  std::size_t axis = 0;
  for (const ClusterLevel& level : cluster.levels) {
    times.emplace_back();
    if (level.count == 1) continue;
    times.back() = model.collectives()->time(CollectiveKind::kAllReduce, {model.mesh().whole(axis++)}, kExampleBytes);
  }
  return times;
}

/// A rank's position, "pcie 1, hccs 1", in the levels with more than one part.
std::string standing(const Cluster& cluster, std::int64_t rank) {
  std::int64_t position =
      cluster.position_of_rank.empty() ? rank : cluster.position_of_rank[static_cast<std::size_t>(rank)];
  std::string text;
  for (std::size_t level = cluster.levels.size(); level-- > 0;) {
    const std::int64_t count = cluster.levels[level].count;
    if (count > 1)
      text = fmt::format("{} {}{}{}", cluster.levels[level].name, position % count, text.empty() ? "" : ", ", text);
    position /= count;
  }
  return text;
}

/// The first rank with index 1 at every level, which shows the digits that vary fastest.
std::int64_t example_rank(const Cluster& cluster) {
  std::int64_t rank = 0;
  std::int64_t part = 1;
  for (std::size_t level = cluster.levels.size(); level-- > 0;) {
    if (cluster.levels[level].count > 1) rank += part;
    part *= cluster.levels[level].count;
  }
  return rank;
}

std::string size_text(Bytes bytes) {
  const std::string exact = write_bytes(bytes);
  return exact.size() <= 9 ? exact : format_bytes(bytes);
}

std::string link_text(const ClusterLevel& level) {
  if (level.topology != Topology::kSwitch) return std::string(word_of(kTopologyWords, level.topology));
  return level.link_per == LinkPer::kGroup ? "per group" : "per device";
}

/// Rows of cells in columns three blanks apart; the first and third columns are left-aligned, the others right-aligned.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += c == 0 ? " " : "   ";
      line += c == 0 || c == 2 ? fmt::format("{:<{}}", row[c], widths[c]) : fmt::format("{:>{}}", row[c], widths[c]);
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string cluster_summary(const Cluster& cluster, bool with_sources) {
  const std::int64_t num_devices = cluster.num_devices();
  std::string text =
      fmt::format("{}: {}, {}, {} usable{}\n\n", cluster.name, counted(num_devices, "device"), cluster.device.name,
                  size_text(cluster.usable_bytes()), num_devices == 1 ? "" : " on each");

  const auto times = all_reduce_times(cluster);
  std::vector<std::vector<std::string>> rows = {
      {"level", "axis size", "link", "line rate", "used", "latency", "all_reduce of 1 GB along it"}};
  for (std::size_t i = 0; i < cluster.levels.size(); ++i) {
    const ClusterLevel& level = cluster.levels[i];
    rows.push_back({level.name, level.count == 1 ? "-" : std::to_string(level.count), link_text(level),
                    write_byte_rate(level.bandwidth),
                    fmt::format("{}.{} %", level.efficiency_ppm / 10'000, level.efficiency_ppm / 1'000 % 10),
                    fmt::format("{:.1f} us", static_cast<double>(level.latency) / 1e6),
                    times[i] ? format_time(*times[i]) : "-"});
  }
  text += aligned(rows);
  for (const ClusterLevel& level : cluster.levels) {
    if (level.contention_ppm == 1'000'000) continue;
    text += fmt::format("  {}: {} of that while all groups communicate at once, as assumed in these times\n",
                        level.name, write_share(level.contention_ppm));
  }

  if (num_devices > 1) {
    const std::int64_t rank = example_rank(cluster);
    text += fmt::format("\n  rank 0 is {}; rank {} is {}\n", standing(cluster, 0), rank, standing(cluster, rank));
  } else {
    text += "\n";
  }
  std::string line = "  numbers from:";
  for (const auto& [key, provenance] : cluster.provenance()) {
    const std::string item = fmt::format(" {} {}", key, to_string(provenance));
    const bool is_first = line.back() == ':';
    if (!is_first) line += ',';
    if (line.size() + item.size() > kTerminalWidth) {
      text += line + "\n";
      line = "               ";
    }
    line += item;
  }
  text += line + "\n";
  if (with_sources) {
    for (const auto& [key, source] : cluster.sources) text += fmt::format("    {}: {}\n", key, source);
  }
  return text;
}

std::string cluster_json(const Cluster& cluster) {
  const ClusterDevice& device = cluster.device;
  const auto share = [](std::int64_t ppm) { return static_cast<double>(ppm) / 1e6; };
  Json document;
  document["schema"] = "shardplan.cluster/1";
  document["name"] = cluster.name;
  document["devices"] = cluster.num_devices();
  Json flops = Json::object();
  for (const auto& [type, rate] : device.flops) flops[std::string(to_string(type))] = rate;
  if (device.tf32_flops) flops["tf32"] = *device.tf32_flops;
  document["device"] = {
      {"name", device.name},
      {"capacity", device.capacity},
      {"reserved", device.reserved},
      {"usable", cluster.usable_bytes()},
      {"memory_bandwidth", device.memory_bandwidth},
      {"flops", flops},
      {"efficiency",
       {{"matmul", share(device.matmul_efficiency_ppm)}, {"memory", share(device.memory_efficiency_ppm)}}},
      {"start", to_seconds(device.start)}};
  for (const auto& [name, member] : kOptionalEfficiencies) {
    if (device.*member) document["device"]["efficiency"][name] = share(*(device.*member));
  }
  if (device.attention_fill > 0) document["device"]["attention_fill"] = device.attention_fill;
  if (device.depthwise_fill > 0) document["device"]["depthwise_fill"] = device.depthwise_fill;
  if (const MatrixUnits& units = device.matrix_units; units.count > 0) {
    document["device"]["matrix_units"] = {{"count", units.count}, {"tile", units.tile}, {"fill", units.fill}};
  }
  document["levels"] = Json::array();
  const auto times = all_reduce_times(cluster);
  for (std::size_t i = 0; i < cluster.levels.size(); ++i) {
    const ClusterLevel& level = cluster.levels[i];
    document["levels"].push_back({{"name", level.name},
                                  {"count", level.count},
                                  {"topology", word_of(kTopologyWords, level.topology)},
                                  {"link_per", level.link_per == LinkPer::kGroup ? "group" : "device"},
                                  {"bandwidth", level.bandwidth},
                                  {"efficiency", share(level.efficiency_ppm)},
                                  {"contention", share(level.contention_ppm)},
                                  {"latency", to_seconds(level.latency)},
                                  {"all_reduce_1_gb", times[i] ? Json(to_seconds(*times[i])) : Json(nullptr)}});
  }
  document["position_of_rank"] = cluster.position_of_rank;
  document["num_tables"] = cluster.tables.size();
  Json sources = Json::array();
  const auto provenance = cluster.provenance();
  for (std::size_t i = 0; i < provenance.size(); ++i) {
    sources.push_back({{"key", provenance[i].first},
                       {"from", std::string(to_string(provenance[i].second))},
                       {"text", i < cluster.sources.size() ? Json(cluster.sources[i].second) : Json(nullptr)}});
  }
  document["sources"] = sources;
  document["notices"] = cluster.notices;
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace shardplan
