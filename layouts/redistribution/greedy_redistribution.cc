#include "layouts/redistribution/greedy_redistribution.h"

#include <algorithm>
#include <set>

#include "layouts/redistribution/search/common_refinement.h"

namespace shardplan {
namespace {

/// A refined dimension: a digit of one of the tensor's dimensions, and the piece that cuts it on either side.
struct Slot {
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
std::optional<std::vector<Slot>> unify(const TensorLayout& from, const TensorLayout& to, const DeviceMesh& mesh,
                                       const Shape& shape) {
  const std::vector<PieceChart> charts = common_charts(from, to, mesh, shape, Detail::kMoved);
  if (charts.size() > 1) return std::nullopt;
  const auto digits_of = [&](const TensorLayout& layout, std::size_t d) {
    std::vector<IndexDigit> digits;
    for (const IndexDigit& digit : index_digits(layout.dimensions[d], shape[d])) {
      if (!digit.axis) digits.push_back(digit);
      for (const AxisRef& piece : charts[0].pieces) {
        if (digit.axis && contains(*digit.axis, piece)) digits.push_back({piece.size, piece});
      }
    }
    return digits;
  };
  std::vector<Slot> slots;
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
    for (std::size_t i = 0; i < a.size(); ++i) slots.push_back({d, a[i].size, a[i].axis, b[i].axis});
  }
  return slots;
}

class Greedy {
 public:
  Greedy(std::vector<Slot> slots, Bytes tensor_bytes, const Shape& shape, const CollectiveCosts& costs)
      : slots_(std::move(slots)), tensor_bytes_(tensor_bytes), shape_(shape), costs_(costs) {}

  std::vector<CollectiveStep> run() {
    while (!is_done()) {
      bool progress = false;
      for (bool added = true; added;) {
        added = split_pass();
        while (permute_pass()) added = true;
        progress = progress || added;
      }
      progress = concat_pass() || progress;
      if (!progress) {
        for (Slot& slot : slots_) {
          if (slot.current == slot.target || !slot.current) continue;
          gather(slot);
          break;
        }
      }
    }
    return std::move(steps_);
  }
  std::vector<CollectiveStep> gather_all_and_slice() {
    for (std::size_t i = slots_.size(); i-- > 0;) {
      if (slots_[i].current) gather(slots_[i]);
    }
    split_pass();
    return std::move(steps_);
  }
  TensorLayout layout() const {
    TensorLayout result;
    std::vector<std::vector<IndexDigit>> digits(shape_.size());
    for (const Slot& slot : slots_) digits[slot.dimension].push_back({slot.size, slot.current});
    for (const std::vector<IndexDigit>& list : digits) result.dimensions.push_back(dimension_of_digits(joined(list)));
    return result;
  }

 private:
  bool is_done() const {
    return std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.current == slot.target; });
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
    set_price(step, tensor_bytes_, costs_);
    steps_.push_back(std::move(step));
  }
  void gather(Slot& slot) {
    add(CollectiveKind::kAllGather, *slot.current, slot.dimension, std::nullopt, [&] { slot.current.reset(); });
  }
  bool split_pass() {
    bool added = false;
    for (Slot& slot : slots_) {
      if (slot.current || !slot.target || holder(*slot.target) != nullptr) continue;
      add(CollectiveKind::kSlice, *slot.target, std::nullopt, slot.dimension, [&] { slot.current = slot.target; });
      added = true;
    }
    return added;
  }
  bool permute_pass() {
    bool added = false;
    for (Slot& slot : slots_) {
      if (slot.current || !slot.target) continue;
      Slot* const from = holder(*slot.target);
      if (from == nullptr) continue;
      add(CollectiveKind::kAllToAll, *slot.target, from->dimension, slot.dimension, [&] {
        from->current.reset();
        slot.current = slot.target;
      });
      added = true;
    }
    return added;
  }
  bool concat_pass() {
    bool added = false;
    for (Slot& slot : slots_) {
      if (!slot.current || slot.current == slot.target) continue;
      const bool is_wanted =
          std::any_of(slots_.begin(), slots_.end(), [&](const Slot& other) { return other.target == slot.current; });
      if (is_wanted) continue;
      gather(slot);
      added = true;
    }
    return added;
  }
  Slot* holder(const AxisRef& axis) {
    for (Slot& slot : slots_) {
      if (slot.current == axis) return &slot;
    }
    return nullptr;
  }

  std::vector<Slot> slots_;
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
  if (std::optional<std::vector<Slot>> slots = unify(result.from, result.to, mesh, shape)) {
    result.steps = Greedy(std::move(*slots), tensor_bytes, shape, costs).run();
  } else {
    const TensorLayout whole = TensorLayout::replicated(shape.size());
    result.steps = Greedy(*unify(result.from, whole, mesh, shape), tensor_bytes, shape, costs).gather_all_and_slice();
    std::vector<CollectiveStep> slices =
        Greedy(*unify(whole, result.to, mesh, shape), tensor_bytes, shape, costs).gather_all_and_slice();
    std::move(slices.begin(), slices.end(), std::back_inserter(result.steps));
  }
  add_up(result, tensor_bytes);
  return result;
}

}  // namespace shardplan
