#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/tensor_versions.h"
#include "planner/problem/model_problem.h"

namespace shardplan {

/// One setting for a whole model, as Megatron-LM, torchtitan and DeepSpeed take it: axes over which all weights are cut, and
/// some that cut the sequence; the batch is cut over all others.
struct GlobalDegrees {
  std::vector<AxisRef> tensor;
  std::vector<AxisRef> context;
  bool sequence = false;  // norms and what stands between them cut the sequence over the axes of `tensor`
  int zero = 0;  // 1: states are cut over the others too; 2: summed gradients as well; 3: stored weights as well
  bool may_keep = false;       // with ZeRO-3: gathered weights may be kept for the backward pass
  bool gathers_again = false;  // with `sequence`: what norms give is kept so cut for the backward pass
};

/// The parameter of two dimensions or more that an operand is, perhaps through a cast; null if it is none.
const GraphTensor* weight_of(const OperatorGraph& graph, TensorId operand);

/// Which strategies and layouts the plans of given degrees have. On pcie=2, hccs=4 with `tensor` hccs:
///
///   an operator with the batch      cuts it over pcie, and nothing else over pcie
///   a product or lookup of tokens   with a weight cuts the weight over hccs, by rows or columns
///   a norm, and sums before it      cut nothing over hccs, or with `sequence` the sequence; so do their gradients
///   what a norm gives               with `gathers_again` is so cut between forward and backward pass
///   a weight, stored                is cut over hccs, with ZeRO-3 over pcie too, also between forward and backward pass
///                                   unless `may_keep`
///   its states                      are cut as the weight, from ZeRO-1 on over pcie too
///   its gradient's sum              over micro-batches: from ZeRO-2 on cut over pcie
///   its update                      without ZeRO does all on every device of pcie
///
/// What no dimension lets cut in equal pieces may be cut in any number of them. All else is left open: which weight is cut by
/// rows, how heads are cut, where redistributions stand.
class DegreesKind {
 public:
  DegreesKind(const OperatorGraph& graph, const TensorVersions& versions, const DeviceMesh& mesh,
              GlobalDegrees degrees);

  bool allows(OperatorId op, const Strategy& strategy) const;
  /// True for all layouts of versions that degrees say nothing of.
  bool allows(VersionId version, const TensorLayout& layout) const;
  /// Whether a product or lookup must be cut so; what else cannot be is as it can be.
  bool is_demanded(OperatorId op) const;
  /// Why none of the candidates of such an operator is allowed.
  std::string why_not(OperatorId op, const std::vector<Strategy>& candidates) const;
  /// Whether an operator stands between the cut products: norms, and what is added before them.
  bool is_between(OperatorId op) const { return is_between_[op] != 0; }

  std::int64_t num_data() const { return data_; }  // in how many pieces the batch is

 private:
  /// In how many pieces axes cut something, by whose they are.
  struct Pieces {
    std::int64_t tensor = 1, context = 1, data = 1;
  };
  Pieces pieces(const std::vector<AxisRef>& axes) const;
  bool is_cut_again(const GraphTensor& tensor) const;
  bool is_cut_over_data(const TensorLayout& layout, const Shape& shape, bool by_zero) const;
  void find_between();

  const OperatorGraph& graph_;
  const TensorVersions& versions_;
  const DeviceMesh& mesh_;
  GlobalDegrees degrees_;
  std::int64_t tensor_ = 1, context_ = 1, data_ = 1;
  IdVector<OperatorId, std::optional<std::uint32_t>> batch_;
  IdVector<OperatorId, char> is_between_;
  IdVector<TensorId, char> is_cut_weight_;
};

/// `restrictions` with only what plans of these degrees have of the candidates of `free`, the problem without. Nothing, with
/// the reason in `why`, where some product or tensor cannot be cut so. `free` has work that several devices do, too.
std::optional<Restrictions> with_degrees(Restrictions restrictions, const GlobalDegrees& degrees,
                                         const ModelProblem& free, const OperatorGraph& graph,
                                         const TensorVersions& versions, const DeviceMesh& mesh, std::string* why);

}  // namespace shardplan
