#include "costmodel/cluster/group_span.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/error.h"

namespace shardplan {
namespace {

/// By level: the number of devices in one of the parts that it joins (the product of the inner counts).
std::vector<std::int64_t> part_sizes(const Cluster& cluster) {
  std::vector<std::int64_t> sizes(cluster.levels.size(), 1);
  for (std::size_t level = cluster.levels.size(); level-- > 1;) {
    sizes[level - 1] = sizes[level] * cluster.levels[level].count;
  }
  return sizes;
}

/// Ranks are numbers in two mixed radices, the mesh's axes and the cluster's levels. An axis of weight w and size s is
/// the digit [w, w*s) of the rank, a level the digit [W, W*count). If the borders of one divide those of the other, the
/// axis consists of whole factors of some levels, and a group along several axes is the product of those factors.
/// Nothing if some border does not divide.
std::optional<GroupSpan> aligned_span(const Cluster& cluster, const DeviceMesh& mesh,
                                      const std::vector<AxisRef>& axes) {
  const std::vector<std::int64_t> parts = part_sizes(cluster);
  std::vector<std::int64_t> members(cluster.levels.size(), 1);
  std::vector<std::int64_t> distance(cluster.levels.size(), 0);
  std::vector<std::int64_t> block(cluster.levels.size(), 1);  // places of the smallest aligned part with a whole group
  for (const AxisRef& ref : axes) {
    std::int64_t weight = 1;
    for (std::size_t axis = ref.axis + 1; axis < mesh.axes().size(); ++axis) weight *= mesh.axes()[axis].size;
    weight *= mesh.axes()[ref.axis].size / ref.end();
    const std::int64_t end = weight * ref.size;
    for (std::size_t level = 0; level < cluster.levels.size(); ++level) {
      const std::int64_t level_end = parts[level] * cluster.levels[level].count;
      const std::int64_t from = std::max(weight, parts[level]);
      const std::int64_t to = std::min(end, level_end);
      if (from >= to) continue;
      if (from % weight != 0 || from % parts[level] != 0 || end % to != 0 || level_end % to != 0 || to % from != 0) {
        return std::nullopt;
      }
      members[level] *= to / from;
      distance[level] += (to / from - 1) * (from / parts[level]);
      block[level] = std::max(block[level], to / parts[level]);
    }
  }
  GroupSpan span;
  std::vector<LevelSpan> inner_first;
  for (std::size_t level = cluster.levels.size(); level-- > 0;) {
    if (members[level] > 1) {
      inner_first.push_back({level, members[level], span.size, parts[level], parts[level] / span.size,
                             (members[level] - 1) * span.size, distance[level], block[level] / members[level],
                             cluster.levels[level].count / members[level]});
      span.size *= members[level];
    }
  }
  span.levels.assign(inner_first.rbegin(), inner_first.rend());
  return span;
}

/// Counts what `distance`, `overlapping` and `around` of one level's LevelSpan say. Members of a group that differ at this
/// level alone stand in the same column: they have the same offset in their parts.
class ColumnCounts {
 public:
  ColumnCounts(std::int64_t num_devices, std::int64_t part, std::int64_t count)
      : part_(part),
        count_(count),
        changes_(static_cast<std::size_t>(num_devices), 0),
        around_(static_cast<std::size_t>(num_devices / count), 0),
        ends_(static_cast<std::size_t>(part), {-1, -1}) {}

  /// The devices of one group in one whole of the level, ascending.
  void add(std::span<const std::int64_t> devices) {
    for (const std::int64_t device : devices) {
      auto& [first, last] = ends_[static_cast<std::size_t>(device % part_)];
      if (first < 0) first = device;
      last = device;
    }
    for (const std::int64_t device : devices) {
      auto& [first, last] = ends_[static_cast<std::size_t>(device % part_)];
      if (first < last) {
        distance_ = std::max(distance_, (last - first) / part_);
        ++changes_[static_cast<std::size_t>(first)];
        --changes_[static_cast<std::size_t>(last)];
        ++around_[static_cast<std::size_t>(device / (part_ * count_) * part_ + device % part_)];
      }
      first = last = -1;
    }
  }

  void write(LevelSpan& span) const {
    span.distance = distance_;
    for (std::size_t column = 0; column < around_.size(); ++column) {
      span.around = std::max(span.around, around_[column]);
      const std::int64_t whole = static_cast<std::int64_t>(column) / part_;
      std::int64_t overlapping = 0;
      for (std::int64_t place = 0; place < count_; ++place) {
        overlapping += changes_[static_cast<std::size_t>((whole * count_ + place) * part_ +
                                                         static_cast<std::int64_t>(column) % part_)];
        span.overlapping = std::max(span.overlapping, overlapping);
      }
    }
  }

 private:
  std::int64_t part_, count_;
  std::int64_t distance_ = 0;
  std::vector<std::int64_t> changes_;                        // by device: groups that begin there less those that end
  std::vector<std::int64_t> around_;                         // by column: groups
  std::vector<std::pair<std::int64_t, std::int64_t>> ends_;  // by column: a group's first and last device
};

GroupSpan walked_span(const Cluster& cluster, const DeviceMesh& mesh, const std::vector<std::int64_t>& positions,
                      const std::vector<AxisRef>& axes) {
  std::vector<std::vector<std::int64_t>> groups = mesh.groups(axes);
  for (std::vector<std::int64_t>& group : groups) {
    if (!positions.empty()) {
      for (std::int64_t& point : group) point = positions[static_cast<std::size_t>(point)];
    }
    std::sort(group.begin(), group.end());
  }
  GroupSpan span;
  span.size = static_cast<std::int64_t>(groups.front().size());
  const std::vector<std::int64_t> parts = part_sizes(cluster);
  for (std::size_t level = 0; level < cluster.levels.size(); ++level) {
    const std::int64_t part = parts[level];
    const std::int64_t whole = part * cluster.levels[level].count;
    LevelSpan here{level, 1, span.size, 0, 0, 0, 0, 1, 1};
    ColumnCounts columns(cluster.num_devices(), part, cluster.levels[level].count);
    bool same = true;  // every whole of every group has `members` parts of `below` devices
    std::vector<std::int64_t> devices_of_part(static_cast<std::size_t>(cluster.num_devices() / part), 0);
    std::vector<std::int64_t> groups_of_part = devices_of_part;
    std::vector<std::pair<std::int64_t, std::int64_t>> runs;     // parts of one whole of one group: part, devices
    std::optional<std::pair<std::int64_t, std::int64_t>> first;  // members and below of the first whole seen
    for (const std::vector<std::int64_t>& group : groups) {
      for (std::size_t begin = 0; begin < group.size();) {
        const std::int64_t this_whole = group[begin] / whole;
        const std::size_t first_of_whole = begin;
        std::int64_t total = 0;
        runs.clear();
        for (; begin < group.size() && group[begin] / whole == this_whole; ++begin, ++total) {
          const std::int64_t this_part = group[begin] / part;
          if (runs.empty() || runs.back().first != this_part) runs.emplace_back(this_part, 0);
          ++runs.back().second;
        }
        const std::int64_t num_parts = static_cast<std::int64_t>(runs.size());
        if (num_parts > 1) columns.add(std::span(group).subspan(first_of_whole, begin - first_of_whole));
        if (!first) first = {num_parts, runs.front().second};
        here.members = std::max(here.members, num_parts);
        same = same && num_parts == first->first;
        for (const auto& [this_part, devices] : runs) {
          same = same && devices == first->second;
          if (num_parts == 1) continue;
          here.below = std::min(here.below, devices);
          here.peers = std::max(here.peers, total - devices);
          devices_of_part[static_cast<std::size_t>(this_part)] += devices;
          ++groups_of_part[static_cast<std::size_t>(this_part)];
        }
      }
    }
    span.is_uniform = span.is_uniform && same;
    if (here.members == 1) continue;
    here.crossing_devices = *std::max_element(devices_of_part.begin(), devices_of_part.end());
    here.crossing_groups = *std::max_element(groups_of_part.begin(), groups_of_part.end());
    columns.write(here);
    span.levels.push_back(here);
  }
  return span;
}

}  // namespace

std::vector<std::int64_t> point_positions(const Cluster& cluster, const DeviceMesh& mesh) {
  std::vector<std::int64_t> positions = mesh.devices();
  for (const std::int64_t device : positions.empty() ? std::vector{mesh.num_devices() - 1} : positions) {
    if (device < cluster.num_devices()) continue;
    throw InputError(SourcePlace{}, "mesh {} has device {}, but {} has {} devices", mesh.to_string(), device,
                     cluster.name, cluster.num_devices());
  }
  const std::vector<std::int64_t>& of_rank = cluster.position_of_rank;
  if (!of_rank.empty()) {
    if (positions.empty()) {
      positions.assign(of_rank.begin(), of_rank.begin() + mesh.num_devices());
    } else {
      for (std::int64_t& position : positions) position = of_rank[static_cast<std::size_t>(position)];
    }
  }
  for (std::size_t point = 0; point < positions.size(); ++point) {
    if (positions[point] != static_cast<std::int64_t>(point)) return positions;
  }
  return {};
}

GroupSpan group_span(const Cluster& cluster, const DeviceMesh& mesh, const std::vector<std::int64_t>& positions,
                     const std::vector<AxisRef>& axes) {
  if (num_pieces(axes) == 1) return {};
  if (positions.empty() && mesh.num_devices() == cluster.num_devices()) {
    if (const std::optional<GroupSpan> span = aligned_span(cluster, mesh, axes)) return *span;
  }
  return walked_span(cluster, mesh, positions, axes);
}

}  // namespace shardplan
