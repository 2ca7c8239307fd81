#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "costmodel/mindspore/mindspore_redistribution.h"

namespace shardplan {

// MindSpore's cost model, to reproduce its published choices and compare them with ours. Costs are weighted bytes,
// without seconds, topology or flops. Numbers are doubles computed with + - * only.

/// The weights of MindSpore's cost model context.
struct MindSporeWeights {
  double alpha = 1;         // weight of computation
  double beta = 400;        // weight of communication (Ascend; 50 on GPU)
  double gamma = 0.001;     // weight of the gradients of parameters, whose communication may be hidden
  double threshold = 2048;  // communication of at most this many bytes ...
  double constant = 3072;   // ... counts as this,
  double bias = 1024;       // and larger communication counts as its bytes and this many more
};

/// The cost of one strategy of an operator, or of one pair of strategies on an edge.
struct MindSporeCost {
  double computation = 0;                           // forward
  double communication = 0;                         // forward and backward
  double communication_without_parameter = 0;       // without the gradients' part; on an edge all of it
  double communication_with_partial_parameter = 0;  // that, and gamma times the gradients' part
  double memory = 0;

  /// alpha computation + beta communication_with_partial_parameter: what MindSpore's search minimises in training.
  double objective(const MindSporeWeights& weights = {}) const;
  bool operator==(const MindSporeCost&) const = default;
};
MindSporeCost operator+(const MindSporeCost& a, const MindSporeCost& b);

/// The kinds of operators, by formula. Not included: memory kept for training (it depends on the whole graph) and
/// UnsortedSegmentSum/Min.
enum class MindSporeFamily {
  kMatMul,         // operands A, B
  kBatchParallel,  // Conv2D, LayerNorm and whatever has no formula of its own: all operands
  kActivation,     // Cast, ReLU, GeLU, Sqrt, Tanh, Sigmoid, Transpose: operand x
  kSoftmax,        // Softmax, Tile: as activation, but charged by the result
  kArithmetic,     // Add, Sub, Mul, Div, Pow, Maximum, FloorDiv, PReLU: operands a, b
  kReduce,         // ReduceSum, ReduceMax, ReduceMin
  kReduceMean,
  kUnlearned,  // OneHot (operand indices), SoftmaxCrossEntropyWithLogits (operands a, b): no gradient of parameters
  kDropout,
  kGather,   // operands parameter, indices
  kNothing,  // GetNext, VirtualDataset, TmpIdentity
};

/// One tensor of an operator under a strategy.
struct MindSporeTensor {
  Shape shape;
  std::vector<std::int64_t> cuts;  // the strategy: pieces per dimension
  Bytes element_bytes = 4;
  bool is_parameter = false;

  double slice_bytes() const;
  std::int64_t pieces() const;
};

struct MindSporeOperator {
  MindSporeFamily family = MindSporeFamily::kNothing;
  std::vector<MindSporeTensor> operands;
  MindSporeTensor result;
  bool reduces_cut_dimension =
      false;  // a reduction's: a reduced dimension is cut, and not dimension 0 by all devices with cross_batch
  bool cuts_gather_axis = false;  // Gather's: its axis is cut
};

/// The four raw figures of an operator in bytes.
struct MindSporeFigures {
  double forward_communication = 0;
  double backward_communication = 0;
  double forward_computation = 0;
  double backward_computation = 0;

  bool operator==(const MindSporeFigures&) const = default;
};
MindSporeFigures mindspore_figures(const MindSporeOperator& op, std::int64_t devices);

/// The figures as MindSpore's search uses them: strategies that shard the first dimension of the first operand over
/// all devices get one byte less (ties favour data parallelism), then forward communication is adjusted by threshold,
/// constant and bias.
MindSporeCost mindspore_operator_cost(const MindSporeOperator& op, std::int64_t devices,
                                      const MindSporeWeights& weights = {});

/// Adjusts forward and backward separately. Nothing, which stands for infinite, if truth values would have to be
/// communicated.
std::optional<MindSporeCost> mindspore_edge_cost(const MindSporeTensorLayout& from, const MindSporeTensorLayout& to,
                                                 Bytes element_bytes, bool is_bool, const MindSporeWeights& weights);

/// MindSpore's simplification of a list of costs: by ascending computation, only those that communicate less than all
/// previous ones.
std::vector<MindSporeCost> simplify(std::vector<MindSporeCost> costs);

/// One cost from each list with the least total objective among those whose memory fits; at a tie the first found.
/// Nothing if none fits.
std::optional<std::vector<std::size_t>> least_training_time(const std::vector<std::vector<MindSporeCost>>& lists,
                                                            double memory_capacity,
                                                            const MindSporeWeights& weights = {});

}  // namespace shardplan
