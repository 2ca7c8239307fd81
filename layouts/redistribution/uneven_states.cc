#include "layouts/redistribution/uneven_states.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "layouts/uneven.h"

// The steps are the seven of collective.h, each with the condition that larger pieces consist of whole smaller ones. Several
// pieces are sliced or scattered in one step, since the way through fewer of them may not nest: 10 in 2 is 5 and 5, in 4 it
// is 3, 3, 3, 1.

namespace shardplan {
namespace {

using Pieces = UnevenStates::Pieces;

bool contains(const Pieces& pieces, std::uint8_t piece) {
  return std::find(pieces.begin(), pieces.end(), piece) != pieces.end();
}
void forget_reduction(UnevenStates::State& state) {
  if (state.partial.empty()) state.reduction = Reduction::kSum;
}

}  // namespace

/// Whether a layout's axes are rows of whole ones of `pieces`.
bool consists_of(const TensorLayout& layout, const std::vector<AxisRef>& pieces) {
  const auto are_rows = [&](const std::vector<AxisRef>& axes) {
    return std::ranges::all_of(axes, [&](const AxisRef& axis) {
      std::int64_t at = axis.before;
      for (const AxisRef& piece : pieces) {
        if (piece.axis == axis.axis && piece.before == at && at < axis.end()) at = piece.end();
      }
      return at == axis.end();
    });
  };
  return are_rows(layout.partial) && std::ranges::all_of(layout.dimensions, [&](const DimensionLayout& dimension) {
           return std::ranges::all_of(dimension.parts, [&](const DimensionPart& part) { return are_rows(part.axes); });
         });
}

UnevenStates::Label UnevenStates::Label::then(const StepCost& cost, std::int64_t elements) const {
  return {std::max(largest, elements), time + cost.time, sent + cost.sent, steps + 1};
}

UnevenStates::UnevenStates(const Shape& shape, Bytes element_bytes, std::vector<AxisRef> pieces,
                           const CollectiveCosts& costs)
    : shape_(shape),
      element_bytes_(element_bytes),
      pieces_(std::move(pieces)),
      costs_(costs),
      forms_(shape.size()),
      reductions_({Reduction::kSum}) {}

std::size_t UnevenStates::num_known() const {
  std::size_t count = reductions_.size();
  for (const std::vector<Form>& forms : forms_) count += forms.size();
  return count;
}

std::vector<AxisRef> UnevenStates::axes(const Pieces& pieces) const {
  std::vector<AxisRef> result;
  for (const std::uint8_t piece : pieces) result.push_back(pieces_[piece]);
  return joined(result);
}

void UnevenStates::append(const AxisRef& axis, Pieces& pieces) const {
  std::int64_t at = axis.before;
  for (std::size_t i = 0; i < pieces_.size() && at < axis.end(); ++i) {
    if (pieces_[i].axis != axis.axis || pieces_[i].before != at) continue;
    pieces.push_back(static_cast<std::uint8_t>(i));
    at *= pieces_[i].size;
  }
  SHARDPLAN_CHECK(at == axis.end());
}

UnevenStates::State UnevenStates::encode(const TensorLayout& layout) {
  State state;
  for (std::size_t d = 0; d < layout.dimensions.size(); ++d) {
    const DimensionLayout& dimension = layout.dimensions[d];
    Pieces& pieces = state.dimensions.emplace_back();
    for (const DimensionPart& part : dimension.parts) {
      for (const AxisRef& axis : part.axes) append(axis, pieces);
    }
    state.parts.push_back(dimension.parts.size() > 1 ? form(d, {dimension, pieces}) : char{0});
  }
  for (const AxisRef& axis : layout.partial) append(axis, state.partial);
  std::sort(state.partial.begin(), state.partial.end());
  if (!state.partial.empty()) state.reduction = layout.reduction;
  if (std::ranges::find(reductions_, state.reduction) == reductions_.end()) reductions_.push_back(state.reduction);
  return state;
}

/// The number of a form, from 1.
char UnevenStates::form(std::size_t d, Form wanted) {
  std::vector<Form>& known = forms_[d];
  auto at = std::ranges::find(known, wanted.layout, &Form::layout);
  if (at == known.end()) at = known.insert(known.end(), std::move(wanted));
  return static_cast<char>(at - known.begin() + 1);
}

TensorLayout UnevenStates::decode(const State& state) const {
  TensorLayout layout = TensorLayout::replicated(shape_.size());
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    if (state.parts[d] != 0) {
      layout.dimensions[d] = forms_[d][static_cast<std::size_t>(state.parts[d] - 1)].layout;
    } else {
      layout.dimensions[d].parts[0].axes = axes(state.dimensions[d]);
    }
  }
  layout.partial = axes(state.partial);
  if (!state.partial.empty()) layout.reduction = state.reduction;
  return layout;
}

std::int64_t UnevenStates::product(const Pieces& pieces) const {
  std::int64_t result = 1;
  for (const std::uint8_t piece : pieces) result *= pieces_[piece].size;
  return result;
}

std::int64_t UnevenStates::local_extent(const State& state, std::size_t d) const {
  const std::int64_t pieces = product(state.dimensions[d]);
  return (shape_[d] + pieces - 1) / pieces;
}

std::int64_t UnevenStates::local_elements(const State& state) const {
  Shape local;
  for (std::size_t d = 0; d < shape_.size(); ++d) local.push_back(local_extent(state, d));
  return num_elements(local);
}

std::int64_t UnevenStates::padded_elements(const State& before, const Edge& edge) const {
  const CollectiveStep& step = edge.step;
  const bool gathers = step.kind == CollectiveKind::kAllGather;
  const bool scatters = step.kind == CollectiveKind::kReduceScatter || step.kind == CollectiveKind::kAllToAll;
  if (!gathers && !scatters) return local_elements(before);
  const std::size_t d = gathers ? *step.from_dim : *step.to_dim;
  const State& small = gathers ? before : edge.target;
  Shape local;
  for (std::size_t k = 0; k < shape_.size(); ++k) {
    local.push_back(k == d ? local_extent(small, k) * num_pieces(step.axes) : local_extent(before, k));
  }
  return num_elements(local);
}

StepCost UnevenStates::cost_of(const State& before, const Edge& edge) const {
  std::vector<AxisRef> group = edge.step.axes;
  std::sort(group.begin(), group.end());
  return step_cost(edge.step.kind, joined(group), element_bytes_ * padded_elements(before, edge), costs_);
}

void UnevenStates::leave(const State& state, const State* target, const Visit& visit) const {
  Pieces unused;
  std::vector<char> is_used(pieces_.size(), 0);
  for (const Pieces& pieces : state.dimensions) {
    for (const std::uint8_t piece : pieces) is_used[piece] = 1;
  }
  for (const std::uint8_t piece : state.partial) is_used[piece] = 1;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!is_used[i]) unused.push_back(static_cast<std::uint8_t>(i));
  }
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    leave_parts(state, d, unused, target, visit);
    if (state.parts[d] != 0) continue;
    place(state, d, unused, {}, [&](State next, const Pieces& placed) {
      visit(edge(std::move(next), CollectiveKind::kSlice, placed, {}, d));
    });
    place(state, d, state.partial, {}, [&](State next, const Pieces& placed) {
      std::erase_if(next.partial, [&](std::uint8_t piece) { return contains(placed, piece); });
      forget_reduction(next);
      visit(edge(std::move(next), CollectiveKind::kReduceScatter, placed, {}, d));
    });
    take(state, d, target, visit);
  }
  for (std::uint32_t some = 1; some < 1u << state.partial.size(); ++some) {
    State next = state;
    next.partial.clear();
    Pieces reduced;
    for (std::size_t i = 0; i < state.partial.size(); ++i) {
      ((some >> i & 1) != 0 ? reduced : next.partial).push_back(state.partial[i]);
    }
    forget_reduction(next);
    visit(edge(std::move(next), CollectiveKind::kAllReduce, reduced, {}, {}));
  }
  for (const std::uint8_t piece : unused) make_partial(state, {piece}, {}, target, visit);
  permutes(state, target, visit);
}

UnevenStates::Edge UnevenStates::edge(State target, CollectiveKind kind, const Pieces& group,
                                      std::optional<std::size_t> from_dim, std::optional<std::size_t> to_dim) const {
  Edge result;
  result.target = std::move(target);
  result.step.kind = kind;
  result.step.axes = axes(group);
  result.step.from_dim = from_dim;
  result.step.to_dim = to_dim;
  return result;
}

/// Whether `group`, after the pieces in dimension d, splits it further into whole rows.
bool UnevenStates::may_follow(const State& state, std::size_t d, const Pieces& group) const {
  const std::int64_t fewer = product(state.dimensions[d]);
  const std::int64_t pieces = fewer * product(group);
  return can_be_split(shape_[d], pieces) && nests(shape_[d], pieces, fewer);
}

/// Appends any of `pieces`, in any order, to dimension d.
void UnevenStates::place(const State& state, std::size_t d, const Pieces& pieces, const Pieces& placed,
                         const std::function<void(State, const Pieces&)>& visit) const {
  for (const std::uint8_t piece : pieces) {
    if (contains(placed, piece)) continue;
    Pieces more = placed;
    more.push_back(piece);
    if (product(state.dimensions[d]) * product(more) > shape_[d]) continue;
    if (may_follow(state, d, more)) {
      State next = state;
      next.dimensions[d].insert(next.dimensions[d].end(), more.begin(), more.end());
      visit(std::move(next), more);
    }
    place(state, d, pieces, more, visit);
  }
}

/// all_gather, all_to_all and to_partial of the last one, two, ... pieces of dimension d.
void UnevenStates::take(const State& state, std::size_t d, const State* target, const Visit& visit) const {
  const Pieces& all = state.dimensions[d];
  for (std::size_t left = all.size(); left-- > 0;) {
    const Pieces taken(all.begin() + static_cast<std::ptrdiff_t>(left), all.end());
    State without = state;
    without.dimensions[d].resize(left);
    if (!may_follow(without, d, taken)) continue;
    visit(edge(without, CollectiveKind::kAllGather, taken, d, {}));
    for (std::size_t to = 0; to < shape_.size(); ++to) {
      if (to == d || state.parts[to] != 0 || !may_follow(state, to, taken)) continue;
      State next = without;
      next.dimensions[to].insert(next.dimensions[to].end(), taken.begin(), taken.end());
      visit(edge(std::move(next), CollectiveKind::kAllToAll, taken, d, to));
    }
    make_partial(without, taken, d, target, visit);
  }
}

/// Copies of `pieces`, or what they shard in dimension `from_dim`, become summands: with padding and one all_reduce a
/// way can save launches. Where there are many pieces only what is partial in the end becomes so.
void UnevenStates::make_partial(const State& without, const Pieces& pieces, std::optional<std::size_t> from_dim,
                                const State* target, const Visit& visit) const {
  for (const Reduction reduction : reductions_) {
    if (!without.partial.empty() && without.reduction != reduction) continue;
    const bool only_target = target != nullptr && pieces_.size() > kMostPermuted;
    const auto is_wanted = [&](std::uint8_t piece) { return contains(target->partial, piece); };
    if (only_target && !std::all_of(pieces.begin(), pieces.end(), is_wanted)) continue;
    State next = without;
    next.partial.insert(next.partial.end(), pieces.begin(), pieces.end());
    std::sort(next.partial.begin(), next.partial.end());
    next.reduction = reduction;
    visit(edge(std::move(next), CollectiveKind::kToPartial, pieces, from_dim, {}));
  }
}

void UnevenStates::leave_parts(const State& state, std::size_t d, const Pieces& unused, const State* target,
                               const Visit& visit) const {
  if (state.parts[d] != 0) {
    State next = state;
    next.parts[d] = 0;
    next.dimensions[d].clear();
    visit(edge(std::move(next), CollectiveKind::kAllGather, state.dimensions[d], d, {}));
  } else if (state.dimensions[d].empty()) {
    for (std::size_t i = 0; i < forms_[d].size(); ++i) {
      const auto number = static_cast<char>(i + 1);
      const Pieces& wanted = forms_[d][i].pieces;
      if (target != nullptr && number != target->parts[d]) continue;
      if (!std::all_of(wanted.begin(), wanted.end(), [&](std::uint8_t piece) { return contains(unused, piece); }))
        continue;
      State next = state;
      next.parts[d] = number;
      next.dimensions[d] = wanted;
      visit(edge(std::move(next), CollectiveKind::kSlice, wanted, {}, d));
    }
  }
}

/// All states with as many pieces along each dimension and as many summands.
void UnevenStates::permutes(const State& state, const State* target, const Visit& visit) const {
  State next = state;
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    if (state.parts[d] == 0) next.dimensions[d].clear();
  }
  next.partial.clear();
  fill(state, 0, next, target, visit);
}
void UnevenStates::fill(const State& state, std::size_t d, const State& next, const State* target,
                        const Visit& visit) const {
  const bool follows_target = target != nullptr && pieces_.size() > kMostPermuted;
  while (d < shape_.size() && (state.parts[d] != 0 || product(next.dimensions[d]) == product(state.dimensions[d]))) ++d;
  const auto is_free = [&](std::uint8_t piece) {
    for (const Pieces& pieces : next.dimensions) {
      if (contains(pieces, piece)) return false;
    }
    return !contains(next.partial, piece);
  };
  if (d == shape_.size()) {
    const std::int64_t summands = product(next.partial);
    if (summands == product(state.partial)) {
      if (next == state) return;
      if (follows_target && next.dimensions != target->dimensions) return;
      visit(edge(next, CollectiveKind::kCollectivePermute, moved(state, next), {}, {}));
      return;
    }
    const std::uint8_t first = next.partial.empty() ? 0 : static_cast<std::uint8_t>(next.partial.back() + 1);
    for (std::uint8_t piece = first; piece < pieces_.size(); ++piece) {
      if (!is_free(piece) || product(state.partial) % (summands * pieces_[piece].size) != 0) continue;
      State more = next;
      more.partial.push_back(piece);
      fill(state, d, more, target, visit);
    }
    return;
  }
  const std::size_t at = next.dimensions[d].size();
  for (std::uint8_t piece = 0; piece < pieces_.size(); ++piece) {
    if (!is_free(piece)) continue;
    if (follows_target && (at >= target->dimensions[d].size() || target->dimensions[d][at] != piece)) continue;
    State more = next;
    more.dimensions[d].push_back(piece);
    if (product(state.dimensions[d]) % product(more.dimensions[d]) == 0) fill(state, d, more, target, visit);
  }
}
/// The pieces whose coordinate counts something else than before.
UnevenStates::Pieces UnevenStates::moved(const State& before, const State& after) const {
  const auto meaning = [&](const State& state, std::uint8_t piece) {
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      std::int64_t weight = 1;
      for (const std::uint8_t other : state.dimensions[d]) {
        if (other == piece) return std::tuple(d, weight);
        weight *= pieces_[other].size;
      }
    }
    return std::tuple(shape_.size(), contains(state.partial, piece) ? std::int64_t{1} : std::int64_t{0});
  };
  Pieces result;
  for (std::uint8_t piece = 0; piece < pieces_.size(); ++piece) {
    if (meaning(before, piece) != meaning(after, piece)) result.push_back(piece);
  }
  return result;
}

}  // namespace shardplan
