#include "costmodel/cluster/cluster_base.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
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
      const std::string& key = entry.key.text;
      YamlNode* levels = key == "levels" && !entry.value.items.empty() ? find(base, key) : nullptr;
      if (levels != nullptr) {
        join_levels(*levels, entry.value);
      } else if (key != "base") {
        join(base, entry, key);
      }
    }
    add_sources(base);
    return base;
  }

 private:
  /// Sets one key of a map, to which `path` leads: "device.memory.capacity", "collectives.launch", "ib.bandwidth".
  void join(YamlNode& map, const YamlEntry& own, const std::string& path) {
    YamlNode* value = find(map, own.key.text);
    if (value == nullptr) {
      map.entries.push_back(own);
      changed_.push_back(path);
    } else if (value->is_map() && own.value.is_map()) {
      value->line = own.value.line;
      value->column = own.value.column;
      for (const YamlEntry& entry : own.value.entries) join(*value, entry, path + "." + entry.key.text);
    } else {
      *value = own.value;
      changed_.push_back(path);
    }
  }

  void join_levels(YamlNode& levels, const YamlNode& own) {
    std::vector<std::string> names;
    for (const YamlNode& level : levels.items) names.push_back(level.find("name")->text);
    std::set<std::string> seen;
    std::vector<YamlNode> unnamed;  // the reader says what is wrong with them
    for (const YamlNode& item : own.items) {
      const YamlNode* name = item.find("name");
      if (name == nullptr || !name->is_scalar()) {
        unnamed.push_back(item);
        continue;
      }
      const auto known = std::find(names.begin(), names.end(), name->text);
      if (known == names.end()) {
        faults_.push_back(
            {own_.place(*name), fmt::format("levels: the base {} has no level '{}'", place_.text, name->text),
             fmt::format("its levels: {}; a file without a base lists all of its own", fmt::join(names, ", "))});
      } else if (!seen.insert(name->text).second) {
        faults_.push_back({own_.place(*name), fmt::format("levels: name '{}' is given twice", name->text), {}});
      } else {
        YamlNode& level = levels.items[static_cast<std::size_t>(known - names.begin())];
        level.line = item.line;
        level.column = item.column;
        for (const YamlEntry& entry : item.entries) {
          if (entry.key.text != "name") join(level, entry, name->text + "." + entry.key.text);
        }
      }
    }
    levels.items.insert(levels.items.end(), unnamed.begin(), unnamed.end());
  }

  /// Whether the value at this path is a number that has a source.
  static bool is_number(const std::string& path) {
    if (path.find('.') == std::string::npos || path.starts_with("sources.")) return false;
    const std::string key = path.substr(path.rfind('.') + 1);
    for (const char* other : {"name", "count", "link_per", "topology", "algorithms", "collective_matmul"}) {
      if (key == other && path != "device.matrix_units.count") return false;
    }
    return true;
  }

  /// As sources are written: those of the device also without "device.".
  static std::string short_name(const std::string& path) {
    return path.starts_with("device.") ? path.substr(std::string("device.").size()) : path;
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
      const std::string name = short_name(path);
      const auto is_about_it = [&](const YamlEntry& source) {
        const std::string subject = short_name(source.key.text);
        return name == subject || name.starts_with(subject + ".") || path.starts_with(subject + ".");
      };
      if (own != nullptr && std::any_of(own->entries.begin(), own->entries.end(), is_about_it)) continue;
      erase(*sources, path);
      erase(*sources, name);
      sources->entries.push_back({scalar_at(place_, name), scalar_at(place_, "assumed")});
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
