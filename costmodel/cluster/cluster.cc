#include "costmodel/cluster/cluster.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/yaml.h"
#include "costmodel/cluster/quantity.h"

namespace shardplan {
namespace {

struct PresetName {
  std::string name;
  std::int64_t count = 1;
};

/// "dgx-a100x8" -> dgx-a100, 8; nothing if it does not end in x and a number without leading zeros.
std::optional<PresetName> multiple(const std::string& name) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == name.size() || digits < 2 || name[digits - 1] != 'x' || name[digits] == '0') return std::nullopt;
  std::int64_t count = 0;
  for (std::size_t at = digits; at < name.size(); ++at) {
    count = std::min<std::int64_t>(10 * count + (name[at] - '0'), kMostClusterDevices + 1);
  }
  return PresetName{name.substr(0, digits - 1), count};
}

const std::string* preset_text(const std::string& name) {
  for (const auto& [preset, text] : cluster_presets()) {
    if (preset == name) return &text;
  }
  return nullptr;
}

[[noreturn]] void throw_unknown_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [preset, text] : cluster_presets()) names.push_back(preset);
  const std::optional<PresetName> parts = multiple(name);
  const std::string near = nearest_name(parts ? parts->name : name, names);
  const std::string meant = parts && !near.empty() ? fmt::format("{}x{}", near, parts->count) : near;
  throw InputError(std::vector<Diagnostic>{
      {{},
       fmt::format("cluster: no preset '{}'{}", name, near.empty() ? "" : fmt::format("; did you mean '{}'?", meant)),
       fmt::format("possible: {}, each with xN for N nodes, or a file's path", preset_list())}});
}

/// A cluster of `count` of the preset's nodes, with the corresponding name and text.
void set_nodes(Cluster& cluster, const std::string& preset, std::int64_t count) {
  cluster.levels.front().count = count;
  cluster.name = count == 1 ? preset : fmt::format("{}x{}", preset, count);
  cluster.text = write_cluster(cluster);
}

/// The name of the cluster with enough nodes for `num_devices`: "dgx-a100x128".
std::string larger_preset(const Cluster& cluster, std::int64_t num_devices) {
  const std::optional<PresetName> parts = multiple(cluster.name);
  const std::string preset = preset_text(cluster.name) == nullptr && parts ? parts->name : cluster.name;
  const std::int64_t of_node = cluster.num_devices() / cluster.levels.front().count;
  const std::int64_t count = (num_devices + of_node - 1) / of_node;
  if (preset_text(preset) != nullptr) return fmt::format("use --cluster {}x{}", preset, count);
  return fmt::format("a count of {} at level {} would do", count, cluster.levels.front().name);
}

bool mentions(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

}  // namespace

std::string preset_list() {
  std::string list;
  for (const auto& [name, text] : cluster_presets()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::string_view to_string(Provenance provenance) {
  switch (provenance) {
    case Provenance::kDatasheet:
      return "datasheet";
    case Provenance::kMeasured:
      return "measured";
    case Provenance::kMeasuredElsewhere:
      return "measured elsewhere";
    case Provenance::kAssumed:
      return "assumed";
    case Provenance::kToBeVerified:
      return "to be verified";
    case Provenance::kNotSaid:
      break;
  }
  return "no source given";
}

std::int64_t Cluster::num_devices() const {
  std::int64_t product = 1;
  for (const ClusterLevel& level : levels) product *= level.count;
  return product;
}

std::vector<std::pair<std::string, Provenance>> Cluster::provenance() const {
  std::vector<std::pair<std::string, Provenance>> result;
  bool device_is_sourced = false;
  for (const auto& [key, words] : sources) {
    Provenance least = Provenance::kNotSaid;
    for (const Provenance word : {Provenance::kToBeVerified, Provenance::kAssumed, Provenance::kMeasuredElsewhere,
                                  Provenance::kMeasured, Provenance::kDatasheet}) {
      if (!mentions(words, to_string(word))) continue;
      least = word;
      break;
    }
    result.emplace_back(key, least);
    const bool is_of_device = key == "device" || key == "flops" || key == "memory" || key.starts_with("device.");
    device_is_sourced = device_is_sourced || is_of_device;
  }
  if (!device_is_sourced) result.emplace_back("device", Provenance::kNotSaid);
  for (const ClusterLevel& level : levels) {
    const bool is_sourced = std::any_of(sources.begin(), sources.end(), [&](const auto& source) {
      return source.first == level.name || source.first.starts_with(level.name + ".");
    });
    if (!is_sourced) result.emplace_back(level.name, Provenance::kNotSaid);
  }
  return result;
}

bool is_cluster_path(std::string_view name_or_path) {
  return name_or_path.find('/') != std::string_view::npos || name_or_path.find(".yaml") != std::string_view::npos;
}

Cluster read_cluster(const std::string& name_or_path, int num_bases) {
  if (is_cluster_path(name_or_path)) {
    return read_cluster_text(read_text_file(name_or_path), name_or_path, num_bases);
  }
  if (const std::string* text = preset_text(name_or_path))
    return read_cluster_text(*text, name_or_path + ".yaml", num_bases);
  const std::optional<PresetName> parts = multiple(name_or_path);
  const std::string* text = parts ? preset_text(parts->name) : nullptr;
  if (text == nullptr) throw_unknown_preset(name_or_path);
  Cluster cluster = read_cluster_text(*text, parts->name + ".yaml", num_bases);
  const std::int64_t of_node = cluster.num_devices() / cluster.levels.front().count;
  if (parts->count > kMostClusterDevices / of_node) {
    throw InputError(SourcePlace{}, "cluster '{}' has more than {} devices", name_or_path, kMostClusterDevices);
  }
  set_nodes(cluster, parts->name, parts->count);
  return cluster;
}

Cluster with_capacity(const Cluster& cluster, Bytes capacity) {
  SHARDPLAN_CHECK(capacity >= 1);
  Cluster changed = cluster;
  changed.device.capacity = capacity;
  changed.device.reserved = 0;
  changed.text = write_cluster(changed);
  return changed;
}

Cluster take_devices(const Cluster& cluster, std::int64_t device_num) {
  const std::int64_t all = cluster.num_devices();
  if (device_num == all) return cluster;
  if (device_num < 1) throw InputError(SourcePlace{}, "device_num is {}; expected at least 1", device_num);
  if (device_num > kMostClusterDevices) {
    throw InputError(SourcePlace{}, "device_num is {}; expected at most {}", device_num, kMostClusterDevices);
  }
  if (device_num > all) {
    throw InputError(SourcePlace{}, "device_num is {}, but {} has {} devices; {}", device_num, cluster.name, all,
                     larger_preset(cluster, device_num));
  }
  Cluster taken = cluster;
  std::int64_t rest = device_num;  // of the current level and those further out
  for (std::size_t level = cluster.levels.size(); level-- > 0;) {
    const std::int64_t count = cluster.levels[level].count;
    if (rest > count && rest % count != 0) {
      std::int64_t part = 1;
      for (std::size_t inner = level; inner < cluster.levels.size(); ++inner) part *= cluster.levels[inner].count;
      throw InputError(std::vector<Diagnostic>{
          {{},
           fmt::format("device_num is {}, which cuts through a group of {} devices (level {})", device_num, part,
                       cluster.levels[level].name),
           fmt::format("possible: {} or {}, or up to {} devices of one innermost group", device_num / part * part,
                       (device_num / part + 1) * part, cluster.levels.back().count)}});
    }
    ClusterLevel& own = taken.levels[level];
    own.count = std::min(rest, count);
    if (own.count < count && own.topology == Topology::kRing) own.topology = Topology::kLine;
    if (own.count < count && own.topology == Topology::kFullMesh) {  // no links to those left out
      own.bandwidth = std::max<std::int64_t>(1, own.bandwidth / (count - 1) * std::max<std::int64_t>(1, own.count - 1));
    }
    rest /= own.count;
    if (own.count == count) continue;
    const auto is_of_level = [&](const CollectiveTable& table) { return table.level == own.name; };
    if (own.topology == cluster.levels[level].topology) {
      for (CollectiveTable& table : taken.tables) {
        if (is_of_level(table) && table.level_count == 0) table.level_count = count;
      }
    } else if (std::erase_if(taken.tables, is_of_level) > 0) {
      taken.notices.push_back(
          fmt::format("of {} devices {} is no ring: its measured tables are left out", device_num, own.name));
    }
  }
  if (!cluster.position_of_rank.empty()) {
    taken.position_of_rank.resize(static_cast<std::size_t>(device_num));
    for (const std::int64_t position : taken.position_of_rank) {
      if (position < device_num) continue;
      throw InputError(
          SourcePlace{},
          "device_num is {}, but the first {} ranks (rank table, or the key ranks) do not stand on the first {} cards",
          device_num, device_num, device_num);
    }
  }
  const std::optional<PresetName> parts = multiple(cluster.name);
  const bool is_whole_nodes = device_num % (all / cluster.levels.front().count) == 0;
  const bool is_multiple = preset_text(cluster.name) == nullptr && parts && preset_text(parts->name) != nullptr;
  // A file of the user may have a preset's name.
  if (is_whole_nodes && is_multiple && read_cluster(cluster.name) == cluster) {
    set_nodes(taken, parts->name, taken.levels.front().count);
  } else {
    taken.text = write_cluster(taken);
  }
  return taken;
}

}  // namespace shardplan
