#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <vector>

#include "program/local_program.h"
#include "simulator/execute/data.h"

namespace shardplan {

/// Runs a model written per device: every rank runs its own graph on its own numbers (float64 whatever the dtype), and
/// communications run together. Keeps parameters and states between steps.
class LocalExecutor {
 public:
  /// The values of an input, parameter or state of a rank.
  using Given = std::function<TensorValues(std::int64_t rank, TensorId)>;

  /// Requires a kernel for every operator that is not a communication; `program` must outlive the object.
  LocalExecutor(const LocalProgram& program, std::uint64_t seed, std::stop_token stop = {});

  /// Runs one step. Parameters and states are requested before the first step only. Throws Stopped if asked to stop.
  void run(std::uint64_t step, const Given& given);

  /// After a step: an output, the loss, a finished gradient or a new value of a stored tensor.
  const TensorValues& value(std::int64_t rank, TensorId id) const {
    return tensors_[static_cast<std::size_t>(rank)][id];
  }

  /// After a step: a parameter's or state's value for the next one.
  const TensorValues& stored(std::int64_t rank, TensorId id) const {
    return stored_[static_cast<std::size_t>(rank)].at(id);
  }

 private:
  void begin(std::size_t rank, std::uint64_t step, const Given& given);
  void communicate(const LocalStep& step);
  /// Frees the operands that no later operator of the rank reads.
  void free_operands(const LocalOperator& at);

  const LocalProgram& program_;
  std::uint64_t seed_;
  std::stop_token stop_;
  std::vector<IdVector<TensorId, TensorValues>> tensors_;  // by rank
  std::vector<IdVector<TensorId, std::size_t>> unread_;    // by rank: readers that have not run yet
  std::vector<std::map<TensorId, TensorValues>> stored_;   // by rank: parameters and states
};

}  // namespace shardplan
