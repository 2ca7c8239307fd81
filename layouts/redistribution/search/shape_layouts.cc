#include "layouts/redistribution/search/shape_layouts.h"

#include <algorithm>

#include "layouts/uneven.h"

namespace shardplan {

ShapeLayouts::Id ShapeLayouts::id(const TensorLayout& layout) {
  const auto given = ids_.find(layout);
  if (given != ids_.end()) return given->second;
  Known known;
  known.layout = canonical(layout, graphs_.mesh(), shape_);
  const auto [entry, is_new] = canonical_ids_.try_emplace(known.layout, known_.size());
  const Id id = entry->second;
  ids_.emplace(layout, id);
  if (!is_new) return id;
  known.is_uneven = is_uneven(known.layout, shape_);
  if (!known.is_uneven) {
    PartBorders borders = part_borders(known.layout, shape_);
    const auto same = std::find(borders_.begin(), borders_.end(), borders);
    known.borders = BordersId(static_cast<std::size_t>(same - borders_.begin()));
    if (same == borders_.end()) borders_.push_back(std::move(borders));
  }
  states_.push_back({});
  return known_.push_back(std::move(known));
}

std::span<SearchGraph* const> ShapeLayouts::graphs(BordersId from, BordersId to) {
  const auto [entry, is_new] = graphs_of_borders_.try_emplace({from, to});
  if (is_new) entry->second = graphs_.graphs_of_pieces(borders_[from], borders_[to], shape_);
  return entry->second;
}

std::optional<std::uint32_t> ShapeLayouts::state(Id id, SearchGraph& graph) {
  auto& states = states_[id];
  for (const auto& [known, state] : states) {
    if (known == &graph) return state;
  }
  return states.emplace_back(&graph, graph.graph.find(known_[id].layout, shape_)).second;
}

}  // namespace shardplan
