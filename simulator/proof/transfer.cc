// Writes the same program for other sizes.
//
// A plan is proven at sizes that a simulator can hold. Planning again at those sizes would prove another plan; so the
// program itself is rewritten, instruction by instruction, with the same decisions: an operator keeps its strategy, a
// collective its kind and its axes (on a smaller mesh: the pieces that replace them). Shapes, boxes and layouts follow
// from the operators of the small graph.
//
// The parts of a dimension do not follow: (2:{}, 512:{x}) of a fused dimension becomes (2:{}, 16:{x}) because some
// operator walks the dimension by factors 2 and 512 here and by 2 and 16 there. `Boundaries` collects, for each tensor,
// where its factors end at both sizes; any other boundary must come from pieces of axes that a collective moved.
//
// If a strategy is not legal at the small sizes, a part does not fit or a halo differs, the transfer reports that and,
// if known, which factor of which operator was too small: model/shrink.h then tries larger sizes.

#include "simulator/proof/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "layouts/uneven.h"
#include "operators/phases.h"
#include "program/buckets.h"
#include "program/program_checker.h"
#include "program/startup_broadcasts.h"
#include "simulator/execute/reach.h"

namespace shardplan {
namespace {

/// From prefix products at the old sizes to those at the new ones.
using Boundaries = std::map<std::int64_t, std::int64_t>;

/// The program does not exist at the new sizes; caught where the transfer begins.
struct Mismatch {
  std::string what;
  std::optional<std::pair<OperatorId, std::size_t>> culprit = {};
};

/// The factor to enlarge if an operator cannot be sharded as before: that of a sharded window, or the first sharded
/// one.
std::optional<std::pair<OperatorId, std::size_t>> culprit_of(OperatorId op, const Operation& operation,
                                                             const Strategy& strategy) {
  const auto is_sharded = [&](std::size_t factor) { return num_pieces(strategy.factors[factor]) > 1; };
  for (const TensorWalk& walk : operation.rule.operands) {
    for (const DimensionWalk& dimension : walk) {
      if (dimension.window && is_sharded(dimension.window->output))
        return std::pair(op, std::size_t{dimension.window->output});
    }
  }
  for (std::size_t factor = 0; factor < strategy.factors.size(); ++factor) {
    if (is_sharded(factor)) return std::pair(op, factor);
  }
  return std::nullopt;
}

/// The turns of the first `runs` runs.
LoopOrder transferred(const LoopOrder& order, std::int64_t runs) {
  LoopOrder result{{}, order.in_flight};
  std::copy_if(order.turns.begin(), order.turns.end(), std::back_inserter(result.turns),
               [&](const Turn& turn) { return turn.run < runs; });
  return result;
}

class Transferring {
 public:
  Transferring(const ParallelProgram& program, const OperatorGraph& from, const OperatorGraph& to,
               const SmallerMesh& mesh)
      : old_(program), from_(from), to_(to), smaller_(mesh) {
    new_.mesh = mesh.mesh();
    new_.workers = program.workers;
    new_.micro_batches = to.micro_batches();
    new_.values.resize(program.values.size());
    new_.given = program.given;
    new_.outputs = program.outputs;
    new_.updates = program.updates;
    operations_.resize(to.operations().size());
    boundaries_.resize(from.tensors().size());
    find_boundaries();
  }

  ParallelProgram run() {
    for (const Binding& binding : old_.given) {
      place(binding.value, to_.tensor(binding.tensor).type, layout_at(binding.value, nullptr));
    }
    for (const StartupBroadcast& broadcast : old_.broadcasts) {
      const TensorLayout& layout = new_.values[new_.given[broadcast.given].value].layout;
      new_.broadcasts.push_back({broadcast.given, repeated_axes(layout, new_.mesh), 0});
    }
    for (const Instruction& instruction : old_.instructions) new_.instructions.push_back(transfer(instruction));
    if (new_.micro_batches > 1) new_.loop_order = transferred(old_.loop_order, new_.micro_batches);
    new_.buckets = old_.buckets;  // indices of their buffers in `values`
    describe_buckets(new_, nullptr);
    return std::move(new_);
  }

 private:
  void find_boundaries() {
    for (const OperatorId id : from_.operators().ids()) {
      const GraphOperator& op = from_.operators()[id];
      const ShardingRule& old_rule = from_.operation(id).rule;
      const ShardingRule& new_rule = to_.operation(id).rule;
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        add_boundaries(op.operands[i], old_rule, old_rule.operands[i], new_rule, new_rule.operands[i]);
      }
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        add_boundaries(op.results[i], old_rule, old_rule.results[i], new_rule, new_rule.results[i]);
      }
    }
  }

  void add_boundaries(TensorId tensor, const ShardingRule& old_rule, const TensorWalk& old_walk,
                      const ShardingRule& new_rule, const TensorWalk& new_walk) {
    std::vector<Boundaries>& dimensions = boundaries_[tensor];
    dimensions.resize(old_walk.size());
    for (std::size_t d = 0; d < old_walk.size(); ++d) {
      if (old_walk[d].factors.size() != new_walk[d].factors.size()) continue;
      std::int64_t old_prefix = 1;
      std::int64_t new_prefix = 1;
      for (std::size_t i = 0; i + 1 < old_walk[d].factors.size(); ++i) {
        old_prefix *= old_rule.factors[old_walk[d].factors[i]].size;
        new_prefix *= new_rule.factors[new_walk[d].factors[i]].size;
        dimensions[d].emplace(old_prefix, new_prefix);
      }
    }
  }

  void place(ValueId id, const TensorType& type, TensorLayout layout) {
    ProgramValue& value = new_.values[id];
    value.name = old_.values[id].name;
    value.tensor = old_.values[id].tensor;
    value.worker = old_.values[id].worker;
    value.type = type;
    const std::string fault = check_uneven_layout(layout, new_.mesh, type.shape);
    if (!fault.empty()) throw Mismatch{fmt::format("{}: {}", value.name, fault)};
    const ProgramValue& old = old_.values[id];
    if (is_uneven(layout, type.shape) != is_uneven(old.layout, old.type.shape)) {
      throw Mismatch{
          fmt::format("{}: its pieces are {} there", value.name, is_uneven(layout, type.shape) ? "unequal" : "equal")};
    }
    value.layout = canonical(layout, new_.mesh, type.shape);
    value.local_shape = local_shape(value.layout, type.shape);
    value.bytes = local_bytes(type, value.layout);
  }

  /// The product of the pieces' sizes on the smaller mesh, for a product `size` of the first pieces of `axes` on the
  /// old one.
  std::optional<std::int64_t> size_of_pieces(std::int64_t size, const std::vector<AxisRef>& axes) const {
    if (!smaller_.is_smaller()) return size;
    std::int64_t old_product = 1;
    std::int64_t new_product = 1;
    for (const AxisRef& axis : axes) {
      old_product *= axis.size;
      new_product *= smaller_.at(axis).size;
      if (old_product == size) return new_product;
    }
    return std::nullopt;
  }

  /// The new position of a boundary after `prefix` positions of a dimension. `step`: the collective that made this
  /// layout, if any.
  std::int64_t boundary_at(ValueId id, std::size_t d, std::int64_t prefix, const CollectiveStep* step) const {
    if (prefix == 1) return 1;
    Boundaries known{{1, 1}};
    const ProgramValue& value = old_.values[id];
    if (value.tensor && d < boundaries_[*value.tensor].size()) {
      const Boundaries& found = boundaries_[*value.tensor][d];
      known.insert(found.begin(), found.end());
    }
    for (auto at = known.rbegin(); at != known.rend(); ++at) {
      if (prefix % at->first != 0) continue;
      const std::int64_t rest = prefix / at->first;
      if (rest == 1) return at->second;
      std::vector<std::vector<AxisRef>> candidates;
      if (step != nullptr) {
        candidates.push_back(step->axes);
        for (const TensorLayout* layout : {&step->before, &step->after}) {
          for (const DimensionPart& part : layout->dimensions[d].parts) candidates.push_back(part.axes);
        }
      }
      for (const DimensionPart& part : value.layout->dimensions[d].parts) candidates.push_back(part.axes);
      if (!smaller_.is_smaller()) return at->second * rest;
      for (const std::vector<AxisRef>& axes : candidates) {
        if (const auto size = size_of_pieces(rest, axes)) return at->second * *size;
      }
    }
    throw Mismatch{fmt::format("{}: no factor ends behind {} positions of dimension {}", value.name, prefix, d)};
  }

  TensorLayout layout_at(ValueId id, const CollectiveStep* step) const {
    const ProgramValue& value = old_.values[id];
    TensorLayout layout = value.layout;
    layout.partial = smaller_.at(layout.partial);
    const Shape shape = value.tensor ? to_.tensor(*value.tensor).type.shape : value.type.shape;
    for (std::size_t d = 0; d < layout.dimensions.size(); ++d) {
      std::vector<DimensionPart>& parts = layout.dimensions[d].parts;
      std::int64_t old_prefix = 1;
      std::int64_t new_prefix = 1;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i].axes = smaller_.at(parts[i].axes);
        if (parts.size() == 1) {
          parts[i].size = 0;
          continue;
        }
        old_prefix *= parts[i].size;
        const std::int64_t end = i + 1 == parts.size() ? shape[d] : boundary_at(id, d, old_prefix, step);
        if (end % new_prefix != 0) {
          throw Mismatch{fmt::format("{}: the parts of dimension {} do not fit {}", value.name, d, shape[d])};
        }
        parts[i].size = end / new_prefix;
        new_prefix = end;
      }
    }
    return layout;
  }

  const std::shared_ptr<const Operation>& whole_operation(OperatorId op) {
    const OperationId id = to_.operators()[op].operation;
    if (!operations_[id]) operations_[id] = std::make_shared<const Operation>(to_.operations()[id]);
    return operations_[id];
  }

  /// The number of an instruction's phase within its operator: "norm.phase2". Phases may be issued in another order.
  std::size_t phase_number(const Instruction& instruction) const {
    constexpr std::string_view kInfix = ".phase";
    const std::size_t begin = from_.operators()[*instruction.op].name.size() + kInfix.size();
    SHARDPLAN_CHECK(instruction.name.size() > begin);
    return std::stoul(instruction.name.substr(begin));
  }

  /// Phases follow from the whole operator; their operands are values that are already placed.
  std::shared_ptr<const Operation> operation_of(const Instruction& instruction) {
    SHARDPLAN_CHECK(instruction.op.has_value());
    const std::shared_ptr<const Operation>& whole = whole_operation(*instruction.op);
    if (!instruction.is_phase) {
      if (instruction.kind == InstructionKind::kHalo && runs_in_phases(*whole, smaller_.at(instruction.strategy))) {
        throw Mismatch{fmt::format("{}: a halo between phases", instruction.name)};
      }
      return whole;
    }
    const Phases phases = phases_of(*whole, smaller_.at(instruction.strategy));
    const std::size_t number = phase_number(instruction);
    if (number >= phases.phases.size()) throw Mismatch{fmt::format("{}: fewer phases", instruction.name)};
    const Phase& phase = phases.phases[number];
    std::vector<TensorType> operands;
    for (const ValueId input : instruction.inputs) operands.push_back(new_.values[input].type);
    return std::make_shared<const Operation>(
        make_operation(*instruction.operation->type, phase.attributes, std::move(operands)));
  }

  Instruction transfer(const Instruction& old) {
    Instruction instruction = old;
    instruction.time = 0;
    if (old.runs > 1) instruction.runs = to_.micro_batches();
    instruction.strategy = smaller_.at(old.strategy);
    switch (old.kind) {
      case InstructionKind::kConstant: {
        const ValueId id = old.outputs.front();
        place(id, to_.tensor(*old_.values[id].tensor).type, layout_at(id, nullptr));
        break;
      }
      case InstructionKind::kOperator: {
        instruction.operation = operation_of(old);
        const Operation& operation = *instruction.operation;
        const std::string fault = check_strategy(operation, instruction.strategy, new_.mesh);
        const auto culprit = old.is_phase ? std::nullopt : culprit_of(*old.op, operation, instruction.strategy);
        if (!fault.empty()) throw Mismatch{fmt::format("{}: {}", old.name, fault), culprit};
        if (is_uneven(operation, instruction.strategy) != is_uneven(*old.operation, old.strategy)) {
          throw Mismatch{fmt::format("{}: its pieces are no longer {}", old.name,
                                     is_uneven(*old.operation, old.strategy) ? "unequal" : "equal"),
                         culprit};
        }
        if (halos(operation, instruction.strategy, new_.mesh).size() !=
            halos(*old.operation, old.strategy, old_.mesh).size()) {
          throw Mismatch{fmt::format("{}: another halo", old.name), culprit};
        }
        for (std::size_t i = 0; i < old.outputs.size(); ++i) {
          place(old.outputs[i], operation.results[i], result_layout(operation, instruction.strategy, new_.mesh, i));
        }
        break;
      }
      case InstructionKind::kHalo: {
        instruction.operation = operation_of(old);
        instruction.halo.clear();
        for (const Halo& halo : halos(*instruction.operation, instruction.strategy, new_.mesh)) {
          if (halo.operand == old.halo.front().operand) instruction.halo.push_back(halo);
        }
        if (instruction.halo.size() != old.halo.size()) throw Mismatch{fmt::format("{}: another halo", old.name)};
        place(old.outputs.front(), new_.values[old.inputs.front()].type, new_.values[old.inputs.front()].layout);
        break;
      }
      case InstructionKind::kSend: {
        const ProgramValue sent = new_.values[old.inputs.front()];
        place(old.outputs.front(), sent.type, sent.layout);
        break;
      }
      case InstructionKind::kCollective: {
        const ValueId input = old.inputs.front();
        const ValueId output = old.outputs.front();
        // Inside phases there is no tensor to look up, but only the partial axes change.
        TensorLayout after = new_.values[input].layout;
        if (old_.values[output].tensor || old.step->kind != CollectiveKind::kAllReduce) {
          after = layout_at(output, &*old.step);
        } else {
          after.partial = smaller_.at(old_.values[output].layout->partial);
        }
        place(output, new_.values[input].type, std::move(after));
        CollectiveStep& step = instruction.step.edit();
        step.axes = smaller_.at(old.step->axes);
        step.before = new_.values[input].layout;
        step.after = new_.values[output].layout;
        step.local_shape = new_.values[output].local_shape;
        check_step(old.name, step, new_.values[input]);
        step.sent = 0;
        step.time = 0;
        break;
      }
    }
    return instruction;
  }

  /// At other sizes a step may reach other devices even with equal pieces: a canonical layout no longer shows that the
  /// 8 of [8 * 12] was split into 8, as the 4 of [4 * 12] cannot be.
  void check_step(const std::string& name, const CollectiveStep& step, const ProgramValue& value) {
    const Shape& shape = value.type.shape;
    std::string key =
        fmt::format("{} {} {} {} {}", to_string(step.kind), new_.mesh.to_string(step.axes),
                    to_string(step.before, new_.mesh), to_string(step.after, new_.mesh), to_string(shape));
    if (!checked_steps_.insert(std::move(key)).second) return;
    const std::string fault = check_reach(step, new_.mesh, shape);
    if (fault.empty()) return;
    throw Mismatch{fmt::format("{}: {} {}", name, fault,
                               smaller_.is_smaller() ? "on a mesh whose axes differ" : "at sizes of other pieces"),
                   value.tensor ? smaller_factor(*value.tensor, step) : std::nullopt};
  }

  /// A factor that became smaller, in a dimension whose pieces the step moves; preferably one of several that share it.
  std::optional<std::pair<OperatorId, std::size_t>> smaller_factor(TensorId tensor, const CollectiveStep& step) const {
    std::optional<std::pair<OperatorId, std::size_t>> best;
    std::size_t best_shared = 0;
    const auto look = [&](OperatorId id, const TensorWalk& walk) {
      for (const auto& d : {step.from_dim, step.to_dim}) {
        if (!d || walk[*d].factors.size() <= best_shared) continue;
        for (const std::uint32_t factor : walk[*d].factors) {
          if (to_.operation(id).rule.factors[factor].size >= from_.operation(id).rule.factors[factor].size) continue;
          best = {id, factor};
          best_shared = walk[*d].factors.size();
          break;
        }
      }
    };
    for (const OperatorId id : from_.operators().ids()) {
      const GraphOperator& op = from_.operators()[id];
      const ShardingRule& rule = from_.operation(id).rule;
      for (std::size_t i = 0; i < op.operands.size(); ++i) {
        if (op.operands[i] == tensor) look(id, rule.operands[i]);
      }
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        if (op.results[i] == tensor) look(id, rule.results[i]);
      }
    }
    return best;
  }

  const ParallelProgram& old_;
  const OperatorGraph& from_;
  const OperatorGraph& to_;
  const SmallerMesh& smaller_;
  ParallelProgram new_;
  IdVector<OperationId, std::shared_ptr<const Operation>> operations_;
  IdVector<TensorId, std::vector<Boundaries>> boundaries_;
  std::set<std::string> checked_steps_;
};

}  // namespace

Transfer transfer_program(const ParallelProgram& program, const OperatorGraph& from, const OperatorGraph& to,
                          const SmallerMesh& mesh) {
  Transfer transfer;
  try {
    transfer.program = Transferring(program, from, to, mesh).run();
    transfer.fault = check_program(transfer.program, to);
  } catch (const Mismatch& mismatch) {
    transfer.fault = mismatch.what;
    transfer.culprit = mismatch.culprit;
  } catch (const InputError& error) {
    transfer.fault = error.what();
  }
  return transfer;
}

std::string compare_structure(const OperatorGraph& a, const OperatorGraph& b) {
  if (a.operators().size() != b.operators().size() || a.tensors().size() != b.tensors().size()) {
    return "another number of operators or tensors";
  }
  for (const OperatorId id : a.operators().ids()) {
    const GraphOperator &left = a.operators()[id], &right = b.operators()[id];
    if (left.name != right.name || left.operands != right.operands || left.results != right.results ||
        a.operation(id).type->name != b.operation(id).type->name) {
      return fmt::format("operator {} is another one", left.name);
    }
  }
  for (const TensorId id : a.tensors().ids()) {
    // A constant may be named by its value, which depends on the sizes.
    const bool is_named_alike = a.tensor(id).kind == TensorKind::kConstant || a.tensor(id).name == b.tensor(id).name;
    if (!is_named_alike || a.tensor(id).kind != b.tensor(id).kind ||
        a.tensor(id).type.shape.size() != b.tensor(id).type.shape.size()) {
      return fmt::format("tensor {} is another one", a.tensor(id).name);
    }
  }
  return {};
}

}  // namespace shardplan
