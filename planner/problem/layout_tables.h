#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/index.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "layouts/tensor_layout.h"
#include "operators/operation.h"
#include "solver/strategy_problem.h"

namespace shardplan {

using LayoutId = Index<struct LayoutTag>;
using ListId = Index<struct ListTag>;
using TypeId = Index<struct TypeTag>;

/// What stands at one position of a node's list, for its edges: a layout, and whether it shares the stored version's
/// memory.
struct ListedLayout {
  LayoutId layout;
  bool shares = false;
  auto operator<=>(const ListedLayout&) const = default;
};

/// What a redistribution's cost depends on besides the layouts.
struct WholeTensor {
  Shape shape;
  Bytes element_bytes = 0;
};

/// What something costs that is done so often; kForbidden stays what it is.
inline std::int64_t repeated_cost(std::int64_t cost, std::int64_t count) {
  return cost > kForbidden / count ? kForbidden : cost * count;
}

/// How an edge's matrix is filled.
enum class EdgeKind {
  kRedistribute,  // the redistribution's cost; where the second may share the stored memory, the first is it
  kMadeOrShared,  // the same, but what shares the stored memory is not made of the first: costs nothing here
  kShares,        // only this: the first is what is stored; the second shares its memory exactly where they are equal
};

/// Interned layouts and lists, and the matrices between lists.
class LayoutTables {
 public:
  LayoutTables(RedistributionPlanner& redistributions, StrategyProblem& problem)
      : redistributions_(redistributions), problem_(problem) {}

  LayoutId layout(const TensorLayout& layout) {
    const auto [found, is_new] = layout_ids_.try_emplace(layout, LayoutId(layouts_.size()));
    if (is_new) layouts_.push_back(layout);
    return found->second;
  }
  const TensorLayout& operator[](LayoutId id) const { return layouts_[id]; }

  ListId list(std::vector<ListedLayout> entries) {
    const auto [found, is_new] = list_ids_.try_emplace(std::move(entries), ListId(lists_.size()));
    if (is_new) lists_.push_back(&found->first);
    return found->second;
  }
  const std::vector<ListedLayout>& entries(ListId id) const { return *lists_[id]; }

  TypeId type(const TensorType& type) {
    const Bytes bytes = element_bytes(type.dtype);
    for (const TypeId id : types_.ids()) {
      if (types_[id].element_bytes == bytes && types_[id].shape == type.shape) return id;
    }
    return types_.push_back({type.shape, bytes});
  }

  /// Nothing if the matrix would be all zero.
  std::optional<MatrixId> matrix(ListId from, ListId to, TypeId type, EdgeKind kind, std::int64_t runs) {
    const auto key = std::make_tuple(from.value(), to.value(), type.value(), kind, runs);
    const auto [found, is_new] = matrix_ids_.try_emplace(key);
    if (is_new) found->second = make_matrix(entries(from), entries(to), type, kind, runs);
    return found->second;
  }

  UsageTableId usage(std::vector<Bytes> bytes) {
    const auto [found, is_new] = usage_ids_.try_emplace(std::move(bytes), UsageTableId(problem_.usage_tables.size()));
    if (is_new) problem_.usage_tables.push_back({found->first});
    return found->second;
  }

 private:
  std::vector<const TensorLayout*> layouts_of(const std::vector<ListedLayout>& entries) const {
    std::vector<const TensorLayout*> layouts;
    for (const ListedLayout& entry : entries) layouts.push_back(&layouts_[entry.layout]);
    return layouts;
  }

  std::optional<MatrixId> make_matrix(const std::vector<ListedLayout>& from, const std::vector<ListedLayout>& to,
                                      TypeId type, EdgeKind kind, std::int64_t runs);

  RedistributionPlanner& redistributions_;
  StrategyProblem& problem_;
  std::unordered_map<TensorLayout, LayoutId> layout_ids_;
  IdVector<LayoutId, TensorLayout> layouts_;
  std::map<std::vector<ListedLayout>, ListId> list_ids_;
  IdVector<ListId, const std::vector<ListedLayout>*> lists_;
  IdVector<TypeId, WholeTensor> types_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t, EdgeKind, std::int64_t>, std::optional<MatrixId>>
      matrix_ids_;
  std::map<std::vector<Bytes>, UsageTableId> usage_ids_;
};

}  // namespace shardplan
