#include "graph/inserted_casts.h"

#include <fmt/format.h>

#include "operators/catalogue.h"

namespace shardplan {

std::optional<StrategyEntry> InsertedCasts::layout_of(OperatorId reader, std::size_t operand) const {
  const std::vector<StrategyEntry>& given = graph_.operators()[reader].strategy->in;
  if (operand >= given.size() || given[operand].kind == StrategyEntry::Kind::kFollow) return std::nullopt;
  return given[operand];
}

TensorId InsertedCasts::cast(TensorId tensor, DataType to, OperatorId reader,
                             const std::optional<StrategyEntry>& layout) {
  const auto known = casts_.find({tensor, to});
  if (known != casts_.end()) return known->second;
  const GraphOperator& read_by = graph_.operators()[reader];
  GraphOperator op = read_by;
  op.name = free_name(fmt::format("{}.{}", builder_.tensor(tensor).name, to_string(to)));
  op.operands = {tensor};
  op.results = {};
  op.border_of = {};
  op.is_inserted = true;
  op.strategy = {};
  if (read_by.recompute_scope == read_by.name) op.recompute_scope = op.name;
  if (layout) {
    op.strategy.edit().in = {*layout};
    op.strategy.edit().in_place = read_by.strategy->in_place;
    op.strategy.edit().owner = read_by.strategy->owner;
  }
  Operation operation = make_operation(*find_operator_type("Cast"), {{"dtype", std::string(to_string(to))}},
                                       {builder_.tensor(tensor).type});
  const OperatorId id = builder_.add_operator(std::move(op), std::move(operation));
  builder_.place_before(id, reader);
  return casts_[{tensor, to}] = builder_.op(id).results[0];
}

void InsertedCasts::retype(OperatorId cast) {
  const GraphOperator& op = graph_.operators()[cast];
  const std::string to(to_string(graph_.tensor(op.results[0]).type.dtype));
  Operation operation =
      make_operation(*find_operator_type("Cast"), {{"dtype", to}}, {builder_.tensor(op.operands[0]).type});
  builder_.op(cast).operation = builder_.intern(std::move(operation));
}

std::string InsertedCasts::free_name(const std::string& wanted) const {
  std::string name = wanted;
  for (int i = 1; graph_.find_operator(name) || graph_.find_tensor(name); ++i) {
    name = fmt::format("{}_{}", wanted, i);
  }
  return name;
}

}  // namespace shardplan
