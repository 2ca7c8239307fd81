#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/batch_factors.h"
#include "graph/tensor_versions.h"
#include "planner/problem/expert_factors.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// One setting for a whole model, as in Megatron-LM, torchtitan and DeepSpeed: axes over which all weights are
/// sharded, and axes that shard the sequence; the batch is sharded over all others.
struct GlobalDegrees {
  std::vector<AxisRef> tensor;
  std::vector<AxisRef> context;
  bool sequence = false;  // norms and the operators between them shard the sequence over the axes of `tensor`
  int zero = 0;           // over the other axes are sharded 1: states; 2: also summed gradients; 3: also stored weights
  bool may_keep = false;  // with ZeRO-3: gathered weights may be kept for the backward pass
  bool gathers_again = false;  // with `sequence`: the results of norms are kept sharded for the backward pass
  /// As engines that serve models store caches: each device those of its sequences, tokens of one in this many pieces
  /// over the axes of `tensor`, heads over the rest of these or not, features whole. 0: in any way.
  std::int64_t cache_tokens = 0;
  std::vector<AxisRef> experts = {};   // shard stacked weights by expert, and all that is computed by experts
  bool reduces_wide = false;           // gradients are reduced in the type of their sums, not in that of their products
  bool must_keep = false;              // with ZeRO-3: gathered weights are kept for the backward pass
  std::vector<AxisRef> replicas = {};  // of the other axes those over which ZeRO shards nothing (HSDP)
};

/// The number of pieces that two lists of disjoint axes have in common: the product of their common sub-axes.
std::int64_t common_pieces(const std::vector<AxisRef>& a, const std::vector<AxisRef>& b);

/// The strategies and layouts of plans with given degrees. On pcie=2, hccs=4 with `tensor` = hccs:
///
///   an operator with the batch      cuts it over pcie, and nothing else over pcie
///   a product or lookup of tokens   with a weight cuts the weight over hccs, by rows or columns
///   a norm, and sums before it      cut nothing over hccs, or with `sequence` the sequence; so do their gradients
///   what a norm gives               with `gathers_again` is so cut between forward and backward pass
///   a weight, stored                is cut over hccs, with ZeRO-3 over pcie too, also between forward and backward pass
///                                   unless `may_keep`; with `must_keep` it is whole there
///   its states                      are cut as the weight, from ZeRO-1 on over pcie too
///   its gradient's sum              over micro-batches: from ZeRO-2 on cut over pcie
///   its update                      without ZeRO does all on every device of pcie
///   a two-byte gradient             with `reduces_wide` is still partial over pcie when it becomes f32
///   over axes of `replicas`         no weight, state or sum is cut, whatever the stage of ZeRO
///   a cache                         with `cache_tokens` is cut over pcie by sequences, over hccs by tokens and heads
///
/// With `experts` = pcie (planner/problem/expert_factors.h) a product with a weight of each expert cuts these over pcie
/// instead of the batch, and stacked weights, their states and sums of gradients are cut so, too; anything else that
/// has experts cuts them or the batch. Over axes of `context` they are cut likewise instead of the sequence.
///
/// If no dimension allows the required number of equal pieces, any number of pieces is allowed. Everything else is
/// left open: which weights are sharded by rows, how heads are sharded, where redistributions are.
class DegreesKind {
 public:
  DegreesKind(const OperatorGraph& graph, const TensorVersions& versions, const DeviceMesh& mesh,
              GlobalDegrees degrees);

  bool allows(OperatorId op, const Strategy& strategy) const;
  /// True for all layouts of versions that the degrees do not constrain.
  bool allows(VersionId version, const TensorLayout& layout) const;
  /// Whether a product or lookup must be sharded this way; other operators are sharded if they can be.
  bool is_demanded(OperatorId op) const;
  /// The reason why no candidate of such an operator is allowed.
  std::string why_not(OperatorId op, const std::vector<Strategy>& candidates) const;
  /// Whether an operator is between the sharded products: norms, and additions before them.
  bool is_between(OperatorId op) const { return is_between_[op] != 0; }

 private:
  /// The number of pieces that axes make, by what the axes are for.
  struct Pieces {
    std::int64_t tensor = 1, context = 1, data = 1;
  };
  Pieces pieces(const std::vector<AxisRef>& axes) const;
  bool has_expert_weight(const GraphOperator& op) const;
  bool widens_gradient(const GraphOperator& op) const;
  bool is_widened_partial(const Strategy& strategy, TensorId parameter) const;
  bool is_cut_again(const GraphTensor& tensor) const;
  bool is_cut_as_served(const TensorLayout& layout, TensorId cache) const;
  bool is_cut_over_data(const TensorLayout& layout, TensorId parameter, bool by_zero) const;
  bool is_cut_by_experts(const TensorLayout& layout, const Shape& shape, std::size_t dimension, bool by_zero) const;
  void find_between();

  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  const DeviceMesh& mesh_;
  GlobalDegrees degrees_;
  std::int64_t tensor_ = 1, context_ = 1, data_ = 1;
  Pieces expert_;  // of `experts`
  std::int64_t batch_size_ = 1;
  BatchFactors batch_;
  IdVector<OperatorId, char> is_between_;
  IdVector<TensorId, char> is_cut_weight_;
  ExpertFactors experts_;  // empty without `experts`
};

/// `restrictions`, limited to those candidates of `free` (the unrestricted problem) that plans of these degrees have.
/// Nothing, with the reason in `why`, if some product or tensor cannot be sharded that way. `free` also contains
/// strategies with repeated work.
std::optional<Restrictions> with_degrees(Restrictions restrictions, const GlobalDegrees& degrees,
                                         const ModelProblem& free, const OperatorGraph& graph,
                                         const TensorVersions& versions, const DeviceMesh& mesh, std::string* why);

}  // namespace shardplan
