#include "simulator/local/local_executor.h"

#include "operators/families/communication.h"
#include "simulator/execute/reference.h"
#include "simulator/local/exchange.h"

namespace shardplan {

LocalExecutor::LocalExecutor(const LocalProgram& program, std::uint64_t seed, std::stop_token stop)
    : program_(program),
      seed_(seed),
      stop_(std::move(stop)),
      tensors_(program.graphs.size()),
      unread_(program.graphs.size()),
      stored_(program.graphs.size()) {}

void LocalExecutor::begin(std::size_t rank, std::uint64_t step, const Given& given) {
  const OperatorGraph& graph = *program_.graphs[rank];
  tensors_[rank] = IdVector<TensorId, TensorValues>(graph.tensors().size());
  unread_[rank] = IdVector<TensorId, std::size_t>(graph.tensors().size(), 0);
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    const bool is_kept = tensor.is_output || tensor.updates || tensor.gradient_of || graph.loss() == id;
    unread_[rank][id] = tensor.readers.size() + (is_kept ? 1 : 0);
    if (tensor.kind == TensorKind::kResult) continue;
    if (tensor.kind == TensorKind::kConstant) {
      tensors_[rank][id] = draw_tensor(graph, id, seed_, step);
    } else if (tensor.kind == TensorKind::kInput) {
      tensors_[rank][id] = given(static_cast<std::int64_t>(rank), id);
    } else {
      const auto [at, is_new] = stored_[rank].try_emplace(id);
      if (is_new) at->second = given(static_cast<std::int64_t>(rank), id);
      tensors_[rank][id] = at->second;
    }
  }
}

void LocalExecutor::run(std::uint64_t step, const Given& given) {
  for (std::size_t rank = 0; rank < program_.graphs.size(); ++rank) begin(rank, step, given);
  for (const LocalStep& next : program_.steps) {
    if (stop_.stop_requested()) throw Stopped();
    const auto rank = static_cast<std::size_t>(next[0].rank);
    const OperatorGraph& graph = *program_.graphs[rank];
    if (is_communication(*graph.operation(next[0].op).type)) {
      communicate(next);
    } else {
      run_on_one_device(graph, next[0].op, operator_seed(graph, next[0].op, seed_, step), tensors_[rank]);
    }
    for (const LocalOperator& at : next) free_operands(at);
  }
  for (std::size_t rank = 0; rank < program_.graphs.size(); ++rank) {
    const OperatorGraph& graph = *program_.graphs[rank];
    for (const TensorId id : graph.tensors().ids()) {
      if (graph.tensor(id).updates) stored_[rank][*graph.tensor(id).updates] = tensors_[rank][id];
    }
  }
}

void LocalExecutor::communicate(const LocalStep& step) {
  std::vector<ExchangeMember> members;
  for (const LocalOperator& at : step) {
    const auto rank = static_cast<std::size_t>(at.rank);
    const OperatorGraph& graph = *program_.graphs[rank];
    ExchangeMember member{&graph.operation(at.op), {}, {}};
    for (const TensorId operand : graph.operators()[at.op].operands) {
      member.operands.push_back(&tensors_[rank][operand]);
    }
    members.push_back(std::move(member));
  }
  const bool has_neighbours = members[0].operation->type->name.starts_with("NeighborExchange");
  run_exchange(members, has_neighbours ? neighbour_sends(program_, step) : std::vector<NeighbourSend>{});
  for (std::size_t i = 0; i < step.size(); ++i) {
    const auto rank = static_cast<std::size_t>(step[i].rank);
    const std::vector<TensorId>& results = program_.graphs[rank]->operators()[step[i].op].results;
    for (std::size_t k = 0; k < results.size(); ++k) tensors_[rank][results[k]] = std::move(members[i].results[k]);
  }
}

void LocalExecutor::free_operands(const LocalOperator& at) {
  const auto rank = static_cast<std::size_t>(at.rank);
  for (const TensorId operand : program_.graphs[rank]->operators()[at.op].operands) {
    if (--unread_[rank][operand] == 0) TensorValues().swap(tensors_[rank][operand]);
  }
}

}  // namespace shardplan
