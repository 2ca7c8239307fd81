#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "planner/plan.h"
#include "program/parallel_program.h"

namespace shardplan {

/// A deep model's plan without some copies of its repeated blocks: still at full size, with the plan's instructions for
/// the kept copies in the plan's order.
struct FewerCopies {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const OperatorGraph> graph;
  ParallelProgram program;
  IdVector<OperatorId, Strategy> strategies;
  std::vector<std::string> notes;  // "44 of 48 copies of layers run the instructions of layers.1 and are left out"
};

/// Keeps the first two and the last two copies of each repeat with more than `kCopiesLeft` (the gradient that arrives
/// from behind the last copy is computed differently). Returns nothing if that is not the same proof. Conditions:
///   - Every dropped copy runs, instruction by instruction, the same as the second copy: the same operations under the
///     same strategies and the same collectives between the same layouts, on corresponding values: its own, those of
///     the copy before or after it, or one value that all copies read.
///   - The model exists with fewer copies, and its operators and tensors are those of the kept copies. Only an operator
///     that reads one value of every copy (the sum of a norm over all gradients) reads fewer.
///   - The result is a valid program (`check_program`).
/// So a fault that a dropped copy could have is also one of the second copy.
std::optional<FewerCopies> fewer_copies(const Plan& plan);

constexpr std::int64_t kCopiesLeft = 4;

}  // namespace shardplan
