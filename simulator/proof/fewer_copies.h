#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "planner/plan.h"
#include "program/parallel_program.h"

namespace shardplan {

/// A deep model's plan with copies of its repeated blocks left out: still at full size, and with the instructions that the
/// plan has for the copies that are left, in the plan's order.
struct FewerCopies {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const OperatorGraph> graph;
  ParallelProgram program;
  IdVector<OperatorId, Strategy> strategies;
  std::vector<std::string> notes;  // "44 of 48 copies of layers run the instructions of layers.1 and are left out"
};

/// Of each repeat of more than `kCopiesLeft` copies the first two and the last two are left (the gradient that comes from
/// behind the last one is made in another way); nothing is returned where that is not the same proof. What must hold:
///   - Every copy that is left out runs, instruction by instruction, what the second copy runs: the same operations under
///     the same strategies, the same collectives between the same layouts, reading what stands in the same place beside
///     it: its own values, those of the copy before or behind it, or one value that all copies read.
///   - The model exists with fewer copies, and its operators and tensors are those of the copies that are left. Only an
///     operator that reads one value of every copy (the sum of a norm over all gradients) reads fewer.
///   - What is left is a program (`check_program`).
/// So what a copy that is left out could do wrong, the second copy does wrong as well.
std::optional<FewerCopies> fewer_copies(const Plan& plan);

constexpr std::int64_t kCopiesLeft = 4;

}  // namespace shardplan
