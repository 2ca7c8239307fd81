// Shortest paths over layouts of one tensor, for shapes that a mesh does not divide.
//
// The graphs of redistribution/search serve all tensors of like divisibility, since there a shard is the tensor divided
// by a number. With pieces of ceil(N / n) that is no longer so: what 8 pieces of 50257 hold is not what 4 hold, halved. So
// this search is made for one tensor. Its states are plain lists, which pieces of the mesh stand in which dimension and
// which are partial; its steps are the same seven, each with the condition that larger pieces consist of whole smaller
// ones. Several pieces are sliced or scattered in one step, since the way through fewer of them may not nest: 10 in 2 is
// 5 and 5, in 4 it is 3, 3, 3, 1.
//
// Labels are compared by the largest shard on the way (no less than the larger end's), then time, bytes sent and steps,
// so that paths within the memory bound come first. Few pieces are searched (a mesh has two or three axes); where
// there are more than kMostPermuted, permutes lead only to what stands as in the target.

#include "layouts/redistribution/uneven_redistribution.h"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "layouts/uneven.h"

namespace shardplan {
namespace {

constexpr std::size_t kMostPrimes = 4;        // pieces of axes cut to primes; if there are more, as the ends cut them
constexpr std::size_t kMostPermuted = 5;      // pieces of which all permutations are tried
constexpr std::size_t kMostSettled = 20'000;  // states

using Pieces = std::vector<std::uint8_t>;  // numbers of pieces, major to minor

struct State {
  std::vector<Pieces> dimensions;
  std::vector<char> parts;  // by dimension: 1 if it stands in parts as `from` has them, 2 as `to`
  Pieces partial;           // ascending
  Reduction reduction = Reduction::kSum;

  auto operator<=>(const State&) const = default;
};

struct Label {
  std::int64_t largest = 0;  // elements of a shard on the way
  Picoseconds time = 0;
  Bytes sent = 0;
  std::int64_t steps = 0;

  auto operator<=>(const Label&) const = default;
};

struct Edge {
  State target;
  CollectiveStep step;  // kind, axes and dimensions
};

/// The pieces into which both ends cut the axes, or primes.
std::vector<AxisRef> pieces_of(const DeviceMesh& mesh, const TensorLayout& from, const TensorLayout& to) {
  std::vector<std::set<std::int64_t>> cuts(mesh.axes().size());
  const auto add = [&](const std::vector<AxisRef>& axes) {
    for (const AxisRef& axis : axes) cuts[axis.axis].insert({axis.before, axis.end()});
  };
  for (const TensorLayout* end : {&from, &to}) {
    add(end->partial);
    for (const DimensionLayout& dimension : end->dimensions) {
      for (const DimensionPart& part : dimension.parts) add(part.axes);
    }
  }
  std::vector<AxisRef> primes;
  std::vector<AxisRef> pieces;
  bool is_chain = true;
  for (std::size_t axis = 0; axis < cuts.size(); ++axis) {
    cuts[axis].insert({1, mesh.axes()[axis].size});
    std::int64_t last = 1;
    for (const std::int64_t cut : cuts[axis]) {
      is_chain = is_chain && cut % last == 0;
      if (cut > last) pieces.push_back({static_cast<std::uint32_t>(axis), last, cut / last});
      last = cut;
    }
  }
  for (const AxisRef& piece : pieces) {
    std::int64_t before = piece.before;
    for (std::int64_t prime = 2, rest = piece.size; is_chain && rest > 1; ++prime) {
      for (; rest % prime == 0; rest /= prime) {
        primes.push_back({piece.axis, before, prime});
        before *= prime;
      }
    }
  }
  if (!is_chain)
    throw InputError({}, "the two layouts cut an axis of {} in ways that have no common refinement", mesh.to_string());
  return primes.size() <= kMostPrimes ? primes : pieces;
}

class Search {
 public:
  Search(const TensorLayout& from, const TensorLayout& to, const Shape& shape, Bytes element_bytes,
         const DeviceMesh& mesh, const CollectiveCosts& costs, bool bounded_memory)
      : from_(from),
        to_(to),
        shape_(shape),
        element_bytes_(element_bytes),
        costs_(costs),
        pieces_(pieces_of(mesh, from, to)),
        source_(encode(from, 1)),
        target_(encode(to, 2)) {
    reductions_ = {Reduction::kSum};
    for (const State* end : {&source_, &target_}) {
      const bool is_known = std::find(reductions_.begin(), reductions_.end(), end->reduction) != reductions_.end();
      if (!is_known) reductions_.push_back(end->reduction);
    }
    bound_ = bounded_memory ? std::max(local_elements(source_), local_elements(target_)) : INT64_MAX;
  }

  Redistribution run() {
    Redistribution plan;
    plan.from = from_;
    plan.to = to_;
    const bool is_found = find();
    std::vector<const Edge*> path;
    if (is_found) {
      for (const State* at = &target_; *at != source_; at = &arrived_.at(*at).from)
        path.push_back(&arrived_.at(*at).edge);
      std::reverse(path.begin(), path.end());
    }
    if (!is_found) throw InputError({}, "no sequence of collectives was found among {} layouts", kMostSettled);
    State at = source_;
    plan.peak = element_bytes_ * local_elements(source_);
    for (const Edge* edge : path) {
      CollectiveStep step = edge->step;
      step.before = decode(at);
      step.after = decode(edge->target);
      step.reduction = step.kind == CollectiveKind::kToPartial ? step.after.reduction : step.before.reduction;
      step.local_shape = local_shape(step.after, shape_);
      const StepCost cost = cost_of(at, *edge);
      step.time = cost.time;
      step.sent = cost.sent;
      plan.time += cost.time;
      plan.sent += cost.sent;
      const std::int64_t after = std::max(local_elements(edge->target), padded_elements(at, *edge));
      plan.peak = std::max(plan.peak, element_bytes_ * (local_elements(at) + after));
      plan.steps.push_back(std::move(step));
      at = edge->target;
    }
    return plan;
  }

 private:
  struct Arrival {
    State from;
    Edge edge;
    Label label;
  };

  std::vector<AxisRef> axes(const Pieces& pieces) const {
    std::vector<AxisRef> result;
    for (const std::uint8_t piece : pieces) result.push_back(pieces_[piece]);
    return joined(result);
  }
  void append(const AxisRef& axis, Pieces& pieces) const {
    std::int64_t at = axis.before;
    for (std::size_t i = 0; i < pieces_.size() && at < axis.end(); ++i) {
      if (pieces_[i].axis != axis.axis || pieces_[i].before != at) continue;
      pieces.push_back(static_cast<std::uint8_t>(i));
      at *= pieces_[i].size;
    }
    SHARDPLAN_CHECK(at == axis.end());
  }

  State encode(const TensorLayout& layout, char which) const {
    State state;
    for (const DimensionLayout& dimension : layout.dimensions) {
      Pieces& pieces = state.dimensions.emplace_back();
      for (const DimensionPart& part : dimension.parts) {
        for (const AxisRef& axis : part.axes) append(axis, pieces);
      }
      state.parts.push_back(dimension.parts.size() > 1 ? which : char{0});
    }
    // A dimension that both ends hold in the same parts is one state.
    for (std::size_t d = 0; d < state.parts.size(); ++d) {
      if (from_.dimensions[d] == to_.dimensions[d] && state.parts[d] != 0) state.parts[d] = 1;
    }
    for (const AxisRef& axis : layout.partial) append(axis, state.partial);
    std::sort(state.partial.begin(), state.partial.end());
    if (!state.partial.empty()) state.reduction = layout.reduction;
    return state;
  }
  TensorLayout decode(const State& state) const {
    TensorLayout layout = TensorLayout::replicated(shape_.size());
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (state.parts[d] != 0) {
        layout.dimensions[d] = (state.parts[d] == 1 ? from_ : to_).dimensions[d];
      } else {
        layout.dimensions[d].parts[0].axes = axes(state.dimensions[d]);
      }
    }
    layout.partial = axes(state.partial);
    if (!state.partial.empty()) layout.reduction = state.reduction;
    return layout;
  }

  std::int64_t product(const Pieces& pieces) const {
    std::int64_t result = 1;
    for (const std::uint8_t piece : pieces) result *= pieces_[piece].size;
    return result;
  }
  std::int64_t local_extent(const State& state, std::size_t d) const {
    const std::int64_t pieces = product(state.dimensions[d]);
    return (shape_[d] + pieces - 1) / pieces;
  }
  std::int64_t local_elements(const State& state) const {
    Shape local;
    for (std::size_t d = 0; d < shape_.size(); ++d) local.push_back(local_extent(state, d));
    return num_elements(local);
  }

  /// The elements of the larger buffer of a step, with the padding that all its pieces have.
  std::int64_t padded_elements(const State& before, const Edge& edge) const {
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
  StepCost cost_of(const State& before, const Edge& edge) const {
    std::vector<AxisRef> group = edge.step.axes;
    std::sort(group.begin(), group.end());
    return step_cost(edge.step.kind, joined(group), element_bytes_ * padded_elements(before, edge), costs_);
  }

  /// Dijkstra's algorithm; false if it gave up.
  bool find() {
    std::set<std::pair<Label, State>> queue;
    std::set<State> settled;
    const Label start{bound_, 0, 0, 0};
    queue.insert({start, source_});
    arrived_[source_] = {source_, {}, start};
    while (!queue.empty() && settled.size() < kMostSettled) {
      const auto [label, state] = *queue.begin();
      queue.erase(queue.begin());
      settled.insert(state);
      if (state == target_) return true;
      const Label here = label;
      const State& from = state;
      const auto relax = [&, &at = from](Edge edge) {
        const StepCost cost = cost_of(at, edge);
        const Label next{std::max(here.largest, local_elements(edge.target)), here.time + cost.time,
                         here.sent + cost.sent, here.steps + 1};
        if (settled.contains(edge.target)) return;
        const auto known = arrived_.find(edge.target);
        if (known != arrived_.end()) {
          if (known->second.label <= next) return;
          queue.erase({known->second.label, edge.target});
        }
        queue.insert({next, edge.target});
        State target = edge.target;
        arrived_[std::move(target)] = {at, std::move(edge), next};
      };
      leave(from, relax);
    }
    return false;
  }

  template <class Visit>
  void leave(const State& state, const Visit& visit) const {
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
      leave_parts(state, d, unused, visit);
      if (state.parts[d] != 0) continue;
      place(state, d, unused, {}, [&](State next, const Pieces& placed) {
        visit(edge(std::move(next), CollectiveKind::kSlice, placed, {}, d));
      });
      place(state, d, state.partial, {}, [&](State next, const Pieces& placed) {
        std::erase_if(next.partial, [&](std::uint8_t piece) { return contains(placed, piece); });
        forget_reduction(next);
        visit(edge(std::move(next), CollectiveKind::kReduceScatter, placed, {}, d));
      });
      take(state, d, visit);
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
    for (const std::uint8_t piece : unused) make_partial(state, {piece}, {}, visit);
    permutes(state, visit);
  }

  static bool contains(const Pieces& pieces, std::uint8_t piece) {
    return std::find(pieces.begin(), pieces.end(), piece) != pieces.end();
  }
  static void forget_reduction(State& state) {
    if (state.partial.empty()) state.reduction = Reduction::kSum;
  }
  Edge edge(State target, CollectiveKind kind, const Pieces& group, std::optional<std::size_t> from_dim,
            std::optional<std::size_t> to_dim) const {
    Edge result;
    result.target = std::move(target);
    result.step.kind = kind;
    result.step.axes = axes(group);
    result.step.from_dim = from_dim;
    result.step.to_dim = to_dim;
    return result;
  }

  /// Whether `group` behind the pieces that stand in dimension d splits it further into whole rows.
  bool may_follow(const State& state, std::size_t d, const Pieces& group) const {
    const std::int64_t fewer = product(state.dimensions[d]);
    const std::int64_t pieces = fewer * product(group);
    return can_be_split(shape_[d], pieces) && nests(shape_[d], pieces, fewer);
  }

  /// Appends any of `pieces`, in any order, to dimension d.
  template <class Visit>
  void place(const State& state, std::size_t d, const Pieces& pieces, const Pieces& placed, const Visit& visit) const {
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
  template <class Visit>
  void take(const State& state, std::size_t d, const Visit& visit) const {
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
      make_partial(without, taken, d, visit);
    }
  }

  /// Copies of `pieces`, or what they shard in dimension `from_dim`, become summands: with padding and one all_reduce a
  /// way can save launches. Where there are many pieces only what is partial in the end becomes so.
  template <class Visit>
  void make_partial(const State& without, const Pieces& pieces, std::optional<std::size_t> from_dim,
                    const Visit& visit) const {
    for (const Reduction reduction : reductions_) {
      if (!without.partial.empty() && without.reduction != reduction) continue;
      const bool only_target = pieces_.size() > kMostPermuted;
      const auto is_wanted = [&](std::uint8_t piece) { return contains(target_.partial, piece); };
      if (only_target && !std::all_of(pieces.begin(), pieces.end(), is_wanted)) continue;
      State next = without;
      next.partial.insert(next.partial.end(), pieces.begin(), pieces.end());
      std::sort(next.partial.begin(), next.partial.end());
      next.reduction = reduction;
      visit(edge(std::move(next), CollectiveKind::kToPartial, pieces, from_dim, {}));
    }
  }

  template <class Visit>
  void leave_parts(const State& state, std::size_t d, const Pieces& unused, const Visit& visit) const {
    if (state.parts[d] != 0) {
      State next = state;
      next.parts[d] = 0;
      next.dimensions[d].clear();
      visit(edge(std::move(next), CollectiveKind::kAllGather, state.dimensions[d], d, {}));
    } else if (target_.parts[d] != 0 && state.dimensions[d].empty()) {
      const Pieces& wanted = target_.dimensions[d];
      if (!std::all_of(wanted.begin(), wanted.end(), [&](std::uint8_t piece) { return contains(unused, piece); }))
        return;
      State next = state;
      next.parts[d] = target_.parts[d];
      next.dimensions[d] = wanted;
      visit(edge(std::move(next), CollectiveKind::kSlice, wanted, {}, d));
    }
  }

  /// All states with as many pieces along each dimension and as many summands.
  template <class Visit>
  void permutes(const State& state, const Visit& visit) const {
    State next = state;
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      if (state.parts[d] == 0) next.dimensions[d].clear();
    }
    next.partial.clear();
    fill(state, 0, next, visit);
  }
  template <class Visit>
  void fill(const State& state, std::size_t d, const State& next, const Visit& visit) const {
    while (d < shape_.size() && (state.parts[d] != 0 || product(next.dimensions[d]) == product(state.dimensions[d])))
      ++d;
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
        if (pieces_.size() > kMostPermuted && next.dimensions != target_.dimensions) return;
        visit(edge(next, CollectiveKind::kCollectivePermute, moved(state, next), {}, {}));
        return;
      }
      const std::uint8_t first = next.partial.empty() ? 0 : static_cast<std::uint8_t>(next.partial.back() + 1);
      for (std::uint8_t piece = first; piece < pieces_.size(); ++piece) {
        if (!is_free(piece) || product(state.partial) % (summands * pieces_[piece].size) != 0) continue;
        State more = next;
        more.partial.push_back(piece);
        fill(state, d, more, visit);
      }
      return;
    }
    const std::size_t at = next.dimensions[d].size();
    const bool follows_target = pieces_.size() > kMostPermuted;
    for (std::uint8_t piece = 0; piece < pieces_.size(); ++piece) {
      if (!is_free(piece)) continue;
      const Pieces& wanted = target_.dimensions[d];
      if (follows_target && (at >= wanted.size() || wanted[at] != piece)) continue;
      State more = next;
      more.dimensions[d].push_back(piece);
      if (product(state.dimensions[d]) % product(more.dimensions[d]) == 0) fill(state, d, more, visit);
    }
  }
  /// The pieces whose coordinate counts something else than before.
  Pieces moved(const State& before, const State& after) const {
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

  const TensorLayout& from_;
  const TensorLayout& to_;
  const Shape& shape_;
  Bytes element_bytes_;
  const CollectiveCosts& costs_;
  std::vector<AxisRef> pieces_;
  State source_;
  State target_;
  std::vector<Reduction> reductions_;  // that states may be partial over
  std::int64_t bound_ = 0;
  std::map<State, Arrival> arrived_;
};

}  // namespace

Redistribution uneven_redistribution(const TensorLayout& from, const TensorLayout& to, const Shape& shape,
                                     Bytes element_bytes, const DeviceMesh& mesh, const CollectiveCosts& costs,
                                     bool bounded_memory) {
  return Search(from, to, shape, element_bytes, mesh, costs, bounded_memory).run();
}

}  // namespace shardplan
