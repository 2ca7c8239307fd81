#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "layouts/redistribution/search/common_refinement.h"
#include "layouts/redistribution/search/part_borders.h"
#include "layouts/redistribution/search/redistribution_graph.h"

namespace shardplan {

/// As the planner searches a pair: the spaces of both ends, and if they have none in common, whole dimensions too.
inline RedistributionGraph graph_of(const TensorLayout& from, const TensorLayout& to, const DeviceMesh& mesh,
                                    const Shape& shape, Refinement refinement) {
  std::vector<LayoutSpace> spaces = common_spaces(from, to, mesh, shape, refinement);
  for (std::size_t i = 0, ends = spaces.size(); ends > 1 && i < ends; ++i) {
    const LayoutSpace rows = space_of_rows(spaces[i], shape, mesh.num_devices());
    if (std::find(spaces.begin(), spaces.end(), rows) == spaces.end()) spaces.push_back(rows);
  }
  return RedistributionGraph(std::move(spaces), shape);
}

/// Visits every state; nothing if there are too many.
inline std::optional<bool> has_path(RedistributionGraph& graph, std::uint32_t source, std::uint32_t target,
                                    std::int64_t least_shards) {
  constexpr std::size_t kMostStates = 20'000;
  std::vector<std::uint32_t> open = {source};
  std::vector<bool> is_met(source + 1);
  is_met[source] = true;
  while (!open.empty()) {
    const std::uint32_t state = open.back();
    open.pop_back();
    if (state == target) return true;
    const auto edges = graph.edges(state);
    if (graph.num_states() > kMostStates) return std::nullopt;
    is_met.resize(graph.num_states());
    for (const RedistributionEdge& edge : edges) {
      if (is_met[edge.target] || graph.num_shards(edge.target) < least_shards) continue;
      is_met[edge.target] = true;
      open.push_back(edge.target);
    }
  }
  return false;
}

}  // namespace shardplan
