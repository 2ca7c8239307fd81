#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "layouts/collective.h"
#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// Row-major numbers of elements, ascending.
using Elements = std::vector<std::int64_t>;

/// What each device holds of a small tensor.
inline std::vector<Elements> held_elements(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape) {
  std::vector<Elements> held;
  for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
    Elements elements = {0};
    const std::vector<std::vector<std::int64_t>> indices = held_indices(layout, mesh, shape, point);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      Elements next;
      for (const std::int64_t element : elements) {
        for (const std::int64_t index : indices[d]) next.push_back(element * shape[d] + index);
      }
      elements = std::move(next);
    }
    held.push_back(std::move(elements));
  }
  return held;
}

/// Whether a collective of this kind in groups along `axes` can turn one layout into the other: members of a group end
/// with nothing but what the group had, and the guarantees of the kind hold. Returns what is wrong, or nothing.
inline std::string fault_of_move(CollectiveKind kind, const std::vector<AxisRef>& axes, const TensorLayout& before,
                                 const TensorLayout& after, const DeviceMesh& mesh, const Shape& shape) {
  const std::vector<Elements> had = held_elements(before, mesh, shape);
  const std::vector<Elements> has = held_elements(after, mesh, shape);
  const auto includes = [](const Elements& all, const Elements& some) {
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
  };
  const auto merged = [](const std::vector<Elements>& held, const std::vector<std::int64_t>& group) {
    Elements all;
    for (const std::int64_t device : group) {
      Elements more;
      const Elements& next = held[static_cast<std::size_t>(device)];
      std::set_union(all.begin(), all.end(), next.begin(), next.end(), std::back_inserter(more));
      all = std::move(more);
    }
    return all;
  };
  for (const std::vector<std::int64_t>& group : mesh.groups(axes)) {
    const Elements group_had = merged(had, group);
    const Elements group_has = merged(has, group);
    for (const std::int64_t device : group) {
      const Elements& own_before = had[static_cast<std::size_t>(device)];
      const Elements& own_after = has[static_cast<std::size_t>(device)];
      bool is_right = true;
      switch (kind) {
        case CollectiveKind::kSlice:
          is_right = includes(own_before, own_after) && group_has == group_had;
          break;
        case CollectiveKind::kAllGather:
          is_right = own_after == group_had;
          break;
        case CollectiveKind::kAllToAll:
          is_right = group_has == group_had;
          break;
        case CollectiveKind::kReduceScatter:
          is_right = includes(own_before, own_after) && group_has == own_before;
          break;
        case CollectiveKind::kAllReduce:
          is_right = own_after == own_before;
          break;
        case CollectiveKind::kCollectivePermute:
          is_right = includes(group_had, own_after) && own_after.size() <= group_had.size();
          break;
        case CollectiveKind::kToPartial:
          is_right = includes(own_after, own_before);
          break;
      }
      if (!is_right) return fmt::format("device {} holds what it cannot have, or lacks what it should have", device);
    }
  }
  const std::int64_t summands = num_pieces(before.partial);
  const bool reduces = kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllReduce;
  const std::int64_t expected = reduces                              ? summands / num_pieces(axes)
                                : kind == CollectiveKind::kToPartial ? summands * num_pieces(axes)
                                                                     : summands;
  if (num_pieces(after.partial) != expected) {
    return fmt::format("{} summands become {}", summands, num_pieces(after.partial));
  }
  return "";
}

}  // namespace shardplan
