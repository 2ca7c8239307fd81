// `before` of a tensor are the operators it depends on, `behind` those that depend on it: one pass over the graph in
// order and one in reverse. Between the phases of an operator, values are looked up one by one: the collective that
// completes one of them overlaps with the phases that it does not depend on and that do not depend on it.
#include "planner/overlap/concurrency.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "operators/phases.h"
#include "program/collective_matmul.h"

namespace shardplan {

OperatorSet& OperatorSet::operator|=(const OperatorSet& other) {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  return *this;
}

OperatorSet& OperatorSet::operator&=(const OperatorSet& other) {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  return *this;
}

OperatorSet& OperatorSet::operator-=(const OperatorSet& other) {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
  return *this;
}

bool OperatorSet::meets(const OperatorSet& other) const {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if ((words_[i] & other.words_[i]) != 0) return true;
  }
  return false;
}

// A version is made from the previous one, at the time it is read; one that may share the stored version's memory is
// then not.
std::vector<VersionId> made_from(const TensorVersions& versions, const ModelProblem::Communicated& made) {
  std::vector<VersionId> result;
  std::optional<VersionId> from =
      made.version ? versions.all[*made.version].from : versions.read[made.reader.op][made.reader.operand];
  for (; from; from = versions.all[*from].from) {
    result.push_back(*from);
    if (versions.all[*from].stored) break;
  }
  return result;
}

OperatorSet OperatorSet::resized(std::size_t num_operators) const {
  OperatorSet result = *this;
  result.words_.resize((num_operators + 63) / 64, 0);
  return result;
}

Concurrency::Concurrency(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem,
                         bool has_collective_matmul, bool delays_copies)
    : graph_(graph), versions_(versions), has_collective_matmul_(has_collective_matmul) {
  const std::size_t num_operators = graph.operators().size();
  all_ = loop_ = timed_ = OperatorSet(num_operators);
  using List = const std::vector<Strategy>*;
  std::map<OperationId, std::vector<std::pair<List, std::shared_ptr<const Inside>>>> known;
  for (const OperatorId op : graph.operators().ids()) {
    all_.insert(op);
    if (graph.is_in_micro_batch(op)) loop_.insert(op);
    const std::vector<Cost>& costs = problem.problem.strategy_tables[problem.operator_tables[op]].costs;
    if (std::all_of(costs.begin(), costs.end(), [](const Cost& cost) { return cost.computation > 0; }))
      timed_.insert(op);
    auto& alike = known[graph.operators()[op].operation];
    const List candidates = problem.strategies[op].get();
    auto found = std::find_if(alike.begin(), alike.end(), [&](const auto& one) { return one.first == candidates; });
    if (found == alike.end()) {
      alike.emplace_back(candidates, std::make_shared<const Inside>(inside(graph.operation(op), *candidates)));
      found = alike.end() - 1;
    }
    inside_.push_back(found->second);
  }
  before_.resize(graph.tensors().size(), OperatorSet(num_operators));
  behind_.resize(graph.tensors().size(), OperatorSet(num_operators));
  find_before();
  if (delays_copies) delay_copies();
  if (!product_before_.empty()) find_before();
  for (std::size_t number = num_operators; number-- > 0;) {
    const OperatorId id(number);
    const GraphOperator& op = graph.operators()[id];
    for (std::size_t operand = 0; operand < op.operands.size(); ++operand) {
      add_behind({id, operand}, behind_[op.operands[operand]]);
    }
  }
}

void Concurrency::find_before() {
  for (const OperatorId id : graph_.operators().ids()) {
    const GraphOperator& op = graph_.operators()[id];
    const Inside& in = inside(id);
    const auto product = product_before_.find(id);
    for (std::size_t result = 0; result < op.results.size(); ++result) {
      OperatorSet& set = before_[op.results[result]];
      if (in.is_whole_before[result] != 0) set.insert(id);
      for (std::size_t operand = 0; operand < op.operands.size(); ++operand) {
        if (in.leads[operand][result] != 0) set |= before_[op.operands[operand]];
      }
      if (product != product_before_.end()) set |= before_[graph_.operators()[product->second].results[0]];
    }
  }
}

// Blocks as in list scheduling (ListScheduling::delay_copies): copies, then the first kernel that reads one of them.
// If this may be another kernel under some strategies, nothing is known.
void Concurrency::delay_copies() {
  std::vector<OperatorId> copies;
  std::optional<OperatorId> of_block_before;
  bool is_first = true, is_read = false;
  for (const OperatorId id : graph_.operators().ids()) {
    const GraphOperator& op = graph_.operators()[id];
    const bool reads_copy = std::any_of(op.operands.begin(), op.operands.end(), [&](TensorId operand) {
      const auto producer = graph_.tensor(operand).producer;
      return producer && graph_.operators()[*producer].is_copy;
    });
    if (op.is_copy) {
      if (!reads_copy && std::exchange(is_read, false)) copies.clear();
      copies.push_back(id);
      continue;
    }
    if (!reads_copy || std::exchange(is_read, true)) continue;
    const std::optional<OperatorId> own = last_product_before(id);
    const std::optional<OperatorId> product = is_first ? own : of_block_before;
    of_block_before = own;
    is_first = false;
    // The block may be recomputed in time, or one block ahead.
    const bool is_known = own && product && *product < copies.front() &&
                          (product == own || before_[graph_.operators()[*own].results[0]].contains(*product));
    if (!is_known) continue;
    for (const OperatorId copy : copies) product_before_.emplace(copy, *product);
    std::vector<OperatorId>& behind = copies_behind_[*product];
    behind.insert(behind.end(), copies.begin(), copies.end());
  }
}

/// The last product that the gradient depends on and that `reader` reads together with a copy.
std::optional<OperatorId> Concurrency::last_product_before(OperatorId reader) const {
  if (inside(reader).has_phases || !timed_.contains(reader)) return std::nullopt;
  std::optional<OperatorId> last;
  for (const TensorId operand : graph_.operators()[reader].operands) {
    const auto producer = graph_.tensor(operand).producer;
    if (!producer || !timed_.contains(*producer)) continue;
    const GraphOperator& made_by = graph_.operators()[*producer];
    if (made_by.is_copy || made_by.pass != Pass::kBackward) continue;
    before_[operand].for_each([&](OperatorId op) {
      if (is_product(graph_.operation(op)) && (!last || *last < op)) last = op;
    });
  }
  return last;
}

Concurrency::Inside Concurrency::inside(const Operation& operation, const std::vector<Strategy>& candidates) {
  Inside result;
  const std::size_t operands = operation.operands.size();
  const std::size_t results = operation.results.size();
  result.is_whole_behind.assign(operands, 1);
  result.is_whole_before.assign(results, 1);
  result.leads.assign(operands, std::vector<char>(results, 1));
  result.is_before_own.assign(operands, 1);
  result.is_behind_own.assign(results, 1);
  for (std::size_t i = 0; i < operands; ++i) {
    const TensorWalk& walk = operation.rule.operands[i];
    if (std::any_of(walk.begin(), walk.end(), [](const DimensionWalk& d) { return d.window.has_value(); })) {
      result.exchanged.push_back(i);
    }
  }
  if (operation.type->phases == nullptr) return result;
  std::set<std::vector<std::int64_t>> seen;
  for (const Strategy& strategy : candidates) {
    if (!runs_in_phases(operation, strategy)) continue;
    std::vector<std::int64_t> pieces;
    for (const std::vector<AxisRef>& axes : strategy.factors) pieces.push_back(num_pieces(axes));
    if (!seen.insert(std::move(pieces)).second) continue;
    result.has_phases = true;
    add_phases(operation, strategy, result);
  }
  return result;
}

namespace {

/// The dependencies of an operator's phases, by kernel and value (as in `Phase::inputs`).
struct PhaseNeeds {
  PhaseNeeds(const Operation& operation, const Strategy& strategy)
      : phases(phases_of(operation, strategy)),
        kernels(phase_operations(operation, phases)),
        producer(operation.operands.size(), kernels.size()) {
    for (std::size_t k = 0; k < kernels.size(); ++k) producer.insert(producer.end(), kernels[k].results.size(), k);
    is_read.assign(producer.size(), 0);
    needs.assign(kernels.size(), std::vector<char>(producer.size(), 0));
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      for (const std::size_t value : phases.phases[k].inputs) {
        is_read[value] = needs[k][value] = 1;
        if (!is_made(value)) continue;
        const std::vector<char>& through = needs[producer[value]];
        for (std::size_t i = 0; i < through.size(); ++i) needs[k][i] |= through[i];
      }
    }
  }

  bool is_made(std::size_t value) const { return producer[value] < kernels.size(); }
  bool needs_kernel(std::size_t kernel, std::size_t other) const {
    for (std::size_t value = 0; value < producer.size(); ++value) {
      if (producer[value] == other && needs[kernel][value] != 0) return true;
    }
    return kernel == other;
  }

  /// The values that may be partial and are then completed: those read by later phases, and the operator's complete
  /// results.
  std::vector<std::size_t> completed(const Operation& operation, const Strategy& strategy) const {
    std::vector<std::size_t> result;
    for (std::size_t value = 0; value < producer.size(); ++value) {
      if (!is_made(value)) continue;
      const std::vector<Factor>& factors = kernels[producer[value]].rule.factors;
      const bool is_completed = std::any_of(factors.begin(), factors.end(), [&](const Factor& factor) {
        if (factor.kind != FactorKind::kReduction) return false;
        const std::optional<std::uint32_t> outer = operation.rule.find(factor.name);
        if (!outer || strategy.factors[*outer].empty()) return false;
        return is_read[value] != 0 || operation.rule.factors[*outer].kind != FactorKind::kReduction;
      });
      if (is_completed) result.push_back(value);
    }
    return result;
  }

  Phases phases;
  std::vector<Operation> kernels;
  std::vector<std::size_t> producer;  // by value; none for operands
  std::vector<char> is_read;          // by value
  std::vector<std::vector<char>> needs;
};

}  // namespace

void Concurrency::add_phases(const Operation& operation, const Strategy& strategy, Inside& inside) {
  const PhaseNeeds phases(operation, strategy);
  const std::size_t num_kernels = phases.kernels.size();
  const std::size_t operands = operation.operands.size();
  const std::vector<std::size_t> completed = phases.completed(operation, strategy);
  for (std::size_t i = 0; i < operands; ++i) {
    for (std::size_t k = 0; k < num_kernels; ++k) {
      if (phases.needs[k][i] == 0) inside.is_whole_behind[i] = 0;
    }
    for (const std::size_t value : completed) {
      if (phases.needs[phases.producer[value]][i] == 0) inside.is_before_own[i] = 0;
    }
  }
  for (std::size_t j = 0; j < operation.results.size(); ++j) {
    const std::size_t result = phases.phases.results[j];
    if (result < operands) {
      inside.is_whole_before[j] = inside.is_behind_own[j] = 0;
      for (std::size_t i = 0; i < operands; ++i) {
        if (i != result) inside.leads[i][j] = 0;
      }
      continue;
    }
    const std::size_t maker = phases.producer[result];
    for (std::size_t i = 0; i < operands; ++i) {
      if (phases.needs[maker][i] == 0) inside.leads[i][j] = 0;
    }
    for (std::size_t k = 0; k < num_kernels; ++k) {
      if (!phases.needs_kernel(maker, k)) inside.is_whole_before[j] = 0;
    }
    for (const std::size_t value : completed) {
      if (value != result && phases.needs[maker][value] == 0) inside.is_behind_own[j] = 0;
    }
  }
  for (const std::size_t value : completed) {
    for (std::size_t k = 0; k < num_kernels; ++k) {
      if (phases.needs[k][value] == 0 && !phases.needs_kernel(phases.producer[value], k))
        inside.is_own_in_chain = false;
    }
  }
}

Concurrency::Place Concurrency::of_version(VersionId id) const {
  const TensorVersion& version = versions_.all[id];
  Place place{before_[version.tensor], OperatorSet(graph_.operators().size()), version.is_in_micro_batch};
  add_behind_version(id, place.behind);
  let_products_run_beside(version.tensor, place);
  return place;
}

Concurrency::Place Concurrency::of_operand(const Reader& reader) const {
  const TensorId tensor = graph_.operators()[reader.op].operands[reader.operand];
  Place place{before_[tensor], OperatorSet(graph_.operators().size()), graph_.is_in_micro_batch(reader.op)};
  add_behind(reader, place.behind);
  let_products_run_beside(tensor, place);
  return place;
}

Concurrency::Place Concurrency::of_own(OperatorId id) const {
  const GraphOperator& op = graph_.operators()[id];
  const Inside& in = inside(id);
  const std::size_t num_operators = graph_.operators().size();
  Place place{OperatorSet(num_operators), OperatorSet(num_operators), graph_.is_in_micro_batch(id)};
  if (in.has_phases) {
    // Halos may be exchanged before any phase.
    const bool is_completed_alone = in.exchanged.empty();
    for (std::size_t i = 0; i < op.operands.size() && is_completed_alone; ++i) {
      if (in.is_before_own[i] != 0) place.before |= before_[op.operands[i]];
    }
    const std::vector<char>& is_behind = is_completed_alone ? in.is_behind_own : in.is_whole_before;
    for (std::size_t j = 0; j < op.results.size(); ++j) {
      if (is_behind[j] != 0) place.behind |= behind_[op.results[j]];
    }
    if (is_completed_alone && in.is_own_in_chain) place.behind.insert(id);
  } else if (!in.exchanged.empty()) {
    place.before = before_[op.operands[in.exchanged.front()]];
    for (const std::size_t i : in.exchanged) place.before &= before_[op.operands[i]];
    place.behind.insert(id);
    for (const TensorId result : op.results) place.behind |= behind_[result];
  }
  return place;
}

void Concurrency::let_products_run_beside(TensorId id, Place& place) const {
  if (!has_collective_matmul_ || !is_activation(graph_, id)) return;
  const GraphTensor& tensor = graph_.tensor(id);
  if (is_product(graph_.operation(*tensor.producer))) place.before.erase(*tensor.producer);
  for (const Reader& reader : tensor.readers) {
    if (is_product(graph_.operation(reader.op))) place.behind.erase(reader.op);
  }
}

OperatorSet Concurrency::beside(const Place& place) const {
  OperatorSet result = place.is_in_loop ? loop_ : all_;
  result -= place.before;
  result -= place.behind;
  return result;
}

bool Concurrency::outlives_run(const Place& place) const {
  if (!place.is_in_loop) return false;
  OperatorSet waiting = place.behind;
  waiting &= loop_;
  return !waiting.meets(timed_);  // nothing waits for operators that take no time
}

void Concurrency::add_behind(const Reader& reader, OperatorSet& set) const {
  const GraphOperator& op = graph_.operators()[reader.op];
  const Inside& in = inside(reader.op);
  if (in.is_whole_behind[reader.operand] != 0) set.insert(reader.op);
  if (const auto found = copies_behind_.find(reader.op); found != copies_behind_.end()) {
    for (const OperatorId copy : found->second) {
      set.insert(copy);
      for (const TensorId result : graph_.operators()[copy].results) set |= behind_[result];
    }
  }
  for (std::size_t result = 0; result < op.results.size(); ++result) {
    if (in.leads[reader.operand][result] != 0) set |= behind_[op.results[result]];
  }
}

void Concurrency::add_behind_version(VersionId id, OperatorSet& set) const {
  for (const Reader& reader : versions_.all[id].readers) add_behind(reader, set);
  for (const VersionId next : versions_.all[id].next) {
    // A version that may share the stored version's memory is then not made from this one.
    if (!versions_.all[next].stored) add_behind_version(next, set);
  }
}

}  // namespace shardplan
