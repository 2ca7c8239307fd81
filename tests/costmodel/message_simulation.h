#pragma once

#include <map>
#include <vector>

#include "base/integer.h"
#include "costmodel/cluster/cluster.h"

namespace shardplan {

// An oracle for collective times: simulates every ring, message and shared link, with data that show whether each
// device ends with the right result. Exact fractions; shares no code with the formulas.

/// A positive fraction, exact.
struct Fraction {
  Int128 above = 0;
  Int128 below = 1;

  static Fraction of(Int128 above, Int128 below) {
    Int128 a = above;
    Int128 b = below;
    while (b != 0) {
      const Int128 rest = a % b;
      a = b;
      b = rest;
    }
    return a == 0 ? Fraction{} : Fraction{above / a, below / a};
  }
  Fraction operator+(const Fraction& other) const {
    return of(above * other.below + other.above * below, below * other.below);
  }
  Fraction operator*(std::int64_t factor) const { return of(above * factor, below); }
  bool operator<(const Fraction& other) const { return above * other.below < other.above * below; }
  std::int64_t ceil() const { return static_cast<std::int64_t>((above + below - 1) / below); }
};

struct Message {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

class Simulation {
 public:
  explicit Simulation(const Cluster& cluster) : cluster_(cluster) {}

  /// The outermost level at which two places differ.
  std::size_t level_between(std::int64_t a, std::int64_t b) const {
    for (std::size_t l = 0; l < cluster_.levels.size(); ++l) {
      if (a / part(l) != b / part(l)) return l;
    }
    return cluster_.levels.size();
  }
  std::int64_t part(std::size_t level) const {
    std::int64_t size = 1;
    for (std::size_t l = level + 1; l < cluster_.levels.size(); ++l) size *= cluster_.levels[l].count;
    return size;
  }

  /// Messages of `bytes` each that start together; the slowest decides. `latest` and `longest`, if given, receive the
  /// largest start-up and the longest transfer separately.
  Fraction step(const std::vector<Message>& messages, Fraction bytes, Fraction* start = nullptr,
                Fraction* transfer = nullptr) const {
    std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> flows;  // on each link
    const auto link = [&](const Message& message) {
      const std::size_t l = level_between(message.from, message.to);
      const bool is_shared = cluster_.levels[l].link_per == LinkPer::kGroup;
      return std::pair(l, is_shared ? -1 - message.from / part(l) : message.from);
    };
    for (const Message& message : messages) ++flows[link(message)];
    Fraction slowest;
    for (const Message& message : messages) {
      const ClusterLevel& at = cluster_.levels[level_between(message.from, message.to)];
      const Fraction moving =
          Fraction::of(bytes.above * flows[link(message)] * kPicosecondsPerSecond, bytes.below * at.bandwidth);
      const Fraction starting{at.latency, 1};
      if (start != nullptr && *start < starting) *start = starting;
      if (transfer != nullptr && *transfer < moving) *transfer = moving;
      if (slowest < starting + moving) slowest = starting + moving;
    }
    return slowest;
  }

 private:
  const Cluster& cluster_;
};

using Groups = std::vector<std::vector<std::int64_t>>;

struct Simulated {
  Fraction time;
  int stages = 0;
};

/// Reduce-scatter inner levels first. Every device holds `group size` elements and a set of contributors to each.
Simulated simulate_reduce_scatter(const Cluster& cluster, const Groups& groups, std::int64_t bytes);

/// One ring of all members in the order of their places; returns the time with each step's largest start-up and largest
/// transfer added up separately, which is what the model charges.
Simulated simulate_flat_all_reduce(const Cluster& cluster, const Groups& groups, std::int64_t bytes);

/// Blocks (from, to) travel level by level; checks that each device ends with one block from every member.
Simulated simulate_staged_all_to_all(const Cluster& cluster, const Groups& groups, std::int64_t bytes);

/// Level by level, each device sends to each of its peers at that level, one after the other.
Simulated simulate_direct_all_to_all(const Cluster& cluster, const Groups& groups, std::int64_t bytes);

}  // namespace shardplan
