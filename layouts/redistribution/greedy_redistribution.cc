#include "layouts/redistribution/greedy_redistribution.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "layouts/index_digits.h"
#include "layouts/redistribution/greedy_order.h"
#include "layouts/redistribution/search/common_refinement.h"

namespace shardplan {
namespace {

/// A refined dimension: a digit of one of the tensor's dimensions, and the piece that shards it on either side.
struct UnifiedDigit {
  std::size_t dimension = 0;
  std::int64_t size = 1;
  std::optional<AxisRef> current;
  std::optional<AxisRef> target;
};

/// The digits of a dimension, with axes split where `cuts` (products of leading digits) say so.
std::vector<IndexDigit> split_at(const std::vector<IndexDigit>& digits, const std::set<std::int64_t>& cuts,
                                 bool& fits) {
  std::vector<IndexDigit> result;
  std::int64_t product = 1;
  for (IndexDigit digit : digits) {
    const std::int64_t end = product * digit.size;
    for (auto cut = cuts.upper_bound(product); product < end; ++cut) {
      const std::int64_t to = cut == cuts.end() ? end : std::min(*cut, end);
      if (to % product != 0 || end % to != 0) {
        fits = false;
        return {};
      }
      IndexDigit piece = {to / product, digit.axis};
      if (piece.axis) {
        piece.axis->size = piece.size;
        digit.axis->before *= piece.size;
      }
      result.push_back(piece);
      product = to;
    }
  }
  return result;
}

/// Nothing if the two sides have no common refinement.
std::optional<std::vector<UnifiedDigit>> unify(const TensorLayout& from, const TensorLayout& to, const DeviceMesh& mesh,
                                               const Shape& shape) {
  const std::vector<LayoutSpace> spaces = common_spaces(from, to, mesh, shape, Refinement::kMinimal);
  if (spaces.size() > 1) return std::nullopt;
  const auto digits_of = [&](const TensorLayout& layout, std::size_t d) {
    std::vector<IndexDigit> digits;
    for (const IndexDigit& digit : index_digits(layout.dimensions[d], shape[d])) {
      if (!digit.axis) digits.push_back(digit);
      for (const AxisRef& piece : spaces[0].pieces) {
        if (digit.axis && contains(*digit.axis, piece)) digits.push_back({piece.size, piece});
      }
    }
    return digits;
  };
  std::vector<UnifiedDigit> digits;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::set<std::int64_t> cuts;
    for (const TensorLayout* side : {&from, &to}) {
      std::int64_t product = 1;
      for (const IndexDigit& digit : digits_of(*side, d)) cuts.insert(product *= digit.size);
    }
    bool fits = true;
    const std::vector<IndexDigit> a = split_at(digits_of(from, d), cuts, fits);
    const std::vector<IndexDigit> b = split_at(digits_of(to, d), cuts, fits);
    if (!fits) return std::nullopt;
    for (std::size_t i = 0; i < a.size(); ++i) digits.push_back({d, a[i].size, a[i].axis, b[i].axis});
  }
  return digits;
}

/// Writes greedy moves as steps on layouts.
class StepWriter {
 public:
  StepWriter(std::vector<UnifiedDigit> digits, Bytes tensor_bytes, const Shape& shape, const CollectiveCosts& costs)
      : digits_(std::move(digits)), tensor_bytes_(tensor_bytes), shape_(shape), costs_(costs) {}

  std::vector<CollectiveStep> in_greedy_order() {
    // Axes by number; each piece shards one digit on either side.
    std::vector<AxisRef> axes;
    const auto number = [&](const std::optional<AxisRef>& axis) {
      if (!axis) return kNotSharded;
      const auto known = std::find(axes.begin(), axes.end(), *axis);
      const std::int64_t result = known - axes.begin();
      if (known == axes.end()) axes.push_back(*axis);
      return result;
    };
    std::vector<std::int64_t> from, to;
    for (const UnifiedDigit& digit : digits_) {
      from.push_back(number(digit.current));
      to.push_back(number(digit.target));
    }
    for (const GreedyMove& move : greedy_order(from, to)) {
      UnifiedDigit& digit = digits_[move.digit];
      switch (move.kind) {
        case GreedyMove::Kind::kSlice:
          slice(digit);
          break;
        case GreedyMove::Kind::kExchange:
          add(CollectiveKind::kAllToAll, *digit.target, digits_[move.from].dimension, digit.dimension, [&] {
            digits_[move.from].current.reset();
            digit.current = digit.target;
          });
          break;
        case GreedyMove::Kind::kGather:
          gather(digit);
          break;
      }
    }
    return std::move(steps_);
  }
  std::vector<CollectiveStep> gather_all_and_slice() {
    for (std::size_t i = digits_.size(); i-- > 0;) {
      if (digits_[i].current) gather(digits_[i]);
    }
    for (UnifiedDigit& digit : digits_) {
      if (digit.target) slice(digit);
    }
    return std::move(steps_);
  }

 private:
  TensorLayout layout() const {
    TensorLayout result;
    std::vector<std::vector<IndexDigit>> digits(shape_.size());
    for (const UnifiedDigit& digit : digits_) digits[digit.dimension].push_back({digit.size, digit.current});
    for (const std::vector<IndexDigit>& list : digits) result.dimensions.push_back(dimension_of_digits(joined(list)));
    return result;
  }
  template <class Change>
  void add(CollectiveKind kind, const AxisRef& axis, std::optional<std::size_t> from_dim,
           std::optional<std::size_t> to_dim, Change change) {
    CollectiveStep step;
    step.kind = kind;
    step.axes = {axis};
    step.from_dim = from_dim;
    step.to_dim = to_dim;
    step.before = layout();
    change();
    step.after = layout();
    step.local_shape = local_shape(step.after, shape_);
    set_cost(step, tensor_bytes_, costs_);
    steps_.push_back(std::move(step));
  }
  void gather(UnifiedDigit& digit) {
    add(CollectiveKind::kAllGather, *digit.current, digit.dimension, std::nullopt, [&] { digit.current.reset(); });
  }
  void slice(UnifiedDigit& digit) {
    add(CollectiveKind::kSlice, *digit.target, std::nullopt, digit.dimension, [&] { digit.current = digit.target; });
  }

  std::vector<UnifiedDigit> digits_;
  Bytes tensor_bytes_;
  const Shape& shape_;
  const CollectiveCosts& costs_;
  std::vector<CollectiveStep> steps_;
};

}  // namespace

std::optional<Redistribution> greedy_redistribution(const TensorLayout& from, const TensorLayout& to,
                                                    const Shape& shape, Bytes element_bytes, const DeviceMesh& mesh,
                                                    const CollectiveCosts& costs) {
  Redistribution result;
  result.from = canonical(from, mesh, shape);
  result.to = canonical(to, mesh, shape);
  if (!result.from.partial.empty() || !result.to.partial.empty()) return std::nullopt;
  const Bytes tensor_bytes = num_bytes(shape, element_bytes);
  if (std::optional<std::vector<UnifiedDigit>> digits = unify(result.from, result.to, mesh, shape)) {
    result.steps = StepWriter(std::move(*digits), tensor_bytes, shape, costs).in_greedy_order();
  } else {
    const TensorLayout whole = TensorLayout::replicated(shape.size());
    result.steps =
        StepWriter(*unify(result.from, whole, mesh, shape), tensor_bytes, shape, costs).gather_all_and_slice();
    std::vector<CollectiveStep> slices =
        StepWriter(*unify(whole, result.to, mesh, shape), tensor_bytes, shape, costs).gather_all_and_slice();
    std::move(slices.begin(), slices.end(), std::back_inserter(result.steps));
  }
  add_up(result, tensor_bytes);
  return result;
}

Redistribution greedy_with_partial(const TensorLayout& from, const TensorLayout& to, const Shape& shape,
                                   Bytes element_bytes, const DeviceMesh& mesh, const CollectiveCosts& costs) {
  Redistribution result;
  result.from = canonical(from, mesh, shape);
  result.to = canonical(to, mesh, shape);
  const Bytes tensor_bytes = num_bytes(shape, element_bytes);
  const auto without_partial = [](TensorLayout layout) {
    layout.partial.clear();
    layout.reduction = Reduction::kSum;
    return layout;
  };
  const auto add = [&](CollectiveKind kind, const TensorLayout& before, const TensorLayout& after,
                       const TensorLayout& partial) {
    if (partial.partial.empty()) return;
    CollectiveStep step;
    step.kind = kind;
    step.axes = partial.partial;
    step.reduction = partial.reduction;
    step.before = before;
    step.after = after;
    step.local_shape = local_shape(after, shape);
    set_cost(step, tensor_bytes, costs);
    result.steps.push_back(std::move(step));
  };
  const TensorLayout reduced = without_partial(result.from);
  const TensorLayout whole = without_partial(result.to);
  add(CollectiveKind::kAllReduce, result.from, reduced, result.from);
  Redistribution middle = *greedy_redistribution(reduced, whole, shape, element_bytes, mesh, costs);
  std::move(middle.steps.begin(), middle.steps.end(), std::back_inserter(result.steps));
  add(CollectiveKind::kToPartial, whole, result.to, result.to);
  add_up(result, tensor_bytes);
  return result;
}

}  // namespace shardplan
