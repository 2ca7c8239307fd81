#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "model/model.h"

namespace shardplan {

struct LocalValidationOptions {
  std::uint64_t seed = 0;
  int steps = 3;
  std::stop_token stop = {};
};

/// One step beside the reference's.
struct LocalStepComparison {
  struct Value {
    std::string name;
    std::int64_t rank = 0;  // where it is farthest from what it should be
    double found = 0;       // the element that is
    double should_be = 0;
    double difference = 0;
    bool is_equal = true;
  };
  std::vector<Value> values;  // outputs (the loss first), then parameters after the update

  bool agrees() const;
};

/// What the numbers say of why a step differs: "the gradients of w differ between ranks, and their mean is ..." with what
/// would be right.
struct DriftCause {
  std::string message;
  std::string hint;
  std::vector<std::string> tensors;  // that it is about, in the order of the graph
};

struct LocalValidation {
  std::vector<LocalStepComparison> steps;
  std::optional<std::size_t> first_drift;  // the first step, from 0, in which something differs
  std::vector<DriftCause> causes;          // of that step
  std::vector<std::string> not_compared;   // outputs that the reference does not have in this shape
  bool not_finite = false;                 // the reference's next step is: no more steps are compared
  bool agrees() const { return !first_drift; }
};

/// Runs a model written per device, `ranks` as `models_of_ranks` reads it, beside `reference`, a model in the view of all
/// devices, step by step from the same numbers.
///
/// What is compared has the same name in both. Inputs, parameters and optimizer states are drawn for the reference; each
/// rank has the same numbers where the shape is the same, else the piece that begins where `begin` says. The loss and the
/// outputs of every rank are compared with the reference's, and every parameter after its update with its piece. Equal
/// means as near as 1e-9 of the largest value and what rounding does to the reference itself (`MeasuredReference`).
///
/// Throws InputError: an input or parameter that one of the two does not have, a shape that is no piece, micro-batches,
/// an operator without a kernel, nothing to compare, numbers of the first step that are not finite, and what
/// `local_program` throws; Stopped if asked to stop.
LocalValidation validate_against(const std::vector<std::shared_ptr<const Model>>& ranks, const Model& reference,
                                 const LocalValidationOptions& options);

}  // namespace shardplan
