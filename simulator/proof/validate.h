#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "simulator/execute/reference.h"
#include "simulator/proof/comparison.h"

namespace shardplan {

struct ValidationOptions {
  std::uint64_t seed = 0;
  int steps = 3;  // a graph that updates nothing needs only one
  bool float32 = true;
  int threads = 1;
  /// Allowed difference relative to the largest value of the reference tensor.
  double float64_tolerance = 1e-9;
  double float32_tolerance = 2e-5;
  std::string until = {};  // a tensor to compare instead of the outputs
  std::stop_token stop = {};
  std::function<void(const std::string&)> progress = {};  // called with a description of what begins
};

/// All steps in one precision.
struct PrecisionResult {
  Precision precision = Precision::kFloat64;
  int steps = 0;
  bool has_loss = false;
  // Number of compared tensors in each step, besides the loss:
  std::size_t outputs = 0;
  std::size_t parameters = 0;  // their new values
  std::size_t states = 0;
  std::size_t gradients = 0;
  std::size_t between = 0;      // any other tensor of the graph
  double largest = 0;           // difference relative to the largest value of the tensor
  std::string largest_in = {};  // the tensor's name
  double allowed = 0;
  bool is_equal = true;
};

/// The first value in program order that differs from its reference tensor.
struct FirstWrong {
  Precision precision = Precision::kFloat64;
  int step = 0;  // from 1
  std::string tensor;
  std::string instruction;   // the one that made it
  bool is_inserted = false;  // a collective, not an operator
  std::int64_t rank = 0;
  std::string coordinates;  // "pcie 0, hccs 0"
  Shape local_shape;
  Shape global_shape;
  Comparison comparison;
  double allowed = 0;
  std::vector<std::string> right_inputs;  // tensors of all its inputs; a wrong one would have been first
  std::string looks_like;                 // may be empty
};

/// A tensor whose numbers prove nothing, and the reason.
struct Unproven {
  std::string tensor;
  std::string reason;

  bool operator==(const Unproven&) const = default;
};

struct ValidationResult {
  std::vector<PrecisionResult> precisions;
  std::optional<FirstWrong> first_wrong;
  std::vector<Unproven> unproven;
  std::vector<std::string> without_kernel;  // operators; if there are any, nothing was run
  std::size_t num_collectives = 0;          // per step; slices and other local steps do not count
  std::size_t num_sends = 0;                // between workers
  std::int64_t num_devices = 1;

  bool is_equal() const { return without_kernel.empty() && !first_wrong; }
};

/// Runs the program on the simulated mesh and the graph on one device, on the same data drawn from the seed, and
/// compares the results.
///
/// float64: compares every graph output, every new value of a parameter or state, and every intermediate value that
/// holds a tensor of the graph (a fault may not change the outputs: a sum does not depend on the order of its
/// summands). On each device, step k+1 starts from the device's results of step k. float32 (everything rounded after
/// every instruction): compares outputs and the gradients that updates read; each step starts from the exact weights,
/// since Adam turns the rounding of a gradient that is truly 0 into a step of up to the learning rate. The tolerance
/// includes the effect of rounding on the tensor on one device (MeasuredReference). A tensor not above that, a constant
/// one, and one that float32 cannot represent, or whose inputs it cannot, are reported as unproven; and so is one that
/// differs in float32, if rounding changes it by more than 1 % of its largest value on one device as well.
///
/// After a difference, the step runs again with every value compared, to find the first. Throws Stopped if asked to
/// stop.
ValidationResult validate(const ParallelProgram& program, const OperatorGraph& graph, const ValidationOptions& options);

/// The float64 tolerance of one tensor: `relative` plus the effect of rounding.
Tolerance float64_tolerance(double relative, const MeasuredReference& reference, TensorId tensor);

/// By value: the graph's tensor that it must equal, for outputs, updates and all values that hold one.
IdVector<ValueId, std::optional<TensorId>> held_tensors(const ParallelProgram& program, const OperatorGraph& graph);

}  // namespace shardplan
