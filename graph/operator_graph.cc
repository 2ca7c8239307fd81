#include "graph/operator_graph.h"

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>
#include <functional>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

// The builder takes operators in any order and interns their operations by hash, so that the copies of a layer share
// one. `build` sorts once (Kahn's algorithm with a priority queue: among ready operators the one that was added first),
// names the operators of a cycle if there is one, renumbers, and fills readers and name tables.

namespace shardplan {
namespace {

using DependencyGraph = boost::compressed_sparse_row_graph<boost::directedS>;

void combine(std::size_t& hash, std::size_t value) { hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2); }

std::size_t hash_of(const Attribute& attribute) {
  std::size_t hash = attribute.index();
  std::visit(
      [&](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
          for (const std::int64_t item : value) combine(hash, std::hash<std::int64_t>()(item));
        } else {
          combine(hash, std::hash<Value>()(value));
        }
      },
      attribute);
  return hash;
}

/// Depends on what makes two operations equal: type, attributes and operands.
std::size_t hash_of(const Operation& operation) {
  std::size_t hash = std::hash<const void*>()(operation.type);
  for (const auto& [name, value] : operation.attributes) {
    combine(hash, std::hash<std::string>()(name));
    combine(hash, hash_of(value));
  }
  for (const TensorType& type : operation.operands) {
    combine(hash, static_cast<std::size_t>(type.dtype));
    for (const std::int64_t extent : type.shape) combine(hash, std::hash<std::int64_t>()(extent));
  }
  return hash;
}

bool is_same(const Operation& a, const Operation& b) {
  return a.type == b.type && a.operands == b.operands && a.attributes == b.attributes;
}

/// The name at a position of a list of operators or tensors.
template <class List>
auto name_in(const List& list) {
  return
      [begin = list.begin()](std::size_t i) -> std::string_view { return begin[static_cast<std::ptrdiff_t>(i)].name; };
}

/// The operators of one cycle, in the order of addition.
std::vector<std::size_t> find_cycle(const DependencyGraph& graph) {
  std::vector<std::size_t> component(num_vertices(graph));
  const std::size_t count = boost::strong_components(
      graph, boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, graph)));
  std::vector<std::size_t> sizes(count);
  for (const std::size_t c : component) ++sizes[c];
  for (std::size_t v = 0; v < component.size(); ++v) {
    const bool reads_itself = edge(v, v, graph).second;
    if (sizes[component[v]] < 2 && !reads_itself) continue;
    std::vector<std::size_t> members;
    for (std::size_t w = v; w < component.size(); ++w) {
      if (component[w] == component[v]) members.push_back(w);
    }
    return members;
  }
  return {};
}

}  // namespace

std::optional<OperatorId> OperatorGraph::find_operator(std::string_view name) const {
  const auto found = operator_names_.find(name, name_in(operators_));
  return found ? std::optional(OperatorId(*found)) : std::nullopt;
}

std::optional<TensorId> OperatorGraph::find_tensor(std::string_view name) const {
  if (const auto found = tensor_names_.find(name, name_in(tensors_))) return TensorId(*found);
  const auto alias = aliases_.find(name);
  return alias == aliases_.end() ? std::nullopt : std::optional(alias->second);
}

struct OperatorGraphBuilder::State {
  OperatorGraph graph;
  std::unordered_multimap<std::size_t, OperationId> operation_by_hash;
  std::unordered_map<std::size_t, std::size_t> anchors;  // by operator: the one it is placed just before
};

OperatorGraphBuilder::OperatorGraphBuilder(std::string name) : state_(std::make_unique<State>()) {
  state_->graph.name_ = std::move(name);
}
OperatorGraphBuilder::~OperatorGraphBuilder() = default;
OperatorGraphBuilder::OperatorGraphBuilder(OperatorGraphBuilder&&) noexcept = default;
OperatorGraphBuilder& OperatorGraphBuilder::operator=(OperatorGraphBuilder&&) noexcept = default;

OperatorGraphBuilder::OperatorGraphBuilder(OperatorGraph graph) : state_(std::make_unique<State>()) {
  state_->graph = std::move(graph);
  for (const OperationId id : state_->graph.operations_.ids()) {
    state_->operation_by_hash.emplace(hash_of(state_->graph.operations_[id]), id);
  }
}

TensorId OperatorGraphBuilder::add_tensor(GraphTensor tensor) {
  return state_->graph.tensors_.push_back(std::move(tensor));
}

OperationId OperatorGraphBuilder::intern(Operation operation) {
  OperatorGraph& graph = state_->graph;
  const std::size_t hash = hash_of(operation);
  const auto [begin, end] = state_->operation_by_hash.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    if (is_same(graph.operations_[at->second], operation)) return at->second;
  }
  const OperationId id = graph.operations_.push_back(std::move(operation));
  state_->operation_by_hash.emplace(hash, id);
  return id;
}

OperatorId OperatorGraphBuilder::add_operator(GraphOperator op, std::vector<std::string> result_names) {
  OperatorGraph& graph = state_->graph;
  const Operation& operation = graph.operations_[op.operation];
  SHARDPLAN_CHECK(op.operands.size() == operation.operands.size());
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    SHARDPLAN_CHECK(graph.tensors_[op.operands[i]].type == operation.operands[i]);
  }
  if (result_names.empty() && operation.results.size() == 1) result_names.push_back(op.name);
  SHARDPLAN_CHECK(result_names.size() == operation.results.size());
  const OperatorId id(graph.operators_.size());
  op.results.clear();
  for (std::size_t i = 0; i < result_names.size(); ++i) {
    GraphTensor result;
    // Most operators have one result with their own name; both then share one text.
    result.name = op.name == result_names[i] ? op.name : SharedText(std::move(result_names[i]));
    result.type = operation.results[i];
    result.producer = id;
    result.result = static_cast<std::uint32_t>(i);
    result.place = op.place;
    op.results.push_back(add_tensor(std::move(result)));
  }
  return graph.operators_.push_back(std::move(op));
}

OperatorId OperatorGraphBuilder::add_operator(GraphOperator op, Operation operation,
                                              std::vector<std::string> result_names) {
  op.operation = intern(std::move(operation));
  return add_operator(std::move(op), std::move(result_names));
}

GraphTensor& OperatorGraphBuilder::tensor(TensorId id) { return state_->graph.tensors_[id]; }
GraphOperator& OperatorGraphBuilder::op(OperatorId id) { return state_->graph.operators_[id]; }
const Operation& OperatorGraphBuilder::operation(OperatorId id) const { return state_->graph.operation(id); }
const Operation& OperatorGraphBuilder::operation(OperationId id) const { return state_->graph.operations_[id]; }
std::size_t OperatorGraphBuilder::num_tensors() const { return state_->graph.tensors_.size(); }
std::size_t OperatorGraphBuilder::num_operators() const { return state_->graph.operators_.size(); }
void OperatorGraphBuilder::place_before(OperatorId op, OperatorId anchor) {
  state_->anchors[op.value()] = anchor.value();
}
void OperatorGraphBuilder::remove(const IdVector<OperatorId, char>& is_removed) {
  OperatorGraph& graph = state_->graph;
  SHARDPLAN_CHECK(state_->anchors.empty());
  std::vector<char> is_read(graph.tensors_.size(), 0);
  std::vector<OperatorId> new_operator(graph.operators_.size(), OperatorId(0));
  IdVector<OperatorId, GraphOperator> operators;
  for (const OperatorId id : graph.operators_.ids()) {
    if (is_removed[id] != 0) continue;
    for (const TensorId operand : graph.operators_[id].operands) is_read[operand.value()] = 1;
    new_operator[id.value()] = operators.push_back(std::move(graph.operators_[id]));
  }
  std::vector<std::optional<TensorId>> new_tensor(graph.tensors_.size());
  IdVector<TensorId, GraphTensor> tensors;
  for (const TensorId id : graph.tensors_.ids()) {
    GraphTensor& tensor = graph.tensors_[id];
    const bool is_unread_constant =
        tensor.kind == TensorKind::kConstant && is_read[id.value()] == 0 && !tensor.is_output;
    if (is_unread_constant || (tensor.producer && is_removed[*tensor.producer] != 0)) continue;
    if (tensor.producer) tensor.producer = new_operator[tensor.producer->value()];
    new_tensor[id.value()] = tensors.push_back(std::move(tensor));
  }
  const auto renumber = [&](auto& id) {
    if (id) id = new_tensor[id->value()];
  };
  for (GraphTensor& tensor : tensors) {
    renumber(tensor.state_of);
    renumber(tensor.gradient_of);
    renumber(tensor.updates);
  }
  for (GraphOperator& op : operators) {
    if (op.forward) op.forward = new_operator[op.forward->value()];
    renumber(op.parameter);
    for (TensorId& id : op.operands) id = new_tensor[id.value()].value();
    for (TensorId& id : op.results) id = new_tensor[id.value()].value();
  }
  renumber(graph.loss_);
  std::erase_if(graph.aliases_, [&](const auto& entry) { return !new_tensor[entry.second.value()]; });
  for (auto& [name, id] : graph.aliases_) id = *new_tensor[id.value()];
  graph.operators_ = std::move(operators);
  graph.tensors_ = std::move(tensors);
}

void OperatorGraphBuilder::set_loss(TensorId loss) { state_->graph.loss_ = loss; }
void OperatorGraphBuilder::add_alias(std::string name, TensorId tensor) {
  state_->graph.aliases_.emplace(std::move(name), tensor);
}
void OperatorGraphBuilder::set_training(std::int64_t micro_batches) {
  state_->graph.is_training_ = true;
  state_->graph.micro_batches_ = micro_batches;
}
void OperatorGraphBuilder::own(std::shared_ptr<const OperatorType> type) {
  state_->graph.own_types_.push_back(std::move(type));
}

OperatorGraph OperatorGraphBuilder::build() {
  OperatorGraph graph = std::move(state_->graph);
  const auto anchors = std::move(state_->anchors);
  state_.reset();
  const std::size_t num_operators = graph.operators_.size();

  std::vector<std::pair<std::size_t, std::size_t>> edges;  // from producer to reader
  std::vector<std::size_t> num_missing(num_operators);
  for (const OperatorId id : graph.operators_.ids()) {
    for (const TensorId operand : graph.operators_[id].operands) {
      const std::optional<OperatorId> producer = graph.tensors_[operand].producer;
      if (!producer) continue;
      edges.emplace_back(producer->value(), id.value());
      ++num_missing[id.value()];
    }
  }
  const DependencyGraph dependencies(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), num_operators);

  // Kahn's algorithm; of the ready operators, the one that was added first comes first.
  using Turn = std::tuple<std::size_t, bool, std::size_t>;  // anchored ones come before their anchor
  const auto turn_of = [&](std::size_t v) {
    const auto anchor = anchors.find(v);
    return anchor == anchors.end() ? Turn(v, true, v) : Turn(anchor->second, false, v);
  };
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> ready;
  for (std::size_t v = 0; v < num_operators; ++v) {
    if (num_missing[v] == 0) ready.push(turn_of(v));
  }
  std::vector<std::size_t> order;
  order.reserve(num_operators);
  while (!ready.empty()) {
    const std::size_t v = std::get<2>(ready.top());
    ready.pop();
    order.push_back(v);
    for (auto [out, end] = out_edges(v, dependencies); out != end; ++out) {
      const std::size_t reader = target(*out, dependencies);
      if (--num_missing[reader] == 0) ready.push(turn_of(reader));
    }
  }
  if (order.size() < num_operators) {
    const std::vector<std::size_t> cycle = find_cycle(dependencies);
    std::string names;
    for (std::size_t i = 0; i < cycle.size() && i < 8; ++i) {
      names += (names.empty() ? "" : ", ") + graph.operators_[OperatorId(cycle[i])].name;
    }
    if (cycle.size() > 8) names += fmt::format(" and {} more", cycle.size() - 8);
    throw InputError(graph.operators_[OperatorId(cycle.front())].place,
                     "these operators wait for each other, no order is possible: {}", names);
  }

  std::vector<OperatorId> new_id(num_operators);
  IdVector<OperatorId, GraphOperator> sorted;
  sorted.reserve(num_operators);
  for (const std::size_t v : order) new_id[v] = sorted.push_back(std::move(graph.operators_[OperatorId(v)]));
  graph.operators_ = std::move(sorted);
  IdVector<TensorId, GraphTensor> tensors;  // without spare capacity
  tensors.reserve(graph.tensors_.size());
  for (GraphTensor& tensor : graph.tensors_) tensors.push_back(std::move(tensor));
  graph.tensors_ = std::move(tensors);

  for (GraphTensor& tensor : graph.tensors_) {
    tensor.readers.clear();
    if (tensor.producer) tensor.producer = new_id[tensor.producer->value()];
  }
  graph.operator_names_.clear();
  graph.operator_names_.reserve(graph.operators_.size());
  graph.tensor_names_.clear();
  graph.tensor_names_.reserve(graph.tensors_.size());
  for (const OperatorId id : graph.operators_.ids()) {
    GraphOperator& op = graph.operators_[id];
    if (op.forward) op.forward = new_id[op.forward->value()];
    for (std::size_t i = 0; i < op.operands.size(); ++i) graph.tensors_[op.operands[i]].readers.push_back({id, i});
    if (!graph.operator_names_.add(id.value(), name_in(graph.operators_))) {
      throw InputError(op.place, "two operators are called '{}'", op.name);
    }
  }
  for (const TensorId id : graph.tensors_.ids()) {
    if (!graph.tensor_names_.add(id.value(), name_in(graph.tensors_))) {
      throw InputError(graph.tensors_[id].place, "two tensors are called '{}'", graph.tensors_[id].name);
    }
  }
  return graph;
}

}  // namespace shardplan
