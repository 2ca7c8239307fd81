#include "layouts/redistribution/permutation.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"

namespace shardplan {

std::int64_t shard_number(const TensorLayout& layout, const DeviceMesh& mesh, std::int64_t point) {
  std::int64_t number = 0;
  for (const DimensionLayout& dimension : layout.dimensions) {
    for (const DimensionPart& part : dimension.parts) {
      number = number * num_pieces(part.axes) + mesh.coordinate(point, part.axes);
    }
  }
  return number;
}

std::vector<std::int64_t> permute_sources(const CollectiveStep& step, const DeviceMesh& mesh) {
  // Within one group: each (shard, summand) with the points that hold it, before and after, in the same order. The
  // summand's number may be offset by axes outside the group, but its order within the group is the same on both sides.
  using Holder = std::pair<std::pair<std::int64_t, std::int64_t>, std::int64_t>;
  const auto holders = [&](const TensorLayout& layout, const std::vector<std::int64_t>& group) {
    std::vector<Holder> result;
    for (const std::int64_t point : group) {
      result.push_back({{shard_number(layout, mesh, point), mesh.coordinate(point, layout.partial)}, point});
    }
    std::sort(result.begin(), result.end());
    return result;
  };
  std::vector<std::int64_t> sources(static_cast<std::size_t>(mesh.num_devices()));
  for (const std::vector<std::int64_t>& group : mesh.groups(step.axes)) {
    const std::vector<Holder> has = holders(step.before, group);
    const std::vector<Holder> wants = holders(step.after, group);
    for (std::size_t begin = 0, end = 0; begin < has.size(); begin = end) {
      while (end < has.size() && has[end].first == has[begin].first) ++end;
      std::vector<std::int64_t> from;
      std::vector<std::int64_t> to;
      for (std::size_t i = begin; i < end; ++i) {
        SHARDPLAN_CHECK(wants[i].first.first == has[begin].first.first);
        from.push_back(has[i].second);
        to.push_back(wants[i].second);
      }
      std::vector<std::int64_t> givers;
      std::vector<std::int64_t> takers;
      std::set_difference(from.begin(), from.end(), to.begin(), to.end(), std::back_inserter(givers));
      std::set_difference(to.begin(), to.end(), from.begin(), from.end(), std::back_inserter(takers));
      for (const std::int64_t point : to) sources[static_cast<std::size_t>(point)] = point;  // except the receivers
      for (std::size_t i = 0; i < takers.size(); ++i) sources[static_cast<std::size_t>(takers[i])] = givers[i];
    }
  }
  return sources;
}

}  // namespace shardplan
