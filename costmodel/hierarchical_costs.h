#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "costmodel/cluster/cluster.h"
#include "costmodel/cluster/group_span.h"
#include "layouts/collective.h"
#include "layouts/device_mesh.h"

namespace shardplan {

/// No time is longer than this (thirteen days); sums of seven still fit in 64 bits.
inline constexpr Picoseconds kLongestTime = Picoseconds{1} << 60;

/// Times of collectives over the cluster's hierarchy of links (formulas in hierarchical_costs.cc). Exact integers,
/// rounded up to the picosecond once per stage; they never fall as bytes grow, and a group of one device costs nothing.
///
/// With `collectives: {algorithms: rings and trees}` in the cluster file also what NCCL does: one ring over all devices of a
/// group with a channel for every link, and trees of all_reduce; with `protocols` of a level the fastest of them; and each
/// collective pays the `launch`, so that two over sub-axes pay it twice.
///
/// A measured table replaces the formula for its kind, level and number of devices. For all other groups its level's
/// latency and bandwidth are scaled such that the formula meets the level's tables as nearly as possible.
///
/// What holds between them on a mesh that follows the levels, without measured tables, `per_device` and `direct_all_reduce`:
///   - reduce_scatter == all_gather, all_reduce <= reduce_scatter + all_gather of the same bytes;
///   - all_to_all <= all_gather (to gather and slice is never cheaper), permute <= all_gather;
///   - a collective over axes that are whole levels <= the same over one axis after the other, with one protocol.
/// Within one level a ring's start-ups add up: 7 for a ring of 8, but 1 + 3 for one of 2 and one of 4. So for few bytes
/// two collectives over sub-axes can be cheaper than one over the level, as they are on a real machine. Elsewhere
/// (devices out of order) all_to_all and permute <= all_gather still hold.
///
/// May be called from several threads at once.
class HierarchicalCosts final : public CollectiveCosts {
 public:
  /// Requires that every device of `mesh` is one of the cluster's.
  HierarchicalCosts(Cluster cluster, DeviceMesh mesh);
  ~HierarchicalCosts() override;

  Picoseconds time(CollectiveKind kind, const std::vector<AxisRef>& axes, Bytes group_bytes) const override;
  /// Bit l for every level l that a group along `axes` crosses; levels from the 32nd on share a bit.
  std::uint32_t links(const std::vector<AxisRef>& axes) const;
  /// Every device sends `sent` bytes to a neighbour along `axes`, across the outermost level that they span.
  Picoseconds neighbour_exchange(const std::vector<AxisRef>& axes, Bytes sent) const;

 private:
  struct Stage;
  struct Group;
  struct Links;

  static Picoseconds cheapest(const std::vector<std::vector<Stage>>& alternatives, Bytes bytes);
  const Group& group(const std::vector<AxisRef>& axes) const;
  std::unique_ptr<const Group> describe(const std::vector<AxisRef>& axes) const;
  bool is_torus(const LevelSpan& span) const;
  /// The rate at which a device sends to that many others along the level.
  std::int64_t rate_to(std::int64_t others, const LevelSpan& span, const Links& links) const;
  Stage stage_on_torus(CollectiveKind kind, std::span<const LevelSpan> levels, std::int64_t group_size,
                       const Links& links) const;
  Stage stage_along(CollectiveKind kind, std::span<const LevelSpan> levels, std::int64_t group_size,
                    const Links& links) const;
  Stage formula_along(CollectiveKind kind, std::span<const LevelSpan> levels, std::int64_t group_size,
                      const Links& links) const;
  void scale_by_tables(std::size_t level);
  Picoseconds start_of(CollectiveKind kind, std::int64_t group_size) const;
  std::vector<Stage> stages(CollectiveKind kind, const GroupSpan& span, const Links& links) const;
  std::vector<Stage> direct_all_to_all(const GroupSpan& span, const Links& links) const;
  Stage flat_all_reduce(const GroupSpan& span, const Links& links) const;
  Stage channel_ring(CollectiveKind kind, const GroupSpan& span, const Links& links) const;
  std::vector<Stage> direct_all_reduces(const GroupSpan& span, const Links& links) const;
  Stage tree_all_reduce(const GroupSpan& span, const Links& links) const;
  void add_alternatives(Group& group, const GroupSpan& span, std::size_t protocol) const;
  std::int64_t sharers(const LevelSpan& span, std::int64_t of_part) const;

  Cluster cluster_;
  DeviceMesh mesh_;
  std::vector<std::int64_t> positions_;
  std::vector<Links> links_;  // by protocol

  /// A search asks for the same few lists of axes again and again. `groups_` owns what is known of each; `slots_` is an
  /// open hash table of them whose entries are set once and never change, so that the usual look-up takes no lock.
  static constexpr std::size_t kSlots = 1024;
  mutable std::array<std::atomic<const Group*>, kSlots> slots_{};
  mutable std::mutex mutex_;
  mutable std::map<std::vector<AxisRef>, std::unique_ptr<const Group>> groups_;
};

}  // namespace shardplan
