#include "simulator/execute/joined_collectives.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "simulator/execute/shard_index.h"

namespace shardplan {
namespace {

using Flat = std::vector<double>;

/// The source and destination of an element of a flat buffer.
struct Slot {
  std::size_t member = 0;
  std::int64_t from_shard = 0;
  std::size_t from = 0;  // offset in the sender's buffer
  std::size_t to = 0;    // offset in the receiver's
};

class Packing {
 public:
  Packing(std::span<const JoinedCollective> members, const DeviceMesh& mesh) : members_(members) {
    for (const JoinedCollective& member : members) {
      before_.emplace_back(member.step->before, mesh, member.shape);
      after_.emplace_back(member.step->after, mesh, member.shape);
    }
  }

  std::size_t result_size(std::size_t member) const { return static_cast<std::size_t>(after_[member].shard_size()); }

  /// The elements that `receiver` ends with, in the order of the flat buffer that is sent to it.
  std::vector<Slot> slots(std::int64_t receiver) const {
    std::vector<Slot> result;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      for_each_element(
          after_[m], after_[m].shard(receiver), before_[m], [&](std::int64_t offset, const ShardIndex::Place& place) {
            result.push_back(
                {m, place.shard, static_cast<std::size_t>(place.offset), static_cast<std::size_t>(offset)});
          });
    }
    return result;
  }

  /// Everything that `receiver`'s results depend on.
  AlikeDevices::Key key(std::int64_t receiver, const std::vector<std::int64_t>& group) const {
    AlikeDevices::Key result;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      result.push_back(after_[m].shard(receiver));
      for (const std::int64_t sender : group) {
        result.push_back(before_[m].shard(sender));
        result.push_back(AlikeDevices::memory((*members_[m].input)[static_cast<std::size_t>(sender)]));
      }
    }
    return result;
  }

  bool holds(std::int64_t sender, const Slot& slot) const {
    return before_[slot.member].shard(sender) == slot.from_shard;
  }

  /// The sender's elements for these slots; for a gather only those that it holds.
  Flat packed(std::int64_t sender, const std::vector<Slot>& slots) const {
    Flat flat;
    for (const Slot& slot : slots) {
      if (!holds(sender, slot)) continue;
      flat.push_back((*members_[slot.member].input)[static_cast<std::size_t>(sender)][slot.from]);
    }
    return flat;
  }

 private:
  std::span<const JoinedCollective> members_;
  std::vector<ShardIndex> before_, after_;
};

Flat reduced(const std::vector<Flat>& summands, Reduction reduction) {
  Flat result = summands.front();
  for (std::size_t k = 1; k < summands.size(); ++k) {
    SHARDPLAN_CHECK(summands[k].size() == result.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      const double other = summands[k][i];
      result[i] = reduction == Reduction::kSum   ? result[i] + other
                  : reduction == Reduction::kMax ? std::max(result[i], other)
                                                 : std::min(result[i], other);
    }
  }
  return result;
}

}  // namespace

std::vector<DeviceBuffers> apply_joined(std::span<const JoinedCollective> members, const DeviceMesh& mesh) {
  const CollectiveStep& first = *members.front().step;
  const bool reduces = first.kind == CollectiveKind::kAllReduce || first.kind == CollectiveKind::kReduceScatter;
  SHARDPLAN_CHECK(reduces || first.kind == CollectiveKind::kAllGather);
  for (const JoinedCollective& member : members) {
    SHARDPLAN_CHECK(member.step->kind == first.kind && member.step->axes == first.axes);
    SHARDPLAN_CHECK(!reduces || member.step->reduction == first.reduction);
  }
  const Packing packing(members, mesh);
  std::vector<DeviceBuffers> results(members.size());
  for (DeviceBuffers& result : results) result.resize(static_cast<std::size_t>(mesh.num_devices()));
  AlikeDevices alike;
  for (std::vector<std::int64_t>& group : mesh.groups(first.axes)) {
    std::sort(group.begin(), group.end());
    for (const std::int64_t receiver : group) {
      const std::size_t first_alike =
          alike.first_with(packing.key(receiver, group), static_cast<std::size_t>(receiver));
      if (first_alike != static_cast<std::size_t>(receiver)) {
        for (DeviceBuffers& result : results) result[static_cast<std::size_t>(receiver)] = result[first_alike];
        continue;
      }
      // NaN after the shorter shards of uneven dimensions, as in `apply`.
      std::vector<Flat> made;
      for (std::size_t m = 0; m < members.size(); ++m) {
        made.emplace_back(packing.result_size(m), std::numeric_limits<double>::quiet_NaN());
      }
      const std::vector<Slot> slots = packing.slots(receiver);
      std::vector<Flat> received;
      for (const std::int64_t sender : group) received.push_back(packing.packed(sender, slots));
      const auto unpack = [&](const Slot& slot, double value) { made[slot.member][slot.to] = value; };
      if (reduces) {
        const Flat flat = reduced(received, first.reduction);
        SHARDPLAN_CHECK(flat.size() == slots.size());
        for (std::size_t i = 0; i < slots.size(); ++i) unpack(slots[i], flat[i]);
      } else {
        std::vector<std::size_t> next(group.size(), 0);  // by sender: number of elements unpacked
        for (const Slot& slot : slots) {
          bool is_found = false;
          for (std::size_t k = 0; k < group.size(); ++k) {
            if (!packing.holds(group[k], slot)) continue;
            const double value = received[k][next[k]++];
            if (!is_found) unpack(slot, value);
            is_found = true;
          }
          SHARDPLAN_CHECK(is_found);
        }
      }
      for (std::size_t m = 0; m < members.size(); ++m) {
        results[m][static_cast<std::size_t>(receiver)] = std::move(made[m]);
      }
    }
  }
  return results;
}

}  // namespace shardplan
