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

OperatorSet OperatorSet::resized(std::size_t num_operators) const {
  OperatorSet result = *this;
  result.words_.resize((num_operators + 63) / 64, 0);
  return result;
}

Concurrency::Concurrency(const OperatorGraph& graph, const TensorVersions& versions, const ModelProblem& problem,
                         bool has_collective_matmul)
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
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    const Inside& in = inside(id);
    for (std::size_t result = 0; result < op.results.size(); ++result) {
      OperatorSet& set = before_[op.results[result]];
      if (in.is_whole_before[result] != 0) set.insert(id);
      for (std::size_t operand = 0; operand < op.operands.size(); ++operand) {
        if (in.leads[operand][result] != 0) set |= before_[op.operands[operand]];
      }
    }
  }
  for (std::size_t number = num_operators; number-- > 0;) {
    const OperatorId id(number);
    const GraphOperator& op = graph.operators()[id];
    for (std::size_t operand = 0; operand < op.operands.size(); ++operand) {
      add_behind({id, operand}, behind_[op.operands[operand]]);
    }
  }
}

Concurrency::Inside Concurrency::inside(const Operation& operation, const std::vector<Strategy>& candidates) {
  Inside result;
  const std::size_t operands = operation.operands.size();
  const std::size_t results = operation.results.size();
  result.is_whole_behind.assign(operands, 1);
  result.is_whole_before.assign(results, 1);
  result.leads.assign(operands, std::vector<char>(results, 1));
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
    const Phases phases = phases_of(operation, strategy);
    const std::vector<Operation> kernels = phase_operations(operation, phases);
    std::vector<std::size_t> producer(operands, kernels.size());  // by value
    for (std::size_t k = 0; k < kernels.size(); ++k) producer.insert(producer.end(), kernels[k].results.size(), k);
    // Which operands and which kernels each kernel needs.
    std::vector<std::vector<char>> needs(kernels.size(), std::vector<char>(operands + kernels.size(), 0));
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      needs[k][operands + k] = 1;
      for (const std::size_t value : phases.phases[k].inputs) {
        if (value < operands) {
          needs[k][value] = 1;
          continue;
        }
        const std::vector<char>& through = needs[producer[value]];
        for (std::size_t i = 0; i < through.size(); ++i) needs[k][i] |= through[i];
      }
    }
    for (std::size_t i = 0; i < operands; ++i) {
      const bool all = std::all_of(needs.begin(), needs.end(), [&](const auto& one) { return one[i] != 0; });
      if (!all) result.is_whole_behind[i] = 0;
    }
    for (std::size_t j = 0; j < results; ++j) {
      if (phases.results[j] < operands) {
        result.is_whole_before[j] = 0;
        for (std::size_t i = 0; i < operands; ++i) {
          if (i != phases.results[j]) result.leads[i][j] = 0;
        }
        continue;
      }
      const std::vector<char>& needed = needs[producer[phases.results[j]]];
      for (std::size_t i = 0; i < operands; ++i) {
        if (needed[i] == 0) result.leads[i][j] = 0;
      }
      const auto first = needed.begin() + static_cast<std::ptrdiff_t>(operands);
      if (std::find(first, needed.end(), 0) != needed.end()) result.is_whole_before[j] = 0;
    }
  }
  return result;
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
    // Statistics of one phase may be completed beside another phase, and halos be exchanged before any.
    for (std::size_t i = 0; i < op.operands.size() && in.exchanged.empty(); ++i) {
      if (in.is_whole_behind[i] != 0) place.before |= before_[op.operands[i]];
    }
    for (std::size_t j = 0; j < op.results.size(); ++j) {
      if (in.is_whole_before[j] != 0) place.behind |= behind_[op.results[j]];
    }
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
  return !waiting.meets(timed_);  // what takes no time is waited for by nobody
}

void Concurrency::add_behind(const Reader& reader, OperatorSet& set) const {
  const GraphOperator& op = graph_.operators()[reader.op];
  const Inside& in = inside(reader.op);
  if (in.is_whole_behind[reader.operand] != 0) set.insert(reader.op);
  for (std::size_t result = 0; result < op.results.size(); ++result) {
    if (in.leads[reader.operand][result] != 0) set |= behind_[op.results[result]];
  }
}

void Concurrency::add_behind_version(VersionId id, OperatorSet& set) const {
  for (const Reader& reader : versions_.all[id].readers) add_behind(reader, set);
  for (const VersionId next : versions_.all[id].next) {
    // What may share the memory of the stored version is then not made from this one.
    if (!versions_.all[next].stored) add_behind_version(next, set);
  }
}

}  // namespace shardplan
