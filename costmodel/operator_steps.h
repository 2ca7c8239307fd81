#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "costmodel/cost_model.h"
#include "costmodel/kernel_fusion.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "strategies/strategy.h"

namespace shardplan {

/// One step that the devices execute for an operator under a strategy.
struct OperatorStep {
  enum class Kind {
    kHalo,      // fetches the halo of operand `inputs[0]`; the output is the operand with its halo
    kRun,       // runs the kernel of `operation`
    kComplete,  // a collective that completes a partial result of a phase
  };
  Kind kind = Kind::kRun;
  std::shared_ptr<const Operation> operation;  // kRun: the operation to run; kHalo: the operator itself
  Strategy strategy;                           // how `operation` is sharded
  bool is_phase = false;
  std::vector<std::size_t> inputs;       // values: the operator's operands first, then the outputs of all steps before
  std::vector<TensorType> output_types;  // global
  std::vector<TensorLayout> output_layouts;
  std::vector<Halo> halo;     // kHalo: of one operand
  CollectiveStep collective;  // kComplete
  Picoseconds time = 0;
};

struct OperatorSteps {
  std::vector<OperatorStep> steps;
  std::vector<std::size_t> results;  // the values that are the operator's results
  Picoseconds computation = 0;       // nonzero only for kRun
  Picoseconds communication = 0;     // nonzero only for other kinds
};

/// The time of an operator's kernel on the device with the largest pieces; `traffic` as below.
Picoseconds kernel_time(const Operation& operation, const Strategy& strategy, const CostModel& costs,
                        const KernelTraffic& traffic = {});

/// The steps of one operator under one strategy: halo exchanges, then one kernel, or the phases with their small
/// collectives. This is the only definition of an operator's cost: the strategy problem sums it, lowering writes it
/// out. `traffic` says what a larger fused kernel does of it; it is ignored if the operator runs in phases.
OperatorSteps operator_steps(const std::shared_ptr<const Operation>& operation, const Strategy& strategy,
                             const CostModel& costs, RedistributionPlanner& redistributions,
                             const KernelTraffic& traffic = {});

}  // namespace shardplan
