#include "model/comm_fusion_options.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "model/syntax/scalar_values.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMostMegabytes = std::int64_t{1} << 30;
constexpr std::int64_t kMostIndex = std::int64_t{1} << 30;
const std::vector<std::string> kKinds = {"allreduce", "allgather", "reducescatter"};

CommFusion& fusion_of(CommFusions& fusions, const std::string& kind) {
  if (kind == "allreduce") return fusions.all_reduce;
  return kind == "allgather" ? fusions.all_gather : fusions.reduce_scatter;
}

/// What one kind says. Each fault is reported once, at the value that is wrong.
std::optional<CommFusion> read_kind(const OptionReader& reader, const YamlEntry& entry) {
  const std::string kind = fmt::format("comm_fusion: {}", entry.key.text);
  if (!entry.value.is_map()) {
    reader.refuse(entry.value, kind, "a map as in {mode: size, config: 32}");
    return std::nullopt;
  }
  for (const YamlEntry& key : entry.value.entries) {
    if (key.key.text == "mode" || key.key.text == "config") continue;
    reader.fault(key.key, fmt::format("parallel: {}: unknown key '{}'", kind, key.key.text), "mode or config");
  }
  const YamlNode* mode = entry.value.find("mode");
  if (!mode) {
    reader.fault(entry.key, fmt::format("parallel: {}: mode is missing; expected auto, size, index or best", kind));
    return std::nullopt;
  }
  const std::optional<std::string> found = choice_value(*mode, {"auto", "size", "index", "best"});
  if (!found) {
    reader.refuse(*mode, kind + ": mode", "auto, size, index or best");
    return std::nullopt;
  }
  CommFusion fusion;
  const YamlNode* config = entry.value.find("config");
  const bool has_config = config && !is_none(*config);
  const bool is_size = *found == "size";
  if (*found == "auto" || *found == "best") {
    if (*found == "auto") fusion.mode = CommFusion::Mode::kSize;
    if (!has_config) return fusion;
    reader.refuse(*config, kind + ": config",
                  *found == "auto" ? "null: mode auto takes 64 MB" : "null: mode best finds the sizes");
    return std::nullopt;
  }
  fusion.mode = is_size ? CommFusion::Mode::kSize : CommFusion::Mode::kIndex;
  if (!is_size && entry.key.text != "allreduce") {
    reader.fault(*mode,
                 fmt::format("parallel: {}: mode index is for allreduce only; expected auto, size or best", kind));
    return std::nullopt;
  }
  const char* expected = is_size ? "a whole number of MB, as in config: 32"
                                 : "the indices at which new groups of gradients begin, as in config: [20, 35]";
  if (!has_config) {
    reader.fault(config ? *config : *mode,
                 fmt::format("parallel: {}: mode {} needs config: {}", kind, *found, expected));
    return std::nullopt;
  }
  const auto add = [&](const YamlNode& node, std::int64_t low, std::int64_t high) {
    const std::optional<std::int64_t> value = node.is_quoted ? std::nullopt : whole_value(node);
    const bool fits = value && *value >= low && *value <= high;
    if (fits) fusion.config.push_back(*value);
    return fits;
  };
  bool is_good = true;
  if (is_size) {
    is_good = add(*config, 1, kMostMegabytes);
    if (is_good) fusion.size = fusion.config.front() << 20;
    fusion.config.clear();
  } else {
    is_good = config->is_sequence() && !config->items.empty();
    for (const YamlNode& item : config->items) is_good = is_good && add(item, 0, kMostIndex);
    is_good = is_good && std::adjacent_find(fusion.config.begin(), fusion.config.end(), std::greater_equal<>()) ==
                             fusion.config.end();
  }
  if (is_good) return fusion;
  reader.refuse(*config, kind + ": config", is_size ? expected : std::string(expected) + ", ascending");
  return std::nullopt;
}

}  // namespace

CommFusions read_comm_fusion(const OptionReader& reader) {
  const YamlNode* node = reader.find("comm_fusion");
  if (!node || is_none(*node)) return {};
  if (!node->is_map()) {
    reader.refuse(*node, "comm_fusion", "a map as in {allreduce: {mode: size, config: 32}}");
    return {};
  }
  CommFusions result;
  bool is_open = true, has_kinds = false, is_good = true;
  for (const YamlEntry& entry : node->entries) {
    if (entry.key.text == "openstate") {
      const std::optional<bool> flag = flag_value(entry.value);
      if (!flag) reader.refuse(entry.value, "comm_fusion: openstate", "true or false");
      is_good = is_good && flag;
      is_open = flag.value_or(true);
    } else if (std::find(kKinds.begin(), kKinds.end(), entry.key.text) == kKinds.end()) {
      is_good = false;
      reader.fault(entry.key, fmt::format("parallel: comm_fusion: unknown key '{}'", entry.key.text),
                   "openstate, allreduce, allgather or reducescatter");
    } else {
      has_kinds = true;
      const std::optional<CommFusion> fusion = read_kind(reader, entry);
      is_good = is_good && fusion;
      if (fusion) fusion_of(result, entry.key.text) = *fusion;
    }
  }
  if (!is_open && has_kinds) {
    reader.fault(*node->find("openstate"), "parallel: comm_fusion: openstate: false joins nothing, but a kind says how",
                 "keep one of them");
    is_good = false;
  }
  if (!is_good) return {};
  for (const std::string& kind : kKinds) {
    if (!is_open) fusion_of(result, kind).mode = CommFusion::Mode::kNone;
    if (is_open && !has_kinds) fusion_of(result, kind).mode = CommFusion::Mode::kSize;
  }
  result.place = reader.place(*node);
  return result;
}

}  // namespace shardplan
