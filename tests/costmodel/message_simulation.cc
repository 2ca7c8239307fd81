#include "tests/costmodel/message_simulation.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace shardplan {
namespace {

/// The rings of one level: devices of one group, within one part of the level above, at the same place in their parts.
Groups rings_at(const Simulation& simulation, const Cluster& cluster, const Groups& groups, std::size_t level) {
  Groups rings;
  const std::int64_t part = simulation.part(level);
  const std::int64_t whole = part * cluster.levels[level].count;
  for (const std::vector<std::int64_t>& group : groups) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> of_place;
    for (const std::int64_t place : group) of_place[{place / whole, place % part}].push_back(place);
    for (auto& [key, ring] : of_place) {
      if (ring.size() > 1) rings.push_back(ring);
    }
  }
  return rings;
}

}  // namespace

Simulated simulate_reduce_scatter(const Cluster& cluster, const Groups& groups, std::int64_t bytes) {
  const Simulation simulation(cluster);
  const auto num_elements = groups.front().size();
  std::map<std::int64_t, std::vector<std::set<std::int64_t>>> sums;
  std::map<std::int64_t, std::pair<std::size_t, std::size_t>> range;  // that the device still operates on
  for (const auto& group : groups) {
    for (const std::int64_t place : group) {
      sums[place].assign(num_elements, {place});
      range[place] = {0, num_elements};
    }
  }
  Simulated result;
  for (std::size_t level = cluster.levels.size(); level-- > 0;) {
    const Groups rings = rings_at(simulation, cluster, groups, level);
    if (rings.empty()) continue;
    ++result.stages;
    const std::size_t size = rings.front().size();
    for (std::size_t step = 0; step + 1 < size; ++step) {
      std::vector<Message> messages;
      std::size_t chunk = 0;
      auto next_sums = sums;
      for (const auto& ring : rings) {
        for (std::size_t i = 0; i < size; ++i) {
          const std::int64_t from = ring[i];
          const std::int64_t to = ring[(i + 1) % size];
          messages.push_back({from, to});
          const auto [begin, end] = range[from];
          chunk = (end - begin) / size;
          // After size-1 steps member i holds chunk i: chunk c starts at member c+1.
          const std::size_t which = (i + 2 * size - 1 - step) % size;
          for (std::size_t e = begin + which * chunk; e < begin + (which + 1) * chunk; ++e) {
            next_sums[to][e].insert(sums[from][e].begin(), sums[from][e].end());
          }
        }
      }
      sums = std::move(next_sums);
      result.time = result.time + simulation.step(messages, Fraction::of(Int128{bytes} * static_cast<Int128>(chunk),
                                                                         static_cast<Int128>(num_elements)));
    }
    for (const auto& ring : rings) {
      for (std::size_t i = 0; i < size; ++i) {
        auto& [begin, end] = range[ring[i]];
        const std::size_t chunk = (end - begin) / size;
        begin += i * chunk;
        end = begin + chunk;
      }
    }
  }
  for (const auto& group : groups) {
    std::set<std::size_t> owned;
    for (const std::int64_t place : group) {
      const auto [begin, end] = range[place];
      EXPECT_EQ(end - begin, 1u);
      EXPECT_EQ(sums[place][begin].size(), group.size()) << "a summand is missing";
      owned.insert(begin);
    }
    EXPECT_EQ(owned.size(), group.size());
  }
  return result;
}

Simulated simulate_flat_all_reduce(const Cluster& cluster, const Groups& groups, std::int64_t bytes) {
  const Simulation simulation(cluster);
  std::vector<Message> messages;
  for (std::vector<std::int64_t> ring : groups) {
    std::sort(ring.begin(), ring.end());
    for (std::size_t i = 0; i < ring.size(); ++i) messages.push_back({ring[i], ring[(i + 1) % ring.size()]});
  }
  const auto size = static_cast<std::int64_t>(groups.front().size());
  Fraction start;
  Fraction transfer;
  simulation.step(messages, Fraction::of(bytes, size), &start, &transfer);
  return {(start + transfer) * (2 * (size - 1)), 1};
}

Simulated simulate_staged_all_to_all(const Cluster& cluster, const Groups& groups, std::int64_t bytes) {
  const Simulation simulation(cluster);
  const auto size = static_cast<std::int64_t>(groups.front().size());
  std::map<std::int64_t, std::set<std::pair<std::int64_t, std::int64_t>>> blocks;
  for (const auto& group : groups) {
    for (const std::int64_t from : group) {
      for (const std::int64_t to : group) blocks[from].insert({from, to});
    }
  }
  Simulated result;
  for (std::size_t level = cluster.levels.size(); level-- > 0;) {
    const Groups rings = rings_at(simulation, cluster, groups, level);
    if (rings.empty()) continue;
    ++result.stages;
    const std::size_t members = rings.front().size();
    const std::int64_t part = simulation.part(level);
    for (std::size_t distance = 1; distance < members; ++distance) {
      std::vector<Message> messages;
      std::size_t moved = 0;
      for (const auto& ring : rings) {
        for (std::size_t i = 0; i < members; ++i) {
          const std::int64_t from = ring[i];
          const std::int64_t to = ring[(i + distance) % members];
          messages.push_back({from, to});
          const std::int64_t count = cluster.levels[level].count;
          std::vector<std::pair<std::int64_t, std::int64_t>> going;
          for (const auto& block : blocks[from]) {
            if (block.second / part % count == to / part % count) going.push_back(block);
          }
          moved = going.size();
          for (const auto& block : going) {
            blocks[from].erase(block);
            blocks[to].insert({block.first, block.second + 0});
          }
        }
      }
      result.time = result.time + simulation.step(messages, Fraction::of(Int128{bytes} * static_cast<Int128>(moved),
                                                                         Int128{size} * size));
    }
  }
  for (const auto& group : groups) {
    for (const std::int64_t to : group) {
      std::set<std::int64_t> senders;
      for (const auto& block : blocks[to]) {
        EXPECT_EQ(block.second, to);
        senders.insert(block.first);
      }
      EXPECT_EQ(senders, std::set<std::int64_t>(group.begin(), group.end()));
    }
  }
  return result;
}

Simulated simulate_direct_all_to_all(const Cluster& cluster, const Groups& groups, std::int64_t bytes) {
  const Simulation simulation(cluster);
  const auto size = static_cast<std::int64_t>(groups.front().size());
  Simulated result;
  for (std::size_t level = 0; level < cluster.levels.size(); ++level) {
    // By rounds: the k-th peer of every device. All parts have equally many places, so all devices have equally many
    // rounds.
    std::vector<std::vector<Message>> rounds;
    for (const auto& group : groups) {
      for (const std::int64_t from : group) {
        std::size_t round = 0;
        for (const std::int64_t to : group) {
          if (simulation.level_between(from, to) != level) continue;
          if (rounds.size() <= round) rounds.resize(round + 1);
          rounds[round++].push_back({from, to});
        }
      }
    }
    if (!rounds.empty()) ++result.stages;
    for (const auto& messages : rounds) {
      result.time = result.time + simulation.step(messages, Fraction::of(bytes, Int128{size} * size));
    }
  }
  return result;
}

}  // namespace shardplan
