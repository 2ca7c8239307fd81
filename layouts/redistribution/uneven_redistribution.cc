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
// so that paths within the memory bound come first; where there are none, the bound is raised to the largest shard that
// was found and the search made again. Few pieces are searched (a mesh has two or three axes); where
// there are more than kMostPermuted, permutes lead only to what stands as in the target.

#include "layouts/redistribution/uneven_redistribution.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "layouts/redistribution/uneven_states.h"

namespace shardplan {
namespace {

constexpr std::size_t kMostPrimes = 4;  // pieces of axes cut to primes; if there are more, as the ends cut them
constexpr std::size_t kMostSettledUneven = 20'000;  // states

using State = UnevenStates::State;
using Label = UnevenStates::Label;
using Edge = UnevenStates::Edge;

/// `known`, if both ends are made of these; else the pieces into which both ends cut the axes, or primes.
std::vector<AxisRef> pieces_of(const DeviceMesh& mesh, const TensorLayout& from, const TensorLayout& to,
                               const std::vector<AxisRef>& known) {
  if (!known.empty() && consists_of(from, known) && consists_of(to, known)) return known;
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
         const DeviceMesh& mesh, const CollectiveCosts& costs, bool bounded_memory, const std::vector<AxisRef>& pieces)
      : from_(from),
        to_(to),
        shape_(shape),
        element_bytes_(element_bytes),
        states_(shape, element_bytes, pieces_of(mesh, from, to, pieces), costs),
        source_(states_.encode(from)),
        target_(states_.encode(to)) {
    bound_ = bounded_memory ? std::max(states_.local_elements(source_), states_.local_elements(target_)) : INT64_MAX;
  }

  Redistribution run() {
    Redistribution plan;
    plan.from = from_;
    plan.to = to_;
    const bool is_found = find();
    // The largest shard on the way is the least; among all paths without a larger one the fastest is another search's.
    if (is_found && arrived_.at(target_).label.largest > bound_) {
      bound_ = arrived_.at(target_).label.largest;
      const std::map<State, Arrival> slower = std::exchange(arrived_, {});
      if (!find()) arrived_ = slower;
    }
    std::vector<const Edge*> path;
    if (is_found) {
      for (const State* at = &target_; *at != source_; at = &arrived_.at(*at).from)
        path.push_back(&arrived_.at(*at).edge);
      std::reverse(path.begin(), path.end());
    }
    if (!is_found) throw InputError({}, "no sequence of collectives was found among {} layouts", kMostSettledUneven);
    State at = source_;
    plan.peak = element_bytes_ * states_.local_elements(source_);
    for (const Edge* edge : path) {
      CollectiveStep step = edge->step;
      step.before = states_.decode(at);
      step.after = states_.decode(edge->target);
      step.reduction = step.kind == CollectiveKind::kToPartial ? step.after.reduction : step.before.reduction;
      step.local_shape = local_shape(step.after, shape_);
      const StepCost cost = states_.cost_of(at, *edge);
      step.time = cost.time;
      step.sent = cost.sent;
      plan.time += cost.time;
      plan.sent += cost.sent;
      const std::int64_t padded = is_local(edge->step.kind) ? 0 : states_.padded_elements(at, *edge);
      const std::int64_t after = std::max(states_.local_elements(edge->target), padded);
      plan.peak = std::max(plan.peak, element_bytes_ * (states_.local_elements(at) + after));
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

  /// Dijkstra's algorithm; false if it gave up.
  bool find() {
    std::set<std::pair<Label, State>> queue;
    std::set<State> settled;
    const Label start{bound_, 0, 0, 0};
    queue.insert({start, source_});
    arrived_[source_] = {source_, {}, start};
    while (!queue.empty() && settled.size() < kMostSettledUneven) {
      const auto [label, state] = *queue.begin();
      queue.erase(queue.begin());
      settled.insert(state);
      if (state == target_) return true;
      const Label here = label;
      const State& from = state;
      const auto relax = [&, &at = from](Edge edge) {
        const StepCost cost = states_.cost_of(at, edge);
        const Label next = here.then(cost, states_.local_elements(edge.target));
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
      states_.leave(from, &target_, relax);
    }
    return false;
  }

  const TensorLayout& from_;
  const TensorLayout& to_;
  const Shape& shape_;
  Bytes element_bytes_;
  UnevenStates states_;
  State source_;
  State target_;
  std::int64_t bound_ = 0;
  std::map<State, Arrival> arrived_;
};

}  // namespace

Redistribution uneven_redistribution(const TensorLayout& from, const TensorLayout& to, const Shape& shape,
                                     Bytes element_bytes, const DeviceMesh& mesh, const CollectiveCosts& costs,
                                     bool bounded_memory, const std::vector<AxisRef>& pieces) {
  return Search(from, to, shape, element_bytes, mesh, costs, bounded_memory, pieces).run();
}

}  // namespace shardplan
