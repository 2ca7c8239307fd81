#include "costmodel/cluster/cluster_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace shardplan {
namespace {

YamlNode* find(YamlNode& map, std::string_view key) { return const_cast<YamlNode*>(map.find(key)); }

void erase(YamlNode& map, std::string_view key) {
  std::erase_if(map.entries, [&](const YamlEntry& entry) { return entry.key.text == key; });
}

YamlNode scalar_at(const YamlNode& place, std::string text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = std::move(text);
  node.line = place.line;
  node.column = place.column;
  return node;
}

void move_to(YamlNode& node, const YamlNode& place) {
  node.line = place.line;
  node.column = place.column;
  for (YamlNode& item : node.items) move_to(item, place);
  for (YamlEntry& entry : node.entries) {
    move_to(entry.key, place);
    move_to(entry.value, place);
  }
}

class Completion {
 public:
  Completion(const YamlDocument& own, std::vector<Diagnostic>& faults)
      : own_(own), place_(*own.root.find("base")), faults_(faults) {}

  YamlNode of(YamlNode base) {
    move_to(base, place_);
    if (own_.root.find("rank_table") != nullptr) erase(base, "ranks");  // the file says anew where ranks stand
    for (const YamlEntry& entry : own_.root.entries) {
      if (entry.key.text == "base") continue;
      YamlNode* levels = entry.key.text == "levels" && entry.value.is_sequence() ? find(base, "levels") : nullptr;
      if (levels != nullptr) {
        join_levels(*levels, entry.value);
      } else {
        join(base, entry, entry.key.text == "device" ? "" : entry.key.text);
      }
    }
    add_sources(base);
    return base;
  }

 private:
  /// Sets one key of a map; `path` is the name that a source of it would have.
  void join(YamlNode& map, const YamlEntry& own, const std::string& path) {
    YamlNode* value = find(map, own.key.text);
    if (value != nullptr && value->is_map() && own.value.is_map()) {
      value->line = own.value.line;
      value->column = own.value.column;
      for (const YamlEntry& entry : own.value.entries) {
        join(*value, entry, path.empty() ? entry.key.text : path + "." + entry.key.text);
      }
      return;
    }
    if (value != nullptr) {
      *value = own.value;
    } else {
      map.entries.push_back(own);
    }
    changed_.push_back(path);
  }

  void join_levels(YamlNode& levels, const YamlNode& own) {
    for (const YamlNode& item : own.items) {
      const YamlNode* name = item.find("name");
      const auto known = std::find_if(levels.items.begin(), levels.items.end(), [&](const YamlNode& level) {
        return name != nullptr && level.find("name")->text == name->text;
      });
      if (name == nullptr || !name->is_scalar()) {
        levels.items.push_back(item);  // the reader says what is wrong with it
      } else if (known == levels.items.end()) {
        std::vector<std::string> names;
        for (const YamlNode& level : levels.items) names.push_back(level.find("name")->text);
        faults_.push_back(
            {own_.place(*name), fmt::format("levels: the base {} has no level '{}'", place_.text, name->text),
             fmt::format("its levels: {}; a file without a base lists all of its own", fmt::join(names, ", "))});
      } else {
        known->line = item.line;
        known->column = item.column;
        for (const YamlEntry& entry : item.entries) {
          if (entry.key.text != "name") join(*known, entry, name->text + "." + entry.key.text);
        }
      }
    }
  }

  /// Whether a number stands at this path, which has a source.
  static bool is_number(const std::string& path) {
    if (path.starts_with("sources") || path.starts_with("tables")) return false;
    const std::string key = path.substr(path.rfind('.') + 1);
    const bool is_of_all = path == key;  // of the file, or directly of the device
    if (is_of_all) return key == "attention_fill" || key == "start";
    return key != "count" && key != "link_per" && key != "algorithms" && key != "collective_matmul";
  }

  void add_sources(YamlNode& cluster) const {
    const YamlNode* own = own_.root.find("sources");
    if (find(cluster, "sources") == nullptr) {
      YamlNode map;
      map.kind = YamlNode::Kind::kMap;
      cluster.entries.push_back({scalar_at(place_, "sources"), std::move(map)});
    }
    YamlNode* sources = find(cluster, "sources");
    if (!sources->is_map()) return;  // an error of the file
    for (const std::string& path : changed_) {
      if (!is_number(path)) continue;
      const bool is_named =
          own != nullptr && std::any_of(own->entries.begin(), own->entries.end(), [&](const YamlEntry& e) {
            const std::string name = e.key.text.starts_with("device.") ? e.key.text.substr(7) : e.key.text;
            return path == name || path.starts_with(name + ".") || name == "device";
          });
      if (is_named) continue;
      for (const std::string& name : {path, "device." + path}) erase(*sources, name);
      sources->entries.push_back({scalar_at(place_, path), scalar_at(place_, "assumed")});
    }
  }

  const YamlDocument& own_;
  const YamlNode& place_;
  std::vector<Diagnostic>& faults_;
  std::vector<std::string> changed_;
};

}  // namespace

YamlNode completed_from_base(const YamlDocument& own, YamlNode base, std::vector<Diagnostic>& faults) {
  return Completion(own, faults).of(std::move(base));
}

}  // namespace shardplan
