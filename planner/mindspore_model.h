#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/mindspore/mindspore_operator.h"
#include "graph/operator_graph.h"
#include "solver/strategy_problem.h"
#include "strategies/user_strategy.h"

namespace shardplan {

/// MindSpore's weighted bytes are counted in units of 1 / kPartsOfWeightedByte, which makes them integers: its
/// factors are 400, 0.001 of 400, 1/2 and 1/8.
inline constexpr std::int64_t kPartsOfWeightedByte = 40;

/// A value of MindSpore's objective.
struct MindSporeValue {
  std::int64_t parts = 0;
  double weighted_bytes() const { return static_cast<double>(parts) / static_cast<double>(kPartsOfWeightedByte); }

  bool operator==(const MindSporeValue&) const = default;
};

/// How the inputs of the model are laid out in MindSpore.
enum class MindSporeDataset {
  kAsDecided,  // as the user pins them (full_batch, dataset_strategy), else sharded over the batch: MindSpore's default
  kFree,       // in any layout at no cost: versions of 2020, whose graphs do not contain the data set
};

/// A model's forward graph as MindSpore's search sees it (source: mindspore-ai, step_auto_parallel).
///
/// Only forward operators have strategies; the backward pass follows them, and a parameter's gradient is charged to
/// the operator that reads it. There is one edge from the operator that produces a tensor to each that reads it,
/// passing through reshapes, which have no strategy of their own; inputs come from the data set. All readers of a
/// shared parameter must shard it in the same way. Costs are weighted bytes, without seconds and topology. The memory
/// limit is omitted.
class MindSporeModel {
 public:
  /// `decided` are the user's strategies, which are binding. Throws InputError if MindSpore has no strategy for an
  /// operator, or not the user's. `graph`, `mesh` and `decided` must outlive the model.
  MindSporeModel(const OperatorGraph& graph, const DeviceMesh& mesh, const UserStrategies& decided,
                 MindSporeDataset dataset = MindSporeDataset::kAsDecided);

  /// The problem whose cheapest choice is MindSpore's plan, in parts of a weighted byte: `computation` is alpha times
  /// the computation, `communication` beta times the communication. It has no memory limit.
  const StrategyProblem& problem() const { return problem_; }
  /// The strategies of a choice, by operator; nothing for operators that MindSpore does not decide: reshapes, and
  /// everything outside the forward pass.
  IdVector<OperatorId, std::optional<Strategy>> strategies(const Choice& choice) const;

  /// The value of any strategies in this model; nothing if MindSpore has no such plan, with the first reason in `why`
  /// if given.
  std::optional<MindSporeValue> value(const IdVector<OperatorId, Strategy>& strategies,
                                      std::string* why = nullptr) const;

 private:
  /// A tensor that an operator produces or the data set delivers, with one of its readers.
  struct Link {
    std::optional<OperatorId> from;  // nothing: the data set
    std::size_t result = 0;
    TensorId tensor;  // as produced, before reshapes
    Reader to;
  };

  void find_links();
  void add_nodes(const UserStrategies& decided);
  void add_edges();
  MindSporeTensorLayout result_layout(OperatorId op, const Strategy& strategy, std::size_t result) const;
  MindSporeTensorLayout operand_layout(const Reader& reader, const Strategy& strategy) const;
  Cost operator_cost(OperatorId op, const Strategy& strategy) const;
  std::int64_t edge_cost(const MindSporeTensorLayout& from, const MindSporeTensorLayout& to, DataType dtype) const;
  const MindSporeTensorLayout& dataset_layout(TensorId input) const { return dataset_layouts_.at(input); }

  const OperatorGraph& graph_;
  const DeviceMesh& mesh_;
  MindSporeDataset dataset_;
  std::vector<Link> links_;
  std::vector<std::pair<Reader, Reader>> ties_;  // readers of one parameter
  std::map<TensorId, MindSporeTensorLayout> dataset_layouts_;
  StrategyProblem problem_;
  IdVector<OperatorId, std::optional<NodeId>> nodes_;
  IdVector<OperatorId, std::vector<Strategy>> candidates_;
};

}  // namespace shardplan
