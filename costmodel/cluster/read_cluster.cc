// A cluster file is read in one pass that never stops at an error.
//
// Every error is added with its place, and reading continues with a value that causes no further errors, so that a user
// sees all of them at once. The valid values of a key are defined where the key is read; quantities ("600 GB/s", "1.2
// us") are parsed by costmodel/cluster/quantity.h into integers, and all later arithmetic uses these.

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/integer.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "costmodel/cluster/cluster.h"
#include "costmodel/cluster/cluster_base.h"
#include "costmodel/cluster/cluster_keys.h"
#include "costmodel/cluster/quantity.h"
#include "costmodel/cluster/rank_table.h"

namespace shardplan {
namespace {

constexpr int kMostBases = 16;

template <class Table>
std::string names_of(const Table& table) {
  std::string names;
  for (std::size_t i = 0; i < std::size(table); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : i + 1 < std::size(table) ? ", " : " or ", table[i].first);
  }
  return names;
}
/// Reads one file; every error is recorded, and reading continues with a value that causes no further errors.
class ClusterReader {
 public:
  ClusterReader(const std::string& text, const std::string& file, int num_bases)
      : document_(parse_yaml(text, file, faults_)), num_bases_(num_bases) {
    cluster_.text = text;
  }

  Cluster read() {
    const YamlNode& root = document_.root;
    if (!root.is_map()) {
      fault(root, "expected a map with the keys shardplan, cluster, device and levels; found {}", describe(root));
      throw InputError(faults_);
    }
    if (const YamlNode* servers = root.find("server_list"); servers != nullptr && root.find("levels") == nullptr) {
      fault(*servers,
            "this is a rank table: it says which rank runs on which card, not what devices and links are like; name a "
            "cluster and this file beside it: ascend-910 --rank-table {}",
            document_.file.str());
      throw InputError(faults_);
    }
    if (const YamlNode* operators = root.find("operators"); operators != nullptr && root.find("levels") == nullptr) {
      fault(*operators, "this file describes a model, not a cluster; expected the keys device and levels");
      throw InputError(faults_);
    }
    if (root.find("base") != nullptr) complete();
    keys(root, cluster_file_keys(), "");
    if (const YamlNode* version = need(root, "shardplan", "");
        version != nullptr && scalar(*version, "shardplan") != "1") {
      fault(*version, "shardplan: format version {}; this program reads version 1", describe(*version));
    }
    if (const YamlNode* name = need(root, "cluster", "")) cluster_.name = plain_name(*name, "cluster");
    if (const YamlNode* device = need(root, "device", "")) read_device(*device);
    read_word(root, "fusion", kFusionWords, cluster_.fusion);
    read_word(root, "tf32", kTf32Words, cluster_.tf32);
    if (cluster_.tf32 != Tf32::kNone && !cluster_.device.tf32_flops) {
      fault(*root.find("tf32"), "tf32: device.flops has no rate tf32 at which the products would be computed");
      cluster_.tf32 = Tf32::kNone;
    }
    if (const YamlNode* collectives = root.find("collectives")) read_collectives(*collectives);
    if (const YamlNode* levels = need(root, "levels", "")) read_levels(*levels);
    if (const YamlNode* ranks = root.find("ranks")) read_ranks(*ranks);
    if (const YamlNode* tables = root.find("tables")) read_tables(*tables);
    if (const YamlNode* table = root.find("rank_table"); table != nullptr && faults_.empty())
      read_rank_table_of(*table);
    if (const YamlNode* sources = root.find("sources")) read_sources(*sources);
    if (has_base_) cluster_.text = write_cluster(cluster_);
    if (!faults_.empty()) {
      std::stable_sort(faults_.begin(), faults_.end(), [](const Diagnostic& a, const Diagnostic& b) {
        return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
      });
      throw InputError(faults_);
    }
    return std::move(cluster_);
  }

 private:
  template <class... Args>
  void fault(const YamlNode& node, fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back({document_.place(node), fmt::format(format, std::forward<Args>(args)...), {}});
  }
  void keys(const YamlNode& node, const ClusterKeys& known, const std::string& where) {
    check_keys(document_, node, key_names(known), where, faults_);
  }
  static std::string in(const std::string& where, const std::string& key) {
    return where.empty() ? key : where + "." + key;
  }

  /// A path in the file: relative to its folder.
  std::string beside_file(const std::string& path) const {
    return (std::filesystem::path(document_.file.str()).parent_path() / path).string();
  }

  /// Completes a file that contains only what differs from its base. If the base cannot be read there is nothing to go on
  /// with.
  void complete() {
    const YamlNode& place = *document_.root.find("base");
    std::string base = scalar(place, "base");
    if (base.empty()) throw InputError(faults_);
    if (is_cluster_path(base)) {
      base = beside_file(base);
      std::error_code ignored;
      if (std::filesystem::equivalent(base, document_.file.str(), ignored)) {
        fault(place, "base: the file is its own base; expected a preset or another file");
        throw InputError(faults_);
      }
    }
    try {
      if (num_bases_ == kMostBases)
        throw InputError(SourcePlace{}, "more than {} files, each the base of another", kMostBases);
      const std::string text = write_cluster(read_cluster(base, num_bases_ + 1));
      document_.root = completed_from_base(document_, parse_yaml(text, base, faults_).root, faults_);
      has_base_ = true;
    } catch (const InputError& error) {
      for (Diagnostic diagnostic : error.diagnostics()) {
        if (diagnostic.place.line == 0) {
          diagnostic.message = "base: " + diagnostic.message;
          diagnostic.place = document_.place(place);
        }
        faults_.push_back(std::move(diagnostic));
      }
      throw InputError(faults_);
    }
  }

  /// The value of a required key; otherwise null, and an error is recorded.
  const YamlNode* need(const YamlNode& map, const std::string& key, const std::string& where) {
    const YamlNode* node = map.find(key);
    if (node == nullptr) fault(map, "{}: missing", in(where, key));
    return node;
  }
  bool is_map(const YamlNode& node, const std::string& where) {
    if (!node.is_map()) fault(node, "{}: expected a map, found {}", where, describe(node));
    return node.is_map();
  }
  std::string plain_name(const YamlNode& node, const std::string& where) {
    if (has_control(node.text)) fault(node, "{}: a name is one line without control characters", where);
    return has_control(node.text) ? std::string() : scalar(node, where);
  }

  std::string scalar(const YamlNode& node, const std::string& where) {
    if (node.is_scalar() && !node.text.empty()) return node.text;
    fault(node, "{}: expected a text, found {}", where, describe(node));
    return {};
  }
  /// The key's value parsed by `parse`; `otherwise` if it is optional and absent, or wrong (an error is recorded).
  std::int64_t value(const YamlNode& map, const std::string& key, const std::string& where, bool is_needed,
                     std::int64_t (*parse)(std::string_view), std::int64_t otherwise) {
    const YamlNode* node = is_needed ? need(map, key, where) : map.find(key);
    return node == nullptr ? otherwise : parsed(*node, in(where, key), parse, otherwise);
  }
  std::int64_t parsed(const YamlNode& node, const std::string& where, std::int64_t (*parse)(std::string_view),
                      std::int64_t otherwise) {
    const std::size_t faults_before = faults_.size();
    const std::string text = scalar(node, where);
    if (faults_.size() > faults_before) return otherwise;
    try {
      return parse(text);
    } catch (const InputError& error) {
      fault(node, "{}: {}", where, error.diagnostics().front().message);
      return otherwise;
    }
  }

  static std::int64_t parse_count(std::string_view text) {
    std::int64_t count = 0;
    for (const char c : text) {
      if (c < '0' || c > '9' || count > kMostClusterDevices) {
        count = 0;
        break;
      }
      count = 10 * count + (c - '0');
    }
    if (count < 1 || count > kMostClusterDevices || text.front() == '0') {
      throw InputError(SourcePlace{}, "'{}' is not a whole number from 1 to {}", text, kMostClusterDevices);
    }
    return count;
  }
  template <std::int64_t (*parse)(std::string_view)>
  static std::int64_t positive(std::string_view text) {
    const std::int64_t value = parse(text);
    if (value < 1) throw InputError(SourcePlace{}, "'{}' is nothing; expected more", text);
    return value;
  }

  /// One of a table's words; `value` is unchanged if the key is absent or wrong (an error is recorded).
  template <class Table, class Value>
  void read_word(const YamlNode& map, const std::string& key, const Table& table, Value& value,
                 const std::string& where = "") {
    const YamlNode* node = map.find(key);
    if (node == nullptr) return;
    const std::string text = scalar(*node, in(where, key));
    const auto known =
        std::find_if(std::begin(table), std::end(table), [&](const auto& one) { return one.first == text; });
    if (known != std::end(table)) {
      value = known->second;
    } else if (!text.empty()) {
      fault(*node, "{}: '{}'; expected {}", in(where, key), text, names_of(table));
    }
  }

  void read_device(const YamlNode& node) {
    if (!is_map(node, "device")) return;
    keys(node, cluster_device_keys(), "device");
    ClusterDevice& device = cluster_.device;
    if (const YamlNode* name = need(node, "name", "device")) device.name = plain_name(*name, "device.name");
    if (const YamlNode* memory = need(node, "memory", "device");
        memory != nullptr && is_map(*memory, "device.memory")) {
      const std::string where = "device.memory";
      keys(*memory, cluster_memory_keys(), where);
      device.capacity = value(*memory, "capacity", where, true, positive<parse_bytes>, INT64_MAX);
      device.reserved = value(*memory, "reserved", where, false, parse_bytes, 0);
      device.memory_bandwidth = value(*memory, "bandwidth", where, true, positive<parse_byte_rate>, 1);
      if (device.reserved >= device.capacity) {
        fault(*memory, "device.memory: {} reserved of {} leave nothing", write_bytes(device.reserved),
              write_bytes(device.capacity));
      }
    }
    if (const YamlNode* flops = need(node, "flops", "device"); flops != nullptr && is_map(*flops, "device.flops")) {
      if (flops->entries.empty()) fault(*flops, "device.flops: no dtype; expected at least one");
      const std::vector<std::string> known = key_names(cluster_flops_keys());
      for (const YamlEntry& entry : flops->entries) {
        if (std::find(known.begin(), known.end(), entry.key.text) == known.end()) {
          fault(entry.key, "device.flops: unknown dtype '{}'; expected {}", entry.key.text, fmt::join(known, ", "));
          continue;
        }
        const std::int64_t rate =
            parsed(entry.value, "device.flops." + entry.key.text, positive<parse_operation_rate>, 1);
        if (entry.key.text == "tf32") {
          device.tf32_flops = rate;
        } else {
          device.flops[*parse_data_type(entry.key.text)] = rate;
        }
      }
    }
    if (const YamlNode* share = node.find("efficiency"); share != nullptr && is_map(*share, "device.efficiency")) {
      keys(*share, cluster_efficiency_keys(), "device.efficiency");
      device.matmul_efficiency_ppm = value(*share, "matmul", "device.efficiency", false, parse_share, 1'000'000);
      for (const auto& [name, member] : kOptionalEfficiencies) {
        if (share->find(name) == nullptr) continue;
        device.*member = value(*share, name, "device.efficiency", false, parse_share, 1);
      }
      device.memory_efficiency_ppm = value(*share, "memory", "device.efficiency", false, parse_share, 1'000'000);
    }
    if (const YamlNode* units = node.find("matrix_units"); units != nullptr && is_map(*units, "device.matrix_units")) {
      const std::string where = "device.matrix_units";
      keys(*units, cluster_matrix_units_keys(), where);
      device.matrix_units.count = value(*units, "count", where, true, parse_count, 1);
      device.matrix_units.tile = value(*units, "tile", where, false, parse_count, 128);
      device.matrix_units.fill = value(*units, "fill", where, false, parse_count, 0);
    }
    device.attention_fill = value(node, "attention_fill", "device", false, parse_count, 0);
    device.depthwise_fill = value(node, "depthwise_fill", "device", false, parse_count, 0);
    device.start = value(node, "start", "device", false, parse_time, 0);
  }

  void read_collectives(const YamlNode& node) {
    if (!is_map(node, "collectives")) return;
    keys(node, cluster_collectives_keys(), "collectives");
    cluster_.collectives.launch = value(node, "launch", "collectives", false, parse_time, 0);
    cluster_.collectives.per_device = value(node, "per_device", "collectives", false, parse_time, 0);
    cluster_.collectives.direct_all_reduce =
        value(node, "direct_all_reduce", "collectives", false, positive<parse_time>, 0);
    if (const YamlNode* pieces = node.find("collective_matmul")) {
      const std::string text = scalar(*pieces, "collectives.collective_matmul");
      if (!text.empty() && text != "true" && text != "false") {
        fault(*pieces, "collectives.collective_matmul: '{}'; expected true or false", text);
      }
      cluster_.collectives.collective_matmul = text == "true";
    }
    const YamlNode* algorithms = node.find("algorithms");
    if (algorithms == nullptr) return;
    const std::string text = scalar(*algorithms, "collectives.algorithms");
    if (!text.empty() && text != "level by level" && text != "rings and trees") {
      fault(*algorithms, "collectives.algorithms: '{}'; expected level by level, or rings and trees", text);
    }
    cluster_.collectives.has_rings_and_trees = text == "rings and trees";
  }

  std::vector<LinkProtocol> read_protocols(const YamlNode& node, const std::string& where) {
    std::vector<LinkProtocol> protocols;
    if (!node.is_sequence()) {
      fault(node, "{}: expected a list, found {}", where, describe(node));
      return protocols;
    }
    for (const YamlNode& item : node.items) {
      if (!is_map(item, where)) continue;
      keys(item, cluster_protocol_keys(), where);
      LinkProtocol protocol;
      protocol.latency = value(item, "latency", where, true, parse_time, 0);
      protocol.bandwidth_ppm = value(item, "bandwidth", where, true, parse_share, 1'000'000);
      protocols.push_back(protocol);
    }
    return protocols;
  }

  void read_levels(const YamlNode& node) {
    if (!node.is_sequence() || node.items.empty()) {
      fault(node, "levels: expected a list of levels, outermost first; found {}", describe(node));
      return;
    }
    std::int64_t num_devices = 1;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const YamlNode& item = node.items[i];
      std::string where = fmt::format("levels[{}]", i);
      if (!is_map(item, where)) continue;
      keys(item, cluster_level_keys(), where);
      ClusterLevel level;
      if (const YamlNode* name = need(item, "name", where)) {
        level.name = scalar(*name, where + ".name");
        check_level_name(*name, level.name);
        where = level.name.empty() ? where : level.name;
      }
      level.count = value(item, "count", where, true, parse_count, 1);
      level.latency = value(item, "latency", where, true, parse_time, 0);
      level.bandwidth = value(item, "bandwidth", where, true, positive<parse_byte_rate>, 1);
      level.efficiency_ppm = value(item, "efficiency", where, false, parse_share, 1'000'000);
      level.contention_ppm = value(item, "contention", where, false, parse_share, 1'000'000);
      if (const YamlNode* per = item.find("link_per")) {
        const std::string text = scalar(*per, where + ".link_per");
        if (!text.empty() && text != "device" && text != "group") {
          fault(*per, "{}.link_per: '{}'; expected device or group", where, text);
        }
        level.link_per = text == "group" ? LinkPer::kGroup : LinkPer::kDevice;
      }
      read_word(item, "topology", kTopologyWords, level.topology, where);
      if (level.topology != Topology::kSwitch && level.link_per == LinkPer::kGroup) {
        fault(*item.find("link_per"),
              "{}.link_per: group, but its topology is {}; links of rings, lines and full meshes are per device", where,
              word_of(kTopologyWords, level.topology));
      } else if (level.link_per == LinkPer::kGroup && i + 1 == node.items.size()) {
        fault(*item.find("link_per"),
              "{}.link_per: group, but a group of the innermost level is one device; for devices that share a link add "
              "a level of them inside it",
              where);
      }
      if (const YamlNode* protocols = item.find("protocols")) {
        level.protocols = read_protocols(*protocols, where + ".protocols");
      }
      if (const YamlNode* together = item.find("together"); together && is_map(*together, where + ".together")) {
        const std::string inside = where + ".together";
        keys(*together, cluster_together_keys(), inside);
        level.together.kernels_ppm = value(*together, "kernels", inside, false, parse_share, 1'000'000);
        level.together.collectives_ppm = value(*together, "collectives", inside, false, parse_share, 1'000'000);
      }
      num_devices = checked_multiply(num_devices, level.count).value_or(kMostClusterDevices + 1);
      if (num_devices > kMostClusterDevices) {
        fault(item, "{}: with it the cluster has more than {} devices", where, kMostClusterDevices);
        num_devices = 1;
      }
      cluster_.levels.push_back(std::move(level));
    }
  }

  void check_level_name(const YamlNode& node, const std::string& name) {
    const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
    if (!is_plain) fault(node, "levels: name {}; expected letters, digits, '_' or '-'", describe(node));
    for (const ClusterLevel& other : cluster_.levels) {
      if (!name.empty() && other.name == name) fault(node, "levels: name '{}' is given twice", name);
    }
  }

  /// Each position once.
  void read_ranks(const YamlNode& node) {
    const auto count = static_cast<std::size_t>(cluster_.num_devices());
    if (!node.is_sequence() || node.items.size() != count) {
      fault(node, "ranks: expected a list of {} positions, one for each device; found {}", count,
            node.is_sequence() ? fmt::format("{}", node.items.size()) : describe(node));
      return;
    }
    std::vector<std::int64_t> positions;
    std::vector<char> is_taken(count, 0);
    for (const YamlNode& item : node.items) {
      const std::int64_t position = item.text == "0" ? 0 : parsed(item, "ranks", parse_count, 0);
      if (static_cast<std::size_t>(position) >= count) {
        fault(item, "ranks: position {}; expected 0 to {}", position, count - 1);
      } else if (is_taken[static_cast<std::size_t>(position)]++ > 0) {
        fault(item, "ranks: two ranks stand at position {}", position);
      }
      positions.push_back(position);
    }
    if (!std::is_sorted(positions.begin(), positions.end())) cluster_.position_of_rank = std::move(positions);
  }

  void read_rank_table_of(const YamlNode& node) {
    if (document_.root.find("ranks") != nullptr) {
      fault(node, "rank_table: ranks says where they stand, too; keep one of them");
      return;
    }
    std::string path = scalar(node, "rank_table");
    if (path.empty()) return;
    path = beside_file(path);
    try {
      cluster_ = with_rank_table(cluster_, read_rank_table(path));
    } catch (const InputError& error) {
      for (Diagnostic diagnostic : error.diagnostics()) {
        if (diagnostic.place.line == 0) {
          const std::string& file = diagnostic.place.file;
          diagnostic.message = fmt::format("rank_table: {}{}", file.empty() ? "" : file + " ", diagnostic.message);
          diagnostic.place = document_.place(node);
        }
        faults_.push_back(std::move(diagnostic));
      }
    }
  }

  void read_tables(const YamlNode& node) {
    if (!node.is_sequence()) {
      fault(node, "tables: expected a list, found {}", describe(node));
      return;
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const YamlNode& item = node.items[i];
      const std::string where = fmt::format("tables[{}]", i);
      if (is_map(item, where)) read_table(item, where);
    }
  }

  void read_table(const YamlNode& item, const std::string& where) {
    keys(item, cluster_table_keys(), where);
    CollectiveTable table;
    if (const YamlNode* kind = need(item, "collective", where)) {
      const std::string text = scalar(*kind, where + ".collective");
      const auto known = std::find_if(std::begin(kCollectiveWords), std::end(kCollectiveWords),
                                      [&](const auto& k) { return k.first == text; });
      if (known != std::end(kCollectiveWords)) {
        table.kind = known->second;
      } else if (!text.empty()) {
        fault(*kind, "{}.collective: '{}'; expected all_gather, reduce_scatter, all_reduce, all_to_all or permute",
              where, text);
      }
    }
    if (const YamlNode* level = need(item, "level", where)) {
      table.level = scalar(*level, where + ".level");
      std::vector<std::string> names;
      for (const ClusterLevel& known : cluster_.levels) names.push_back(known.name);
      if (!table.level.empty() && std::find(names.begin(), names.end(), table.level) == names.end()) {
        const std::string near = nearest_name(table.level, names);
        fault(*level, "{}.level: no level '{}'{}", where, table.level,
              near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
      }
    }
    table.devices = value(item, "devices", where, true, parse_count, 2);
    if (table.devices < 2) fault(*item.find("devices"), "{}.devices: 1; expected at least 2", where);
    table.level_count = value(item, "of", where, false, parse_count, 0);
    for (const ClusterLevel& known : cluster_.levels) {
      if (known.name != table.level || table.devices < 2) continue;
      if (table.level_count > 0 && table.level_count < known.count) {
        fault(*item.find("of"), "{}.of: {}; {} has {} here, expected at least that", where, table.level_count,
              known.name, known.count);
        continue;
      }
      const std::int64_t count = std::max(known.count, table.level_count);
      if (count % table.devices == 0) continue;
      fault(*item.find("devices"), "{}.devices: {}; groups along {} have {} devices or a divisor of that", where,
            table.devices, known.name, count);
    }
    const std::vector<std::int64_t> bytes = list(item, "bytes", where, positive<parse_bytes>);
    const std::vector<std::int64_t> times = list(item, "time", where, positive<parse_time>);
    if (bytes.empty() || times.empty()) return;
    if (bytes.size() != times.size()) {
      fault(item, "{}: {} sizes but {} times", where, bytes.size(), times.size());
      return;
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      Picoseconds time = times[i];
      if (i > 0 && bytes[i] <= bytes[i - 1]) {
        fault(item.find("bytes")->items[i], "{}.bytes: {} does not exceed {} before it", where, write_bytes(bytes[i]),
              write_bytes(bytes[i - 1]));
        return;
      }
      if (i > 0 && time < table.points.back().second) {
        cluster_.notices.push_back(fmt::format(
            "{}: {}: {} takes {}, less than {} before it; taken as {}", document_.file, where, write_bytes(bytes[i]),
            write_time(time), write_time(table.points.back().second), write_time(table.points.back().second)));
        time = table.points.back().second;
      }
      table.points.emplace_back(bytes[i], time);
    }
    for (const CollectiveTable& other : cluster_.tables) {
      if (other.kind == table.kind && other.level == table.level && other.devices == table.devices) {
        fault(item, "{}: a table of this collective, level and number of devices was given before", where);
      }
    }
    if (!table.points.empty()) cluster_.tables.push_back(std::move(table));
  }

  /// A list of at least one quantity; empty (and an error is recorded) if it is anything else.
  std::vector<std::int64_t> list(const YamlNode& map, const std::string& key, const std::string& where,
                                 std::int64_t (*parse)(std::string_view)) {
    std::vector<std::int64_t> values;
    const YamlNode* node = need(map, key, where);
    if (node == nullptr) return values;
    if (!node->is_sequence() || node->items.empty()) {
      fault(*node, "{}: expected a list of at least one value, found {}", in(where, key),
            node->is_sequence() ? "an empty list" : describe(*node));
      return values;
    }
    for (const YamlNode& item : node->items) values.push_back(parsed(item, in(where, key), parse, 1));
    return values;
  }

  void read_sources(const YamlNode& node) {
    if (!is_map(node, "sources")) return;
    for (const YamlEntry& entry : node.entries) {
      cluster_.sources.emplace_back(entry.key.text, scalar(entry.value, "sources." + entry.key.text));
    }
  }

  std::vector<Diagnostic> faults_;
  YamlDocument document_;
  Cluster cluster_;
  const int num_bases_;
  bool has_base_ = false;
};

}  // namespace

Cluster read_cluster_text(const std::string& text, const std::string& file, int num_bases) {
  return ClusterReader(text, file, num_bases).read();
}

}  // namespace shardplan
