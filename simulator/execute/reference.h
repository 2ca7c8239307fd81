#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "graph/operator_graph.h"
#include "simulator/execute/data.h"

namespace shardplan {

/// Thrown when work ends because it was asked to stop.
struct Stopped : std::exception {
  const char* what() const noexcept override { return "stopped"; }
};

/// One step of a graph on one device, without mesh or program: every operator's kernel on the whole iteration space, in
/// program order; with micro-batches, forward and backward operators in a loop. The mesh is compared with this.
struct ReferenceStep {
  IdVector<TensorId, TensorValues> tensors;  // all tensors of the graph at the end of the step
  /// The tensors after each micro-batch but the last; empty if the same as at the end.
  std::vector<IdVector<TensorId, TensorValues>> earlier;

  const TensorValues& at(TensorId tensor, std::size_t micro_batch) const {
    const bool differs = micro_batch < earlier.size() && !earlier[micro_batch][tensor].empty();
    return differs ? earlier[micro_batch][tensor] : tensors[tensor];
  }
};

/// The values of inputs, parameters and states (readers make constants themselves). Inputs are requested with every
/// micro-batch, by its number counted through all steps; parameters and states once.
using StoredValues = std::function<TensorValues(TensorId, std::uint64_t micro_batch)>;

/// Runs one operator's kernel on the whole iteration space, from and into `tensors`.
void run_on_one_device(const OperatorGraph& graph, OperatorId op, std::uint64_t seed,
                       IdVector<TensorId, TensorValues>& tensors);

/// Requires a kernel for every operator (`operators_without_kernel` is empty).
ReferenceStep run_reference(const OperatorGraph& graph, const StoredValues& stored, std::uint64_t seed,
                            std::uint64_t step, Precision precision, const std::stop_token& stop = {});

/// How far errors move the numbers of a tensor.
struct Movement {
  double absolute = 0;  // the largest change of a number that does not stand for infinity
  double of_large = 0;  // the largest change of one that does, relative to itself
};

/// A step on one device, and how far errors in every result move each tensor, i.e. how precise its numbers are. The
/// true gradient of an attention key bias is 0, so every number computed for it is rounding error; a ReLU of a number
/// near 0 may or may not pass a gradient on. The errors are several times those of the precision, since a sum in
/// another order adds more than one rounding.
struct MeasuredReference {
  static constexpr int kDisturbedBits64 = 10;
  static constexpr int kDisturbedBits32 = 38;

  ReferenceStep exact;
  IdVector<TensorId, Movement> moved64;  // by tensor: from exact to disturbed; earlier steps were disturbed as well
  /// From errors in this step alone; empty if not requested. The errors are coarse, so that a ReLU that float decides
  /// differently is not mistaken for a fault: float64 is the proof.
  IdVector<TensorId, Movement> moved32;
};

/// Runs the steps of a graph on one device in sequence, each from the values the last one stored. Disturbed runs
/// continue from their own results, so that the errors of earlier steps count.
class ReferenceSteps {
 public:
  /// Requires a kernel for every operator.
  ReferenceSteps(const OperatorGraph& graph, std::uint64_t seed, std::stop_token stop = {});
  /// Uses the given values instead of those drawn from the seed.
  ReferenceSteps(const OperatorGraph& graph, std::uint64_t seed, StoredValues given, std::stop_token stop = {});

  /// Throws Stopped if asked to stop.
  MeasuredReference next(bool float32);

 private:
  /// The parameters and states between steps, on one device.
  class Stored {
   public:
    Stored(const OperatorGraph& graph, StoredValues given);
    TensorValues at(TensorId id, std::uint64_t micro_batch) const;
    void update(const ReferenceStep& run);

   private:
    const OperatorGraph* graph_;
    StoredValues given_;
    std::map<TensorId, TensorValues> values_;
  };

  const OperatorGraph& graph_;
  std::uint64_t seed_;
  std::stop_token stop_;
  std::uint64_t next_ = 0;
  Stored exact_;
  Stored disturbed_;
};

/// The maximal number of elements that `ReferenceSteps::next` holds: every tensor of the exact step, for each
/// micro-batch, and the tensors of the disturbed step that still have readers.
double reference_elements(const OperatorGraph& graph);

/// Names of operators that cannot be executed, in program order.
std::vector<std::string> operators_without_kernel(const OperatorGraph& graph);

}  // namespace shardplan
