#include "report/plan/layout_reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph/tensor_versions.h"
#include "strategies/strategy.h"

// The modes derive layouts from these keys (planner/problem/mode_strategies.h). Which key applied is inferred from the
// plan: a weight stored otherwise than its forward pass reads it, a sum of gradients that is sharded or partial, an
// update that is sharded further than the forward pass reads the weight.

namespace shardplan {
namespace {

std::int64_t pieces_of(const TensorLayout& layout) {
  std::int64_t pieces = 1;
  for (const DimensionLayout& dimension : layout.dimensions) pieces *= dimension.num_pieces();
  return pieces;
}

std::string place_text(const SourcePlace& place) {
  return place.line > 0 ? fmt::format(" ({}:{}:{})", place.file, place.line, place.column) : "";
}

class LayoutReasons {
 public:
  LayoutReasons(const Plan& plan, OperatorId op)
      : plan_(plan), graph_(*plan.graph), id_(op), op_(graph_.operators()[op]), parallel_(plan.model->parallel) {}

  std::vector<std::string> run() {
    if (!op_.strategy->owner.empty()) {
      reasons_.push_back(op_.strategy->owner + place_text(op_.strategy->in_place));
      return reasons_;
    }
    if (op_.pass == Pass::kBackward) {
      for (std::size_t i = 0; i < op_.operands.size(); ++i) read_again(i);
    }
    const bool is_decided = id_.value() < plan_.is_by_mode.size() && plan_.is_by_mode[id_];
    const bool is_users = id_.value() < plan_.is_user_strategy.size() && plan_.is_user_strategy[id_];
    if (!is_decided && !is_users) return reasons_;
    if (op_.pass == Pass::kUpdate) {
      update();
    } else if (op_.parameter && graph_.operation(id_).type->accumulates) {
      sum();
    } else {
      for (std::size_t i = 0; i < op_.operands.size(); ++i) read(i);
    }
    return reasons_;
  }

 private:
  std::int64_t stage() const { return parallel_.zero ? parallel_.zero->value : 0; }
  std::string stage_text() const { return fmt::format("zero: {}{}", stage(), place_text(parallel_.zero->place)); }

  std::optional<TensorLayout> stored(TensorId tensor) const {
    for (const Binding& given : plan_.program.given) {
      if (given.tensor == tensor) return plan_.program.values[given.value].layout;
    }
    return std::nullopt;
  }

  /// The layout in which its first forward reader takes a parameter.
  std::optional<TensorLayout> as_read(TensorId parameter) const {
    for (const Reader& reader : graph_.tensor(parameter).readers) {
      if (graph_.operators()[reader.op].pass != Pass::kForward) continue;
      return operand_layout(graph_.operation(reader.op), plan_.strategies[reader.op], plan_.mesh, reader.operand);
    }
    return std::nullopt;
  }

  void update() {
    if (!op_.parameter || (stage() == 0 && !parallel_.enable_parallel_optimizer)) return;
    const GraphTensor& parameter = graph_.tensor(*op_.parameter);
    const TensorLayout own = operand_layout(graph_.operation(id_), plan_.strategies[id_], plan_.mesh, 0);
    const std::optional<TensorLayout> read = as_read(*op_.parameter);
    if (!read || pieces_of(own) <= pieces_of(*read)) return;
    const bool has_states = std::any_of(graph_.tensors().begin(), graph_.tensors().end(),
                                        [&](const GraphTensor& one) { return one.state_of == op_.parameter; });
    const std::string key = stage() > 0
                                ? stage_text()
                                : "enable_parallel_optimizer" + place_text(parallel_.enable_parallel_optimizer_place);
    reasons_.push_back(fmt::format("{} {} {} in {} pieces", key, has_states ? "keeps the states of" : "updates",
                                   parameter.name, pieces_of(own)));
  }

  void sum() {
    const std::string& name = graph_.tensor(*op_.parameter).name;
    const TensorLayout own = result_layout(graph_.operation(id_), plan_.strategies[id_], plan_.mesh, 0);
    const std::optional<TensorLayout> read = as_read(*op_.parameter);
    const bool is_in_pieces = own.partial.empty() && read && pieces_of(own) > pieces_of(*read);
    const bool is_whole = !own.partial.empty();
    if (!is_in_pieces && !is_whole) return;
    const std::string what =
        is_in_pieces ? fmt::format("sums the gradient of {} in {} pieces, with every micro-batch", name, pieces_of(own))
                     : fmt::format("sums the gradient of {} on each device, over the devices once a step", name);
    if (const auto& shards = parallel_.gradient_accumulation_shard) {
      reasons_.push_back(
          fmt::format("gradient_accumulation_shard: {}{} {}", shards->value, place_text(shards->place), what));
    } else if (parallel_.zero) {
      reasons_.push_back(stage_text() + " " + what);
    }
  }

  /// An activation with the user's `gather_again`.
  void read_again(std::size_t operand) {
    const GraphTensor& tensor = graph_.tensor(op_.operands[operand]);
    const bool is_said = std::any_of(tensor.readers.begin(), tensor.readers.end(), [&](const Reader& reader) {
      return graph_.operators()[reader.op].gather_again.has_value();
    });
    if (!is_said) return;  // avoids computing versions, which few operators need
    const TensorVersions versions = tensor_versions(graph_);
    std::optional<VersionId> id = versions.read[id_][operand];
    while (id && versions.all[*id].kind != TensorVersion::Kind::kKept) id = versions.all[*id].from;
    if (!id || versions.all[*id].keeping == TensorVersion::Keeping::kFree) return;
    const bool is_again = versions.all[*id].keeping == TensorVersion::Keeping::kAsProduced;
    const TensorLayout own = operand_layout(graph_.operation(id_), plan_.strategies[id_], plan_.mesh, operand);
    if (is_again && *plan_.versions[*id] == own) return;  // nothing to gather
    reasons_.push_back(is_again ? fmt::format("gather_again: true gathers {} again for the backward pass", tensor.name)
                                : fmt::format("gather_again: false keeps {} as the forward pass read it", tensor.name));
  }

  void read(std::size_t operand) {
    const TensorId id = op_.operands[operand];
    const GraphTensor& tensor = graph_.tensor(id);
    if (tensor.kind != TensorKind::kParameter) return;
    const std::optional<TensorLayout> held = stored(id);
    const TensorLayout own = operand_layout(graph_.operation(id_), plan_.strategies[id_], plan_.mesh, operand);
    if (!held || pieces_of(*held) <= pieces_of(own)) return;
    if (tensor.layout) {
      reasons_.push_back(fmt::format("{}: strategy{} stores it in {} pieces; this gathers it", tensor.name,
                                     place_text(tensor.layout->place), pieces_of(*held)));
    } else if (stage() == 3) {
      reasons_.push_back(
          fmt::format("{} stores {} in {} pieces; this gathers it", stage_text(), tensor.name, pieces_of(*held)));
    } else {
      return;
    }
    if (op_.pass != Pass::kBackward) return;
    reasons_.back() = fmt::format("reshard_after_forward: {} {}", parallel_.reshard_after_forward,
                                  parallel_.reshard_after_forward
                                      ? fmt::format("gathers {} again for the backward pass", tensor.name)
                                      : fmt::format("keeps {} as the forward pass gathered it", tensor.name));
  }

  const Plan& plan_;
  const OperatorGraph& graph_;
  OperatorId id_;
  const GraphOperator& op_;
  const ParallelOptions& parallel_;
  std::vector<std::string> reasons_;
};

}  // namespace

std::vector<std::string> layout_reasons(const Plan& plan, OperatorId op) {
  return plan.model ? LayoutReasons(plan, op).run() : std::vector<std::string>();
}

}  // namespace shardplan
