#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/cluster/cluster.h"

namespace shardplan {

/// HCCL's rank table: which rank runs on which card of which server. All values of the file are strings:
///   {"version": "1.0", "server_count": "1", "status": "completed", "server_list": [
///     {"server_id": "10.155.111.140", "host_nic_ip": "reserve", "device": [
///       {"device_id": "0", "device_ip": "192.1.27.6", "rank_id": "0"}, ...]}]}
struct RankTable {
  struct Device {
    std::int64_t card = 0;  // device_id, the place in the server: 0 to 7
    std::string address;
    std::int64_t rank = 0;

    bool operator==(const Device&) const = default;
  };
  struct Server {
    std::string id;
    std::vector<Device> devices;  // as the file lists them

    bool operator==(const Server&) const = default;
  };
  std::vector<Server> servers;  // in the text order of their ids: the order of the ranks
  std::vector<std::string> notices;

  bool operator==(const RankTable&) const = default;
};

/// Throws InputError with all faults: values that are no strings, unknown keys, an unfinished status, a wrong
/// server_count, numbers of cards that HCCL does not take (1, 2, 4 or 8 on one server, 8 on each of several; 2 or 4
/// within one ring of four), ranks that are not 0 to n-1 once each or do not follow the order of server_id, ids and
/// addresses given twice.
RankTable read_rank_table(const std::string& path);
RankTable read_rank_table_text(const std::string& text, const std::string& file);

/// The cluster that the table describes with the numbers of `preset`: one node of its outermost level per server, whose
/// cards are in the order of device_id. A rank that is out of place in that order makes `position_of_rank`.
/// Throws InputError if a node of the preset does not have 8 devices.
Cluster with_rank_table(const Cluster& preset, const RankTable& table);

/// A table for this cluster with made-up addresses: server_id 10.0.0.1, 10.0.0.2, ... and device_ip 192.D.0.S for card
/// D-1 of server S. More than 9 servers start at 10, more than 90 at 100, so that text order and order of numbers
/// agree. Throws InputError if HCCL takes no such numbers of cards.
std::string write_rank_table(const Cluster& cluster);

}  // namespace shardplan
