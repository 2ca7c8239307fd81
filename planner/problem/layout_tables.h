#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/index.h"
#include "layouts/tensor_layout.h"
#include "operators/operation.h"
#include "solver/strategy_problem.h"

namespace shardplan {

using LayoutId = Index<struct LayoutTag>;
using ListId = Index<struct ListTag>;
using TypeId = Index<struct TypeTag>;
using MatrixRequestId = Index<struct MatrixRequestTag>;

/// An entry of a node's list, as its edges see it: a layout, and whether it shares the stored version's memory.
struct ListedLayout {
  LayoutId layout;
  bool shares = false;
  auto operator<=>(const ListedLayout&) const = default;
};

/// What the cost of a redistribution depends on besides the layouts.
struct WholeTensor {
  Shape shape;
  Bytes element_bytes = 0;
};

/// The cost of `count` repetitions; kForbidden is kept.
inline std::int64_t repeated_cost(std::int64_t cost, std::int64_t count) {
  return cost > kForbidden / count ? kForbidden : cost * count;
}

/// How the matrix of an edge is filled.
enum class EdgeKind {
  kRedistribute,  // the redistribution's cost; if the second list has entries that share the stored memory, the first
                  // is the stored version, and such an entry is allowed exactly where the layouts are equal
  kMadeOrShared,  // the same, but entries that share the stored memory are not made from the first and cost nothing here
  kShares,        // only the constraint of kRedistribute, at no cost
  kKeptAs,        // only this constraint: the second is the first without partial sums
};

/// A matrix that edges request; its costs are `runs` times those of one redistribution.
struct MatrixRequest {
  ListId from;
  ListId to;
  TypeId type;
  EdgeKind kind = EdgeKind::kRedistribute;
  std::int64_t runs = 1;
  auto operator<=>(const MatrixRequest&) const = default;
};

/// Interned layouts, lists of layouts, tables of bytes, and the matrices requested between lists (`problem_costs.h`
/// fills them).
class LayoutTables {
 public:
  explicit LayoutTables(StrategyProblem& problem) : problem_(problem) {}

  LayoutId layout(const TensorLayout& layout) {
    const auto [found, is_new] = layout_ids_.try_emplace(layout, LayoutId(layouts_.size()));
    if (is_new) layouts_.push_back(layout);
    return found->second;
  }
  const TensorLayout& operator[](LayoutId id) const { return layouts_[id]; }
  LayoutId without_partial(LayoutId id) {
    TensorLayout whole = layouts_[id];
    whole.partial.clear();
    return layout(whole);
  }

  ListId list(std::vector<ListedLayout> entries) {
    const auto [found, is_new] = list_ids_.try_emplace(std::move(entries), ListId(lists_.size()));
    if (is_new) lists_.push_back(&found->first);
    return found->second;
  }
  const std::vector<ListedLayout>& entries(ListId id) const { return *lists_[id]; }

  TypeId type(const TensorType& type) {
    const Bytes bytes = element_bytes(type.dtype);
    std::map<Shape, TypeId>& known = type_ids_[bytes];
    if (const auto found = known.find(type.shape); found != known.end()) return found->second;
    return known[type.shape] = types_.push_back({type.shape, bytes});
  }

  const WholeTensor& operator[](TypeId id) const { return types_[id]; }

  MatrixRequestId request(const MatrixRequest& request) {
    const auto [found, is_new] = request_ids_.try_emplace(request, MatrixRequestId(requests_.size()));
    if (is_new) requests_.push_back(request);
    return found->second;
  }
  const IdVector<MatrixRequestId, MatrixRequest>& requests() const { return requests_; }

  UsageTableId usage(std::vector<Bytes> bytes) {
    const auto [found, is_new] = usage_ids_.try_emplace(std::move(bytes), UsageTableId(problem_.usage_tables.size()));
    if (is_new) problem_.usage_tables.push_back({found->first});
    return found->second;
  }

  std::vector<const TensorLayout*> layouts_of(ListId id) const {
    std::vector<const TensorLayout*> layouts;
    for (const ListedLayout& entry : entries(id)) layouts.push_back(&layouts_[entry.layout]);
    return layouts;
  }

 private:
  StrategyProblem& problem_;
  std::unordered_map<TensorLayout, LayoutId> layout_ids_;
  IdVector<LayoutId, TensorLayout> layouts_;
  std::map<std::vector<ListedLayout>, ListId> list_ids_;
  IdVector<ListId, const std::vector<ListedLayout>*> lists_;
  std::map<Bytes, std::map<Shape, TypeId>> type_ids_;  // by the bytes per element
  IdVector<TypeId, WholeTensor> types_;
  std::map<MatrixRequest, MatrixRequestId> request_ids_;
  IdVector<MatrixRequestId, MatrixRequest> requests_;
  std::map<std::vector<Bytes>, UsageTableId> usage_ids_;
};

}  // namespace shardplan
