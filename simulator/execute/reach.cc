#include "simulator/execute/reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "layouts/redistribution/permutation.h"
#include "layouts/tensor_layout.h"

namespace shardplan {
namespace {

using Positions = std::vector<std::int64_t>;
using Held = std::vector<Positions>;  // by dimension, ascending

bool contains(const Positions& all, const Positions& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

bool contains(const Held& all, const Held& some) {
  for (std::size_t d = 0; d < some.size(); ++d) {
    if (!contains(all[d], some[d])) return false;
  }
  return true;
}

/// The number of summands per element after the step, if there are `before` of them now.
std::int64_t summands_after(const CollectiveStep& step, std::int64_t before) {
  const std::int64_t members = num_pieces(step.axes);
  switch (step.kind) {
    case CollectiveKind::kToPartial:
      return before * members;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllReduce:
      return before % members == 0 ? before / members : 0;
    case CollectiveKind::kSlice:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
    case CollectiveKind::kCollectivePermute:
      return before;
  }
  return before;
}

/// Whether the pieces of each group are the same before and after a permute.
bool permutes_pieces(const CollectiveStep& step, const DeviceMesh& mesh, const std::vector<Held>& before,
                     const std::vector<Held>& after) {
  for (const std::vector<std::int64_t>& group : mesh.groups(step.axes)) {
    Positions has;
    Positions wants;
    for (const std::int64_t point : group) {
      has.push_back(shard_number(step.before, mesh, point));
      wants.push_back(shard_number(step.after, mesh, point));
    }
    std::sort(has.begin(), has.end());
    std::sort(wants.begin(), wants.end());
    if (has != wants) return false;
  }
  const std::vector<std::int64_t> sources = permute_sources(step, mesh);
  for (std::size_t point = 0; point < sources.size(); ++point) {
    if (before[static_cast<std::size_t>(sources[point])] != after[point]) return false;
  }
  return true;
}

/// Whether each member finds its new elements: dimension `from_dim` in the group, the others in its own memory.
bool gathers(const std::vector<std::int64_t>& group, std::size_t from_dim, const std::vector<Held>& before,
             const std::vector<Held>& after) {
  Positions together;
  for (const std::int64_t point : group) {
    const Positions& own = before[static_cast<std::size_t>(point)][from_dim];
    together.insert(together.end(), own.begin(), own.end());
  }
  std::sort(together.begin(), together.end());
  const Held& first = before[static_cast<std::size_t>(group.front())];
  for (const std::int64_t point : group) {
    Held reached = before[static_cast<std::size_t>(point)];
    reached[from_dim] = first[from_dim];
    if (reached != first) return false;
    reached[from_dim] = together;
    if (!contains(reached, after[static_cast<std::size_t>(point)])) return false;
  }
  return true;
}

}  // namespace

std::string check_reach(const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape) {
  const std::int64_t summands = num_pieces(step.before.partial);
  const std::int64_t wanted = num_pieces(step.after.partial);
  if (summands_after(step, summands) != wanted) {
    return fmt::format("{} summands would become {}", summands, wanted);
  }
  std::vector<Held> before;
  std::vector<Held> after;
  for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
    before.push_back(held_indices(step.before, mesh, shape, point));
    after.push_back(held_indices(step.after, mesh, shape, point));
  }
  const auto own_is_enough = [&] {
    for (std::size_t point = 0; point < before.size(); ++point) {
      if (!contains(before[point], after[point])) return false;
    }
    return true;
  };
  bool is_right = true;
  switch (step.kind) {
    case CollectiveKind::kSlice:
      is_right = own_is_enough();
      break;
    case CollectiveKind::kToPartial:
      for (std::size_t point = 0; point < before.size(); ++point) {
        is_right = is_right && contains(after[point], before[point]);
      }
      break;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kAllReduce:
      is_right = own_is_enough();
      for (const std::vector<std::int64_t>& group : mesh.groups(step.axes)) {
        for (const std::int64_t point : group) {
          is_right =
              is_right && before[static_cast<std::size_t>(point)] == before[static_cast<std::size_t>(group.front())];
        }
      }
      break;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kAllToAll:
      for (const std::vector<std::int64_t>& group : mesh.groups(step.axes)) {
        is_right = is_right && gathers(group, *step.from_dim, before, after);
      }
      break;
    case CollectiveKind::kCollectivePermute:
      is_right = permutes_pieces(step, mesh, before, after);
      break;
  }
  return is_right ? std::string() : "a device would hold what its group does not";
}

}  // namespace shardplan
