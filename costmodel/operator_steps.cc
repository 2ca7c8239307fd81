// One kernel after its halos, or the phases of an operator that is computed in phases: each step is priced by what its
// kernel computes and by the bytes it touches itself; what it has in registers is left out, and weights of one byte that
// it widens are read first.
#include "costmodel/operator_steps.h"

#include <algorithm>

#include "base/error.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

/// The share of the elements picked from a table that one device holds, if the indices are spread evenly over the pieces
/// of the dimension that they count: that of factors of the table which what is picked does not have.
double share_of_picks(const Strategy& strategy, const TensorWalk& table, const TensorWalk& picked) {
  const auto has = [](const TensorWalk& walk, std::uint32_t factor) {
    return std::any_of(walk.begin(), walk.end(), [&](const DimensionWalk& dimension) {
      return std::find(dimension.factors.begin(), dimension.factors.end(), factor) != dimension.factors.end();
    });
  };
  std::int64_t pieces = 1;
  for (std::uint32_t factor = 0; factor < strategy.factors.size(); ++factor) {
    if (has(table, factor) && !has(picked, factor)) pieces *= num_pieces(strategy.factors[factor]);
  }
  return 1.0 / static_cast<double>(pieces);
}

/// Of stored operands that are written in place only the elements of the last operand are read and written. What is
/// overwritten (a cache at the positions of new tokens) may all be on one device.
Bytes touched_in_place(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                       const std::vector<TensorLayout>& results) {
  const Signature& signature = operation.type->signature;
  const auto held = [&](std::size_t i) {
    return local_bytes(operation.operands[i], operand_layout(operation, strategy, mesh, i));
  };
  const bool is_updated = operation.type->in_place == InPlace::kUpdated;
  const std::vector<TensorWalk>& walks = operation.rule.operands;
  const double share = is_updated ? share_of_picks(strategy, walks.front(), walks.back()) : 1;
  const auto last = static_cast<Bytes>(share * static_cast<double>(held(operation.operands.size() - 1)));
  // As many elements of a tensor as the last operand has, which may have another type.
  const auto picked = [&](const TensorType& of) {
    return last / element_bytes(operation.operands.back().dtype) * element_bytes(of.dtype);
  };
  Bytes bytes = 0;
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    const auto& names = signature.results;
    const bool is_stored = std::find(names.begin(), names.end(), signature.operands[i]) != names.end();
    if (!is_stored) {
      bytes += i + 1 == operation.operands.size() ? last : held(i);
    } else if (is_updated) {
      bytes += std::min(held(i), picked(operation.operands[i]));
    }
  }
  for (std::size_t i = 0; i < operation.results.size(); ++i) {
    bytes += std::min(local_bytes(operation.results[i], results[i]), picked(operation.results[i]));
  }
  return bytes;
}

bool reads_twice(const Operation& operation) {
  return operation.type->reads_twice &&
         std::any_of(operation.rule.factors.begin(), operation.rule.factors.end(),
                     [](const Factor& factor) { return factor.kind == FactorKind::kNormalised; });
}

/// Bytes that one kernel run reads of an operand. Of a table that elements are picked from, its share of what the result
/// holds.
Bytes read_bytes(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                 const std::vector<TensorLayout>& results, std::size_t operand) {
  const OperatorType& type = *operation.type;
  const Bytes held = local_bytes(operation.operands[operand], operand_layout(operation, strategy, mesh, operand));
  if (type.picks_elements && operand == 0) {
    const double of_picks = share_of_picks(strategy, operation.rule.operands[0], operation.rule.results[0]);
    const auto picked = static_cast<double>(local_bytes(operation.results[0], results[0]));
    return std::min(held, static_cast<Bytes>(of_picks * picked));
  }
  const double share =
      type.read_share == nullptr ? 1 : type.read_share(operation, local_extents(operation, strategy), operand);
  const Bytes read = share < 1 ? static_cast<Bytes>(share * static_cast<double>(held)) : held;
  return reads_twice(operation) ? 2 * read : read;
}

/// Bytes that one kernel run reads and writes on one device.
Bytes touched_bytes(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                    const std::vector<TensorLayout>& results, const KernelTraffic& traffic) {
  const OperatorType& type = *operation.type;
  if (type.in_place != InPlace::kNo) return touched_in_place(operation, strategy, mesh, results);  // never fused
  Bytes bytes = 0;
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    if (traffic.reads(i)) bytes += read_bytes(operation, strategy, mesh, results, i);
  }
  for (std::size_t i = 0; i < operation.results.size(); ++i) {
    if (!traffic.writes(i)) continue;
    const Bytes written = local_bytes(operation.results[i], results[i]);
    bytes += type.accumulates ? 2 * written : written;  // what is added to is read as well
  }
  return bytes;
}

/// Bytes of the weights that the kernel widens, as they are stored.
Bytes widened_bytes(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh,
                    const KernelTraffic& traffic) {
  Bytes bytes = 0;
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    const TensorType& own = operation.operands[i];
    if (!traffic.widens(i, own)) continue;
    bytes += local_bytes({own.shape, traffic.widened_from[i]}, operand_layout(operation, strategy, mesh, i));
  }
  return bytes;
}

/// The time of a kernel that leaves its results in these layouts.
Picoseconds kernel_time(const Operation& operation, const Strategy& strategy, const CostModel& costs,
                        const std::vector<TensorLayout>& results, const KernelTraffic& traffic) {
  const Bytes touched = touched_bytes(operation, strategy, costs.mesh(), results, traffic);
  return costs.computation(operation, local_extents(operation, strategy), touched, traffic.is_started) +
         costs.reading(widened_bytes(operation, strategy, costs.mesh(), traffic));
}

/// The outer operator's axes, given to the factors of the same names.
Strategy strategy_of_phase(const Operation& outer, const Strategy& strategy, const Operation& phase) {
  Strategy result;
  result.factors.resize(phase.rule.factors.size());
  for (std::uint32_t factor = 0; factor < phase.rule.factors.size(); ++factor) {
    const std::optional<std::uint32_t> same = outer.rule.find(phase.rule.factors[factor].name);
    if (same) result.factors[factor] = strategy.factors[*same];
  }
  return result;
}

class Steps {
 public:
  Steps(const std::shared_ptr<const Operation>& operation, const Strategy& strategy, const CostModel& costs,
        RedistributionPlanner& redistributions, const KernelTraffic& traffic)
      : operation_(operation),
        strategy_(strategy),
        costs_(costs),
        redistributions_(redistributions),
        traffic_(traffic) {
    num_values_ = operation->operands.size();
  }

  OperatorSteps run() {
    if (runs_in_phases(*operation_, strategy_)) {
      run_phases();
    } else {
      std::vector<std::size_t> inputs(operation_->operands.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = i;
      result_.results = run_kernel(operation_, strategy_, std::move(inputs), traffic_, false);
    }
    for (const OperatorStep& step : result_.steps) {
      (step.kind == OperatorStep::Kind::kRun ? result_.computation : result_.communication) += step.time;
    }
    return std::move(result_);
  }

 private:
  /// Fetches the halos that the operation needs, runs it; returns the values of its results.
  std::vector<std::size_t> run_kernel(const std::shared_ptr<const Operation>& operation, const Strategy& strategy,
                                      std::vector<std::size_t> inputs, const KernelTraffic& traffic, bool is_phase) {
    const DeviceMesh& mesh = costs_.mesh();
    std::vector<Halo> all = halos(*operation, strategy, mesh);
    for (std::size_t operand = 0; operand < operation->operands.size(); ++operand) {
      std::vector<Halo> here;
      for (const Halo& halo : all) {
        if (halo.operand == operand) here.push_back(halo);
      }
      if (!here.empty()) inputs[operand] = fetch_halo(operation, strategy, inputs[operand], std::move(here));
    }
    OperatorStep step;
    step.kind = OperatorStep::Kind::kRun;
    step.operation = operation;
    step.strategy = strategy;
    step.is_phase = is_phase;
    step.inputs = std::move(inputs);
    std::vector<std::size_t> results;
    for (std::size_t i = 0; i < operation->results.size(); ++i) {
      step.output_types.push_back(operation->results[i]);
      step.output_layouts.push_back(result_layout(*operation, strategy, mesh, i));
      results.push_back(num_values_++);
    }
    // Asked even for what is free, so that a dtype that the device does not compute is found.
    step.time = kernel_time(*operation, strategy, costs_, step.output_layouts, traffic);
    if (traffic.is_free) step.time = 0;
    result_.steps.push_back(std::move(step));
    return results;
  }

  std::size_t fetch_halo(const std::shared_ptr<const Operation>& operation, const Strategy& strategy, std::size_t input,
                         std::vector<Halo> halo) {
    const std::size_t operand = halo.front().operand;
    const TensorType& type = operation->operands[operand];
    OperatorStep step;
    step.kind = OperatorStep::Kind::kHalo;
    step.operation = operation;
    step.strategy = strategy;
    step.inputs = {input};
    step.output_types = {type};
    step.output_layouts = {operand_layout(*operation, strategy, costs_.mesh(), operand)};
    // Dimension by dimension; the halo of a later dimension includes the corners that the earlier ones brought.
    Shape shape = local_shape(step.output_layouts[0], type.shape);
    for (const Halo& side : halo) {
      const std::int64_t rows = shape[side.dimension];
      const Bytes whole = TensorType{shape, type.dtype}.bytes();
      step.time += costs_.neighbour_exchange(side.axes, whole / rows * side.received());
      shape[side.dimension] += side.received();
    }
    step.halo = std::move(halo);
    result_.steps.push_back(std::move(step));
    return num_values_++;
  }

  void run_phases() {
    SHARDPLAN_CHECK(operation_->type->phases != nullptr);
    const Phases phases = phases_of(*operation_, strategy_);
    // Values as the phases count them: operands, then the results of the phases in order.
    std::vector<std::size_t> values(operation_->operands.size());
    std::vector<TensorType> types = operation_->operands;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i;
    for (const Phase& phase : phases.phases) {
      const OperatorType* type = find_operator_type(phase.type);
      SHARDPLAN_CHECK(type != nullptr);
      std::vector<TensorType> operand_types;
      std::vector<std::size_t> inputs;
      for (const std::size_t input : phase.inputs) {
        operand_types.push_back(types[input]);
        inputs.push_back(values[input]);
      }
      const auto operation =
          std::make_shared<const Operation>(make_operation(*type, phase.attributes, std::move(operand_types)));
      const Strategy strategy = strategy_of_phase(*operation_, strategy_, *operation);
      const std::vector<std::size_t> results =
          run_kernel(operation, strategy, std::move(inputs), traffic_of(phase), true);
      for (std::size_t i = 0; i < results.size(); ++i) {
        // What leaves the operator may stay partial; what a later phase reads must be whole.
        const auto final = std::find(phases.results.begin(), phases.results.end(), values.size());
        const auto number = static_cast<std::size_t>(final - phases.results.begin());
        const bool stays = final != phases.results.end() && !is_read(phases, values.size()) &&
                           !result_layout(*operation_, strategy_, costs_.mesh(), number).partial.empty();
        types.push_back(operation->results[i]);
        values.push_back(stays ? results[i] : complete(*operation, strategy, i, results[i]));
      }
    }
    for (const std::size_t result : phases.results) result_.results.push_back(values[result]);
  }

  /// Phases are kernels of their own. But attention reads values that are its keys once also where it runs in phases.
  KernelTraffic traffic_of(const Phase& phase) const {
    KernelTraffic traffic;
    if (operation_->type->role != OperatorRole::kAttention || traffic_.from_registers.empty()) return traffic;
    for (const std::size_t input : phase.inputs) {
      traffic.from_registers.push_back(input < operation_->operands.size() ? traffic_.from_registers[input] : 0);
    }
    return traffic;
  }

  static bool is_read(const Phases& phases, std::size_t value) {
    return std::any_of(phases.phases.begin(), phases.phases.end(), [&](const Phase& phase) {
      return std::find(phase.inputs.begin(), phase.inputs.end(), value) != phase.inputs.end();
    });
  }

  /// All-reduces a phase's partial result, if it is one.
  std::size_t complete(const Operation& operation, const Strategy& strategy, std::size_t result, std::size_t value) {
    const TensorLayout layout = result_layout(operation, strategy, costs_.mesh(), result);
    if (layout.partial.empty()) return value;
    TensorLayout whole = layout;
    whole.partial.clear();
    const TensorType& type = operation.results[result];
    const Redistribution& plan = redistributions_.plan(layout, whole, type.shape, element_bytes(type.dtype));
    for (const CollectiveStep& collective : plan.steps) {
      OperatorStep step;
      step.kind = OperatorStep::Kind::kComplete;
      step.inputs = {value};
      step.output_types = {type};
      step.output_layouts = {collective.after};
      step.collective = collective;
      step.time = collective.time;
      result_.steps.push_back(std::move(step));
      value = num_values_++;
    }
    return value;
  }

  const std::shared_ptr<const Operation>& operation_;
  const Strategy& strategy_;
  const CostModel& costs_;
  RedistributionPlanner& redistributions_;
  const KernelTraffic& traffic_;
  OperatorSteps result_;
  std::size_t num_values_ = 0;
};

}  // namespace

Picoseconds kernel_time(const Operation& operation, const Strategy& strategy, const CostModel& costs,
                        const KernelTraffic& traffic) {
  std::vector<TensorLayout> results;
  for (std::size_t i = 0; i < operation.results.size(); ++i) {
    results.push_back(result_layout(operation, strategy, costs.mesh(), i));
  }
  return kernel_time(operation, strategy, costs, results, traffic);
}

OperatorSteps operator_steps(const std::shared_ptr<const Operation>& operation, const Strategy& strategy,
                             const CostModel& costs, RedistributionPlanner& redistributions,
                             const KernelTraffic& traffic) {
  return Steps(operation, strategy, costs, redistributions, traffic).run();
}

}  // namespace shardplan
