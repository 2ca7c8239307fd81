#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/index.h"
#include "layouts/redistribution/search/part_borders.h"
#include "layouts/redistribution/search/search_graphs.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

/// The layouts of tensors of one shape that have been asked for. Each is made canonical once, and its state in each
/// graph is looked up once, however many lists it is in.
class ShapeLayouts {
 public:
  using Id = Index<struct ShapeLayoutTag>;
  using BordersId = Index<struct BordersTag>;

  struct Known {
    TensorLayout layout;  // canonical
    bool is_uneven = false;
    BordersId borders;  // of an even one; layouts with the same ones are states of the same graphs
  };

  ShapeLayouts(Shape shape, SearchGraphs& graphs) : shape_(std::move(shape)), graphs_(graphs) {}

  /// Of any layout that passes `check_layout`; the same for all that have one canonical form.
  Id id(const TensorLayout& layout);
  const Known& operator[](Id id) const { return known_[id]; }
  std::size_t size() const { return known_.size(); }

  /// SearchGraphs::graphs_of_pieces.
  std::span<SearchGraph* const> graphs(BordersId from, BordersId to);
  /// The state of an even layout in a graph; nothing if it is none of its states.
  std::optional<std::uint32_t> state(Id id, SearchGraph& graph);

 private:
  Shape shape_;
  SearchGraphs& graphs_;
  std::unordered_map<TensorLayout, Id> ids_;            // as given
  std::unordered_map<TensorLayout, Id> canonical_ids_;  // neither is iterated over
  IdVector<Id, Known> known_;
  IdVector<Id, std::vector<std::pair<const SearchGraph*, std::optional<std::uint32_t>>>> states_;  // looked up so far
  IdVector<BordersId, PartBorders> borders_;
  std::map<std::pair<BordersId, BordersId>, std::vector<SearchGraph*>> graphs_of_borders_;
};

}  // namespace shardplan
