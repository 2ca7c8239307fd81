// HCCL's rank tables: read into a cluster whose devices have these ranks, and written from one.
//
// Reading has two parts. The first parses the JSON and checks each value in place; the second looks at all servers
// together, sorts them and their cards, and checks HCCL's requirements on the whole table: which numbers of cards it
// supports, and that ranks follow the order of the servers. Both collect errors and go on.

#include "costmodel/cluster/rank_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/json_tree.h"
#include "base/yaml.h"

namespace shardplan {
namespace {

constexpr std::int64_t kCards = 8;
constexpr std::int64_t kCardsOfRing = 4;

/// The servers of the file with the places of their values, before they are sorted.
struct PlacedDevice {
  std::optional<std::int64_t> card;
  std::optional<std::int64_t> rank;
  std::string address;
  SourcePlace card_place;
  SourcePlace rank_place;
};
struct PlacedServer {
  std::string id;
  SourcePlace devices_place;
  std::vector<PlacedDevice> devices;
};

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || value > kMostClusterDevices) return std::nullopt;
    value = 10 * value + (c - '0');
  }
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  return value;
}

/// The four numbers of an address, for comparison; nothing if it is not four numbers up to 255.
std::optional<std::array<std::int64_t, 4>> address_numbers(const std::string& text) {
  std::array<std::int64_t, 4> result{};
  std::size_t begin = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t end = i < 3 ? text.find('.', begin) : text.size();
    if (end == std::string::npos || begin > end) return std::nullopt;
    const std::optional<std::int64_t> part = number(text.substr(begin, end - begin));
    if (!part || *part > 255) return std::nullopt;
    result[i] = *part;
    begin = end + 1;
  }
  return result;
}

/// Four numbers, or the hexadecimal ones of IPv6.
bool is_address(const std::string& text) {
  if (address_numbers(text)) return true;
  return text.find(':') != std::string::npos && text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
}

class RankTableReader {
 public:
  RankTableReader(const std::string& text, const std::string& file) : file_(file), root_(parse_json(text, file)) {}

  RankTable read() {
    if (root_.kind != JsonNode::Kind::kObject) {
      fault(root_.place, "expected an object with version, server_count, server_list and status; found {}",
            describe(root_));
      throw InputError(faults_);
    }
    keys(root_, {"version", "server_count", "server_list", "status"});
    if (const JsonNode* version = string(root_, "version"); version != nullptr && version->text != "1.0") {
      fault(version->place, "version is \"{}\"; this program reads \"1.0\"", version->text);
    }
    if (const JsonNode* status = string(root_, "status"); status != nullptr && status->text != "completed") {
      fault(status->place, "status is \"{}\"; the table is not finished (expected \"completed\")", status->text);
    }
    const JsonNode* count = string(root_, "server_count");
    const JsonNode* list = need(root_, "server_list");
    if (list != nullptr && list->kind != JsonNode::Kind::kArray) {
      fault(list->place, "server_list: expected a list, found {}", describe(*list));
    } else if (list != nullptr) {
      if (list->items.empty()) fault(list->place, "server_list holds no server");
      if (count != nullptr && number(count->text) != static_cast<std::int64_t>(list->items.size())) {
        fault(count->place, "server_count is \"{}\" but server_list holds {} server{}", count->text, list->items.size(),
              list->items.size() == 1 ? "" : "s");
      }
      for (const JsonNode& server : list->items) read_server(server);
      check_cards();
      check_ranks();
    }
    if (!faults_.empty()) {
      std::stable_sort(faults_.begin(), faults_.end(), [](const Diagnostic& a, const Diagnostic& b) {
        return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
      });
      throw InputError(faults_);
    }
    return table();
  }

 private:
  template <class... Args>
  void fault(const SourcePlace& place, fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back({place, fmt::format(format, std::forward<Args>(args)...), {}});
  }
  void keys(const JsonNode& node, const std::vector<std::string>& known) {
    for (const JsonMember& member : node.members) {
      if (std::find(known.begin(), known.end(), member.key.text) != known.end()) continue;
      const std::string near = nearest_name(member.key.text, known);
      fault(member.key.place, "unknown key \"{}\"{}", member.key.text,
            near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near));
    }
  }
  const JsonNode* need(const JsonNode& object, const std::string& key) {
    const JsonNode* node = object.find(key);
    if (node == nullptr) fault(object.place, "\"{}\" is missing", key);
    return node;
  }
  /// The value of a key if it is a string; otherwise null, and an error is added.
  const JsonNode* string(const JsonNode& object, const std::string& key) {
    const JsonNode* node = need(object, key);
    if (node == nullptr || node->kind == JsonNode::Kind::kString) return node;
    if (node->kind == JsonNode::Kind::kNumber) {
      fault(node->place, "\"{}\" is {}; rank tables hold strings: \"{}\"", key, describe(*node), node->text);
    } else {
      fault(node->place, "\"{}\" is {}; rank tables hold strings", key, describe(*node));
    }
    return nullptr;
  }
  /// The same for an integer.
  std::optional<std::int64_t> integer(const JsonNode& object, const std::string& key, SourcePlace& place) {
    const JsonNode* node = string(object, key);
    if (node == nullptr) return std::nullopt;
    place = node->place;
    const std::optional<std::int64_t> value = number(node->text);
    if (!value) fault(place, "{} \"{}\" is not a whole number", key, node->text);
    return value;
  }
  /// Adds an error if a value was given before; false then.
  bool check_unique(const std::string& key, const std::string& scope, const JsonNode& node) {
    const auto [before, is_new] = seen_.try_emplace({key, scope, node.text}, node.place);
    if (!is_new)
      fault(node.place, "{} {} was given at {}:{}", key, node.text, before->second.line, before->second.column);
    return is_new;
  }

  void read_server(const JsonNode& node) {
    if (node.kind != JsonNode::Kind::kObject) {
      fault(node.place, "server_list: expected an object, found {}", describe(node));
      return;
    }
    keys(node, {"server_id", "device", "host_nic_ip"});
    PlacedServer server;
    if (const JsonNode* id = string(node, "server_id")) {
      server.id = id->text;
      if (!check_unique("server_id", "", *id)) return;  // else each of its cards would be another error
    }
    if (node.find("host_nic_ip") != nullptr) string(node, "host_nic_ip");
    const JsonNode* devices = need(node, "device");
    if (devices != nullptr && devices->kind != JsonNode::Kind::kArray) {
      fault(devices->place, "device: expected a list, found {}", describe(*devices));
      return;
    }
    if (devices == nullptr) return;
    server.devices_place = devices->place;
    const std::string scope = std::to_string(servers_.size());
    for (const JsonNode& item : devices->items) {
      if (item.kind != JsonNode::Kind::kObject) {
        fault(item.place, "device: expected an object, found {}", describe(item));
        continue;
      }
      keys(item, {"device_id", "device_ip", "rank_id"});
      PlacedDevice device;
      device.card = integer(item, "device_id", device.card_place);
      if (device.card && *device.card >= kCards) {
        fault(device.card_place, "device_id \"{}\" is not a card of a server; expected 0 to {}", *device.card,
              kCards - 1);
        device.card.reset();
      } else if (device.card) {
        check_unique("device_id", scope, *item.find("device_id"));
      }
      device.rank = integer(item, "rank_id", device.rank_place);
      if (const JsonNode* address = string(item, "device_ip")) {
        device.address = address->text;
        check_unique("device_ip", "", *address);
        if (!is_address(address->text)) fault(address->place, "device_ip \"{}\" is not an IP address", address->text);
      }
      server.devices.push_back(std::move(device));
    }
    servers_.push_back(std::move(server));
  }

  void check_cards() {
    for (const PlacedServer& server : servers_) {
      const std::size_t cards = server.devices.size();
      if (servers_.size() > 1) {
        if (cards == kCards) continue;
        fault(server.devices_place, "server {} has {} devices; with several servers each needs {}", server.id, cards,
              kCards);
      } else if (cards != 1 && cards != 2 && cards != kCardsOfRing && cards != kCards) {
        fault(server.devices_place, "{} devices on one server; HCCL takes 1, 2, 4 or 8", cards);
      } else if (cards == 2 || cards == kCardsOfRing) {
        check_ring(server);
      }
    }
  }

  void check_ring(const PlacedServer& server) {
    std::string list;
    bool is_crossing = false;
    for (const PlacedDevice& device : server.devices) {
      if (!device.card) return;
      list += fmt::format("{}{}", list.empty() ? "" : ", ", *device.card);
      is_crossing = is_crossing || *device.card / kCardsOfRing != *server.devices.front().card / kCardsOfRing;
    }
    if (!is_crossing) return;
    fault(server.devices.front().card_place, "devices {} cross the rings 0-3 and 4-7; take {} of one ring", list,
          server.devices.size() == 2 ? "two" : "four");
  }

  void check_ranks() {
    std::int64_t num_devices = 0;
    for (const PlacedServer& server : servers_) num_devices += static_cast<std::int64_t>(server.devices.size());
    std::map<std::int64_t, SourcePlace> places;
    bool are_right = true;
    for (const PlacedServer& server : servers_) {
      for (const PlacedDevice& device : server.devices) {
        are_right = are_right && device.rank;
        if (!device.rank) continue;
        if (*device.rank >= num_devices) {
          fault(device.rank_place, "rank_id \"{}\" is outside 0 to {}: there are {} devices", *device.rank,
                num_devices - 1, num_devices);
          are_right = false;
          continue;
        }
        const auto [before, is_new] = places.try_emplace(*device.rank, device.rank_place);
        if (is_new) continue;
        fault(device.rank_place, "rank_id \"{}\" was given at {}:{}", *device.rank, before->second.line,
              before->second.column);
        are_right = false;
      }
    }
    if (are_right) check_order_of_servers();
  }

  /// In the text order of their ids, servers must hold ascending ranges of ranks. One error per server: its least rank.
  void check_order_of_servers() {
    std::vector<const PlacedServer*> sorted;
    for (const PlacedServer& server : servers_) sorted.push_back(&server);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const PlacedServer* a, const PlacedServer* b) { return a->id < b->id; });
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const auto& devices = sorted[i]->devices;
      const auto least = std::min_element(devices.begin(), devices.end(),
                                          [](const auto& a, const auto& b) { return *a.rank < *b.rank; });
      if (i > 0 && least != devices.end() && *least->rank < begin) {
        fault(least->rank_place, "rank_id \"{}\" is on {}, after {}; ranks must follow the order of server_id",
              *least->rank, sorted[i]->id, sorted[i - 1]->id);
      }
      begin += static_cast<std::int64_t>(devices.size());
    }
  }

  RankTable table() const {
    RankTable result;
    for (const PlacedServer& server : servers_) {
      RankTable::Server& added = result.servers.emplace_back();
      added.id = server.id;
      for (const PlacedDevice& device : server.devices) {
        added.devices.push_back({*device.card, device.address, *device.rank});
      }
    }
    std::sort(result.servers.begin(), result.servers.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    for (std::size_t i = 1; i < result.servers.size(); ++i) {
      const std::string& before = result.servers[i - 1].id;
      const std::string& after = result.servers[i].id;
      const auto numbers_before = address_numbers(before);
      const auto numbers_after = address_numbers(after);
      if (!numbers_before || !numbers_after || *numbers_before < *numbers_after) continue;
      result.notices.push_back(
          fmt::format("{}: servers stand in the text order of server_id, {} before {}; by their addresses it would be "
                      "the other way round",
                      file_, before, after));
      break;
    }
    return result;
  }

  std::string file_;
  JsonNode root_;
  std::vector<Diagnostic> faults_;
  std::vector<PlacedServer> servers_;
  std::map<std::array<std::string, 3>, SourcePlace> seen_;  // key, scope, value
};

/// The devices of one node; throws if HCCL knows no such server.
std::int64_t cards_of_node(const Cluster& cluster) {
  const std::int64_t servers = cluster.levels.front().count;
  const std::int64_t cards = cluster.num_devices() / servers;
  const bool is_known =
      servers > 1 ? cards == kCards : cards == 1 || cards == 2 || cards == kCardsOfRing || cards == kCards;
  if (!is_known) {
    throw InputError(
        SourcePlace{},
        "{} has {} devices in each of {} nodes; a rank table holds 8 on each server, or 1, 2, 4 or 8 on one",
        cluster.name, cards, servers);
  }
  return cards;
}

}  // namespace

RankTable read_rank_table_text(const std::string& text, const std::string& file) {
  return RankTableReader(text, file).read();
}
RankTable read_rank_table(const std::string& path) { return read_rank_table_text(read_text_file(path), path); }

Cluster with_rank_table(const Cluster& preset, const RankTable& table) {
  const std::int64_t of_node = preset.num_devices() / preset.levels.front().count;
  if (of_node != kCards) {
    throw InputError(SourcePlace{}, "{} has {} devices in a node; rank tables describe servers of {}", preset.name,
                     of_node, kCards);
  }
  const auto num_servers = static_cast<std::int64_t>(table.servers.size());
  const auto num_cards = static_cast<std::int64_t>(table.servers.front().devices.size());
  Cluster one_node = preset;
  one_node.levels.front().count = 1;
  one_node.position_of_rank.clear();
  Cluster cluster = take_devices(one_node, num_cards);
  cluster.levels.front().count = num_servers;
  cluster.notices.insert(cluster.notices.end(), table.notices.begin(), table.notices.end());
  cluster.position_of_rank.assign(static_cast<std::size_t>(num_servers * num_cards), 0);
  bool is_in_order = true;
  for (std::int64_t s = 0; s < num_servers; ++s) {
    std::vector<RankTable::Device> devices = table.servers[static_cast<std::size_t>(s)].devices;
    std::sort(devices.begin(), devices.end(), [](const auto& a, const auto& b) { return a.card < b.card; });
    for (std::int64_t k = 0; k < num_cards; ++k) {
      const std::int64_t rank = devices[static_cast<std::size_t>(k)].rank;
      cluster.position_of_rank[static_cast<std::size_t>(rank)] = s * num_cards + k;
      is_in_order = is_in_order && rank == s * num_cards + k;
    }
  }
  if (is_in_order) cluster.position_of_rank.clear();
  if (num_servers > 1 && preset.levels.front().count == 1)
    cluster.name = fmt::format("{}x{}", preset.name, num_servers);
  if (!is_in_order) cluster.name += " in the order of its rank table";  // not the name of a preset
  cluster.text = write_cluster(cluster);
  return cluster;
}

std::string write_rank_table(const Cluster& cluster) {
  constexpr std::int64_t kMostPlaceholders = 155 * 155;  // with two parts from 100 to 254
  const std::int64_t cards = cards_of_node(cluster);
  const std::int64_t servers = cluster.levels.front().count;
  if (servers > kMostPlaceholders) {
    throw InputError(SourcePlace{}, "{} has {} nodes; placeholders reach for {}", cluster.name, servers,
                     kMostPlaceholders);
  }
  const auto place = [&](std::int64_t server) {
    if (servers > 155) return fmt::format("{}.{}", 100 + server / 155, 100 + server % 155);
    return fmt::format("0.{}", server + (servers > 90 ? 100 : servers > 9 ? 10 : 1));
  };
  std::vector<std::int64_t> rank_at(static_cast<std::size_t>(cluster.num_devices()));
  for (std::int64_t rank = 0; rank < cluster.num_devices(); ++rank) {
    const auto& positions = cluster.position_of_rank;
    rank_at[static_cast<std::size_t>(positions.empty() ? rank : positions[static_cast<std::size_t>(rank)])] = rank;
  }
  std::string text =
      fmt::format("{{\n    \"version\": \"1.0\",\n    \"server_count\": \"{}\",\n    \"server_list\": [", servers);
  for (std::int64_t s = 0; s < servers; ++s) {
    text += fmt::format("{}\n        {{\n            \"server_id\": \"10.0.{}\",\n            \"device\": [",
                        s > 0 ? "," : "", place(s));
    for (std::int64_t card = 0; card < cards; ++card) {
      text += fmt::format(
          "{}\n                {{\"device_id\": \"{}\", \"device_ip\": \"192.{}.{}\", \"rank_id\": \"{}\"}}",
          card > 0 ? "," : "", card, card + 1, place(s), rank_at[static_cast<std::size_t>(s * cards + card)]);
    }
    text += "\n            ],\n            \"host_nic_ip\": \"reserve\"\n        }";
  }
  return text + "\n    ],\n    \"status\": \"completed\"\n}\n";
}

}  // namespace shardplan
