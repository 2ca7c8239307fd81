// A proof of 48 layers that run the same instructions shows no more than one of four, and takes twelve times as long.
//
// Copies are distinguished by names: a numeric part of a name comes from a repeat (graph/folded_names.h). Operators
// that are numbered through the model ("clip.SquareSum_17") are named after their operands instead. With such names all
// other checks compare texts: a copy's relation to the one before it, `layers.7` to `layers.6`, is that of the second
// copy to the first.
//
// The program is not planned again: instructions of dropped copies are removed, and readers of a value in a
// neighbouring dropped copy read that of the copy which is now their neighbour. The small graph comes from the model's
// source and not from here, so that wrong connections compute other numbers than the reference.

#include "simulator/proof/fewer_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/parse_number.h"
#include "graph/folded_names.h"
#include "model/model_source.h"
#include "model/planned_model.h"
#include "program/buckets.h"
#include "program/program_checker.h"

namespace shardplan {
namespace {

constexpr std::int64_t kFirstCopies = 2;
constexpr std::int64_t kRepresentative = kFirstCopies - 1;

/// Thrown if fewer copies would not be the same proof; caught where the reduction begins.
struct NotTheSame {};

bool is_digits(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
}

std::int64_t number_of(std::string_view digits) {
  const auto number = parse_number<std::int64_t>(digits);
  if (!number) throw NotTheSame();
  return *number;
}

/// A number in a name: the `length` characters at `begin`, which are the index of a repeat's copy.
struct CopyNumber {
  std::size_t begin = 0;
  std::size_t length = 0;
  std::string repeat;  // the text before it, from the start of the block's name: "stages.2.blocks."
  std::int64_t index = 0;
};

/// The repeats of a graph, and the copies to which names belong.
class Repeats {
 public:
  explicit Repeats(const OperatorGraph& graph) {
    for (const GraphOperator& op : graph.operators()) {
      if (op.pass != Pass::kForward || op.is_copy) continue;
      for_each_number(op.name, [&](std::size_t begin, std::size_t length) {
        std::int64_t& count = counts_[op.name.substr(0, begin)];
        count = std::max(count, number_of(std::string_view(op.name).substr(begin, length)) + 1);
      });
    }
  }

  const std::map<std::string, std::int64_t>& counts() const { return counts_; }

  /// The numbers in a name, in order. Throws NotTheSame at one that belongs to no repeat.
  std::vector<CopyNumber> numbers(const std::string& name) const {
    std::vector<CopyNumber> result;
    for_each_number(name, [&](std::size_t begin, std::size_t length) {
      const std::string_view before = std::string_view(name).substr(0, begin);
      for (std::size_t from = 0; from < begin;) {
        const auto found = counts_.find(std::string(before.substr(from)));
        if (found != counts_.end()) {
          result.push_back({begin, length, found->first, number_of(std::string_view(name).substr(begin, length))});
          return;
        }
        const std::size_t next = name.find_first_of(kSeparators, from);
        from = next == std::string::npos ? begin : next + 1;
      }
      throw NotTheSame();
    });
    return result;
  }

  bool is_left(const CopyNumber& number) const {
    const std::int64_t count = counts_.at(number.repeat);
    return count <= kCopiesLeft || number.index < kFirstCopies || number.index >= count - (kCopiesLeft - kFirstCopies);
  }

  /// The index of a kept copy after the others are dropped.
  std::int64_t number_left(const CopyNumber& number) const {
    const std::int64_t count = counts_.at(number.repeat);
    return count <= kCopiesLeft || number.index < kFirstCopies ? number.index : number.index - (count - kCopiesLeft);
  }

  /// A name with each of its numbers replaced.
  template <class Replacement>
  std::string renumbered(const std::string& name, const Replacement& replacement) const {
    std::string result;
    std::size_t from = 0;
    for (const CopyNumber& number : numbers(name)) {
      result.append(name, from, number.begin - from);
      result += std::to_string(replacement(number));
      from = number.begin + number.length;
    }
    return result.append(name, from, name.size() - from);
  }

  bool is_left(const std::string& name) const {
    const std::vector<CopyNumber> all = numbers(name);
    return std::all_of(all.begin(), all.end(), [&](const CopyNumber& number) { return is_left(number); });
  }

  std::string name_left(const std::string& name) const {
    return renumbered(name, [&](const CopyNumber& number) { return number_left(number); });
  }

 private:
  static constexpr std::string_view kSeparators = ".(|";

  template <class Found>
  static void for_each_number(std::string_view name, const Found& found) {
    for (std::size_t begin = 0; begin < name.size();) {
      const std::size_t end = std::min(name.find_first_of(kSeparators, begin), name.size());
      const bool is_part = begin > 0 && name[begin - 1] == '.' && (end == name.size() || name[end] != '(');
      if (is_part && is_digits(name.substr(begin, end - begin))) found(begin, end - begin);
      begin = end + 1;
    }
  }

  std::map<std::string, std::int64_t> counts_;  // by the text before the number
};

/// Names that identify a place in the model.
struct GraphNames {
  IdVector<OperatorId, std::string> operators;
  IdVector<TensorId, std::string> tensors;
};

GraphNames names_of(const OperatorGraph& graph) {
  // Numbered through the model, without a place of their own: "clip.SquareSum", "clip.SquareSum_1", ...
  const auto base_of = [](const GraphOperator& op) -> std::string_view {
    const std::string_view name = op.name;
    const std::size_t bar = name.rfind('_');
    return bar != std::string_view::npos && is_digits(name.substr(bar + 1)) ? name.substr(0, bar) : name;
  };
  const auto has_no_place = [](const GraphOperator& op) {
    return op.pass != Pass::kForward && !op.forward && !op.parameter && !op.operands.empty();
  };
  std::map<std::string_view, std::size_t> counted;
  for (const GraphOperator& op : graph.operators()) {
    if (has_no_place(op)) ++counted[base_of(op)];
  }
  GraphNames names;
  names.tensors.resize(graph.tensors().size());
  for (const TensorId id : graph.tensors().ids()) {
    if (graph.tensor(id).kind != TensorKind::kResult) names.tensors[id] = graph.tensor(id).name;
  }
  for (const GraphOperator& op : graph.operators()) {
    const bool is_counted = has_no_place(op) && counted[base_of(op)] > 1;
    std::string name =
        is_counted ? fmt::format("{}({}", base_of(op), names.tensors[op.operands.front()]) : op.name.str();
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      names.tensors[op.results[i]] = i == 0 ? name : fmt::format("{}.result{}", name, i);
    }
    names.operators.push_back(std::move(name));
  }
  return names;
}

/// The ids in the second graph of the first graph's items, by name; nothing for dropped items. Throws NotTheSame unless
/// the kept items are exactly those of the second graph.
template <class Id>
IdVector<Id, std::optional<Id>> match(const IdVector<Id, std::string>& names, const IdVector<Id, std::string>& left,
                                      const Repeats& repeats) {
  std::unordered_map<std::string, Id> ids;  // looked up, never iterated
  for (const Id id : left.ids()) {
    if (!ids.emplace(left[id], id).second) throw NotTheSame();
  }
  IdVector<Id, std::optional<Id>> result(names.size());
  std::size_t found = 0;
  for (const Id id : names.ids()) {
    if (!repeats.is_left(names[id])) continue;
    const auto at = ids.find(repeats.name_left(names[id]));
    if (at == ids.end()) throw NotTheSame();
    result[id] = at->second;
    ++found;
  }
  if (found != left.size()) throw NotTheSame();
  return result;
}

bool is_same_step(const CollectiveStep& a, const CollectiveStep& b) {
  return a.kind == b.kind && a.axes == b.axes && a.from_dim == b.from_dim && a.to_dim == b.to_dim &&
         a.reduction == b.reduction && a.before == b.before && a.after == b.after && a.local_shape == b.local_shape;
}

bool is_same_halo(const std::vector<Halo>& a, const std::vector<Halo>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Halo& one, const Halo& other) {
    return one.operand == other.operand && one.dimension == other.dimension && one.axes == other.axes &&
           one.before == other.before && one.after == other.after;
  });
}

/// Whether both instructions do the same with their inputs.
bool does_the_same(const Instruction& a, const Instruction& b) {
  if (a.kind != b.kind || a.runs != b.runs || a.pass != b.pass || a.is_phase != b.is_phase) return false;
  if (a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size()) return false;
  if (!(a.strategy == b.strategy) || !is_same_step(a.step, b.step) || !is_same_halo(a.halo, b.halo)) return false;
  return a.operation == b.operation ||
         (a.operation != nullptr && b.operation != nullptr && *a.operation == *b.operation);
}

class LeavingOut {
 public:
  explicit LeavingOut(const Plan& plan) : plan_(plan), old_(plan.program), repeats_(*plan.graph) {}

  FewerCopies run() {
    if (old_.workers > 1 || !old_.loop_order.turns.empty()) throw NotTheSame();
    for (const auto& [repeat, count] : repeats_.counts()) {
      if (count <= kCopiesLeft) continue;
      const std::string name = repeat.substr(0, repeat.size() - 1);
      result_.notes.push_back(fmt::format("{} of {} copies of {} run the instructions of {}.{} and are left out",
                                          count - kCopiesLeft, count, name, name, kRepresentative));
    }
    if (result_.notes.empty()) throw NotTheSame();
    ModelOverrides overrides = plan_.model->overrides;
    overrides.most_copies = kCopiesLeft;
    Model model = plan_.model->source->at(overrides);
    model.training = plan_.model->training;
    result_.model = std::make_shared<const Model>(std::move(model));
    result_.graph = std::make_shared<const OperatorGraph>(planned_graph(*result_.model, old_.mesh.num_devices()));
    names_ = names_of(*plan_.graph);
    const GraphNames left = names_of(*result_.graph);
    operators_ = match(names_.operators, left.operators, repeats_);
    tensors_ = match(names_.tensors, left.tensors, repeats_);
    for (const TensorId id : left.tensors.ids()) tensors_left_.emplace(left.tensors[id], id);
    compare_operators();
    name_values();
    compare_copies();
    write_program();
    if (!check_program(result_.program, *result_.graph).empty()) throw NotTheSame();
    return std::move(result_);
  }

 private:
  void compare_operators() {
    const OperatorGraph& from = *plan_.graph;
    const OperatorGraph& to = *result_.graph;
    result_.strategies.resize(to.operators().size());
    for (const OperatorId id : from.operators().ids()) {
      if (!operators_[id]) continue;
      const Operation& was = from.operation(id);
      const Operation& is = to.operation(*operators_[id]);
      const bool reads_fewer = is.type == was.type && is.operands.size() < was.operands.size();
      if (!reads_fewer && !(is == was)) throw NotTheSame();
      result_.strategies[*operators_[id]] = plan_.strategies[id];
    }
  }

  /// The start of an instruction's name: the name of its operator, or of the tensor that it moves.
  std::string owner_of(const Instruction& instruction) const {
    if (instruction.op) {
      const std::string& name = plan_.graph->operators()[*instruction.op].name;
      if (instruction.name.starts_with(name)) return name;
    }
    for (const ValueId id : instruction.outputs) {
      const std::optional<TensorId>& tensor = old_.values[id].tensor;
      if (tensor && instruction.name.starts_with(plan_.graph->tensor(*tensor).name)) {
        return plan_.graph->tensor(*tensor).name;
      }
    }
    throw NotTheSame();
  }

  /// Names an instruction after its operator's or tensor's place: "clip.SquareSum(grad.layers.3.x.Cast|.in0.slice0". An
  /// instruction that moves one operand for an operator that reads all copies has the operand's place.
  std::string name_of(const Instruction& instruction) const {
    const std::string owner = owner_of(instruction);
    const std::string rest = instruction.name.substr(owner.size());
    if (!instruction.op || owner != plan_.graph->operators()[*instruction.op].name) {
      const ProgramValue& value = old_.values[instruction.outputs.front()];
      return names_.tensors[*value.tensor] + "|" + rest;
    }
    const std::string& name = names_.operators[*instruction.op];
    const std::vector<TensorId>& operands = plan_.graph->operators()[*instruction.op].operands;
    const Origin& origin = instruction.origin;
    const std::size_t operand = origin.operand;
    const std::string infix = fmt::format(".in{}.", operand);
    const bool is_of_operand = instruction.kind == InstructionKind::kCollective && rest.starts_with(infix);
    if (!is_of_operand || operands.size() <= 3 || operand >= operands.size() || !repeats_.numbers(name).empty()) {
      return name + "|" + rest;
    }
    return fmt::format("{}({}|{}", name, names_.tensors[operands[operand]], rest.substr(infix.size()));
  }

  void name_values() {
    value_names_.resize(old_.values.size());
    for (const Binding& binding : old_.given) value_names_[binding.value] = names_.tensors[binding.tensor];
    for (const Instruction& instruction : old_.instructions) {
      instruction_names_.push_back(name_of(instruction));
      for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
        value_names_[instruction.outputs[i]] = fmt::format("{}|{}", instruction_names_.back(), i);
      }
    }
  }

  /// The name for the representative of something that a copy reads: `shifts` gives the shift of each repeat's numbers.
  std::string moved(const std::string& name, const std::map<std::string, std::int64_t>& shifts) const {
    return repeats_.renumbered(name, [&](const CopyNumber& number) {
      const auto shift = shifts.find(number.repeat);
      return number.index + (shift == shifts.end() ? 0 : shift->second);
    });
  }

  /// Every dropped instruction must correspond to one of its copy's representative, and vice versa.
  void compare_copies() {
    std::unordered_map<std::string, std::size_t> by_name;  // looked up, never iterated
    for (std::size_t i = 0; i < instruction_names_.size(); ++i) {
      if (!by_name.emplace(instruction_names_[i], i).second) throw NotTheSame();
    }
    std::map<std::string, std::size_t> sizes;       // number of instructions per copy
    std::map<std::string, std::string> stands_for;  // from dropped copies to their representatives
    for (std::size_t i = 0; i < instruction_names_.size(); ++i) {
      std::string copy, like;
      std::map<std::string, std::int64_t> shifts;
      for (const CopyNumber& number : repeats_.numbers(instruction_names_[i])) {
        const std::string repeat = folded_name(number.repeat);  // same for all copies that contain it
        copy += fmt::format("{}{} ", repeat, number.index);
        const bool is_left = repeats_.is_left(number);
        like += fmt::format("{}{} ", repeat, is_left ? number.index : kRepresentative);
        if (!is_left) shifts[number.repeat] = kRepresentative - number.index;
      }
      ++sizes[copy];
      if (shifts.empty()) continue;
      stands_for.emplace(copy, like);
      compare_with_like(i, shifts, by_name);
    }
    for (const auto& [copy, like] : stands_for) {
      if (sizes[copy] != sizes[like]) throw NotTheSame();
    }
  }

  void compare_with_like(std::size_t i, const std::map<std::string, std::int64_t>& shifts,
                         const std::unordered_map<std::string, std::size_t>& by_name) const {
    const auto found = by_name.find(moved(instruction_names_[i], shifts));
    if (found == by_name.end()) throw NotTheSame();
    const Instruction& own = old_.instructions[i];
    const Instruction& like = old_.instructions[found->second];
    if (!does_the_same(own, like)) throw NotTheSame();
    for (std::size_t k = 0; k < own.inputs.size(); ++k) {
      if (moved(value_names_[own.inputs[k]], shifts) != value_names_[like.inputs[k]]) throw NotTheSame();
      compare_values(own.inputs[k], like.inputs[k], shifts);
    }
    for (std::size_t k = 0; k < own.outputs.size(); ++k) {
      compare_values(own.outputs[k], like.outputs[k], shifts);
    }
  }

  void compare_values(ValueId own, ValueId like, const std::map<std::string, std::int64_t>& shifts) const {
    const ProgramValue& a = old_.values[own];
    const ProgramValue& b = old_.values[like];
    if (a.type != b.type || a.layout != b.layout || a.tensor.has_value() != b.tensor.has_value()) throw NotTheSame();
    if (a.tensor && moved(names_.tensors[*a.tensor], shifts) != names_.tensors[*b.tensor]) throw NotTheSame();
  }

  // ---- the kept program --------------------------------------------------------------------------------------------

  /// The name, after dropping, of something next to a kept copy; nothing for one of all copies that is dropped.
  std::optional<std::string> name_beside(const std::string& name, const std::vector<CopyNumber>& reader) const {
    bool is_beside = true;
    const std::string result = repeats_.renumbered(name, [&](const CopyNumber& number) -> std::int64_t {
      if (repeats_.is_left(number)) return repeats_.number_left(number);
      for (const CopyNumber& own : reader) {
        if (own.repeat == number.repeat) return repeats_.number_left(own) + number.index - own.index;
      }
      is_beside = false;
      return number.index;
    });
    return is_beside ? std::optional(result) : std::nullopt;
  }

  /// The value that a kept instruction reads in place of value `id`.
  std::optional<ValueId> value_left(ValueId id, const std::vector<CopyNumber>& reader) const {
    const auto own = values_.find(id);
    if (own != values_.end()) return own->second;
    const std::optional<std::string> name = name_beside(value_names_[id], reader);
    if (!name) return std::nullopt;
    const auto found = by_name_left_.find(*name);
    if (found == by_name_left_.end()) throw NotTheSame();
    return found->second;
  }

  /// A tensor that a copy moves for itself may belong to the neighbouring copy.
  TensorId tensor_left(TensorId id, const std::vector<CopyNumber>& reader) const {
    if (tensors_[id]) return *tensors_[id];
    const std::optional<std::string> name = name_beside(names_.tensors[id], reader);
    const auto found = name ? tensors_left_.find(*name) : tensors_left_.end();
    if (found == tensors_left_.end()) throw NotTheSame();
    return found->second;
  }

  void keep(ValueId id, const std::vector<CopyNumber>& maker) {
    ProgramValue value = old_.values[id];
    if (value.tensor) {
      value.tensor = tensor_left(*value.tensor, maker);
      value.name = result_.graph->tensor(*value.tensor).name;
    }
    const ValueId left = result_.program.values.push_back(std::move(value));
    values_.emplace(id, left);
    if (!by_name_left_.emplace(repeats_.name_left(value_names_[id]), left).second) throw NotTheSame();
  }

  std::string left_name_of(const Instruction& instruction) const {
    const std::string owner = owner_of(instruction);
    const std::string rest = instruction.name.substr(owner.size());
    if (instruction.op && owner == plan_.graph->operators()[*instruction.op].name) {
      return result_.graph->operators()[*operators_[*instruction.op]].name + rest;
    }
    return result_.graph->tensor(*tensors_[*old_.values[instruction.outputs.front()].tensor]).name + rest;
  }

  void write_program() {
    ParallelProgram& program = result_.program;
    program.mesh = old_.mesh;
    program.micro_batches = old_.micro_batches;
    program.reduces_in_last_run = old_.reduces_in_last_run;
    std::map<std::size_t, std::size_t> given;  // new position
    for (std::size_t i = 0; i < old_.given.size(); ++i) {
      const Binding& binding = old_.given[i];
      if (!tensors_[binding.tensor]) continue;
      keep(binding.value, {});
      given.emplace(i, program.given.size());
      program.given.push_back({*tensors_[binding.tensor], values_.at(binding.value), binding.is_input});
    }
    for (StartupBroadcast broadcast : old_.broadcasts) {
      const auto at = given.find(broadcast.given);
      if (at == given.end()) continue;
      broadcast.given = at->second;
      program.broadcasts.push_back(std::move(broadcast));
    }
    for (std::size_t i = 0; i < old_.instructions.size(); ++i) {
      const std::string& name = instruction_names_[i];
      if (repeats_.is_left(name)) write(old_.instructions[i], name);
    }
    write_bindings(old_.outputs, program.outputs);
    write_bindings(old_.updates, program.updates);
    describe_buckets(program, nullptr);
  }

  void write(const Instruction& old, const std::string& name) {
    ParallelProgram& program = result_.program;
    Instruction instruction = old;
    instruction.name = left_name_of(old);
    if (old.op) instruction.op = *operators_[*old.op];
    const std::vector<CopyNumber> reader = repeats_.numbers(name);
    instruction.inputs.clear();
    for (const ValueId input : old.inputs) {
      if (const std::optional<ValueId> left = value_left(input, reader)) {
        instruction.inputs.push_back(*left);
      } else {
        check_reads_like(old, input);
      }
    }
    if (instruction.inputs.size() != old.inputs.size()) {
      if (!old.op || old.is_phase || old.kind != InstructionKind::kOperator) throw NotTheSame();
      instruction.operation = std::make_shared<const Operation>(result_.graph->operation(*instruction.op));
      // The factors are what is sharded, and a sum of fewer operands has the same ones.
      const bool fits = instruction.operation->operands.size() == instruction.inputs.size() &&
                        instruction.operation->rule.factors == old.operation->rule.factors;
      if (!fits) throw NotTheSame();
    }
    instruction.outputs.clear();
    for (const ValueId output : old.outputs) {
      keep(output, reader);
      instruction.outputs.push_back(values_.at(output));
    }
    if (old.fusion > 0) {
      if (old.fusion != last_bucket_) ++num_buckets_;
      last_bucket_ = old.fusion;
      instruction.fusion = num_buckets_;
    }
    program.instructions.push_back(std::move(instruction));
  }

  /// An instruction that reads one value of every copy must also read that of the representative.
  void check_reads_like(const Instruction& instruction, ValueId left_out) const {
    const std::string like = repeats_.renumbered(value_names_[left_out], [&](const CopyNumber& number) {
      return repeats_.is_left(number) ? number.index : kRepresentative;
    });
    const bool reads_it = std::any_of(instruction.inputs.begin(), instruction.inputs.end(),
                                      [&](ValueId input) { return value_names_[input] == like; });
    if (!reads_it) throw NotTheSame();
  }

  void write_bindings(const std::vector<Binding>& from, std::vector<Binding>& to) const {
    for (const Binding& binding : from) {
      if (!tensors_[binding.tensor]) continue;
      const auto value = values_.find(binding.value);
      if (value == values_.end()) throw NotTheSame();
      to.push_back({*tensors_[binding.tensor], value->second, binding.is_input});
    }
  }

  const Plan& plan_;
  const ParallelProgram& old_;
  const Repeats repeats_;
  GraphNames names_;
  IdVector<OperatorId, std::optional<OperatorId>> operators_;
  IdVector<TensorId, std::optional<TensorId>> tensors_;
  std::vector<std::string> instruction_names_;
  IdVector<ValueId, std::string> value_names_;
  std::unordered_map<std::string, TensorId> tensors_left_;  // looked up, never iterated
  std::map<ValueId, ValueId> values_;                       // of kept values
  std::unordered_map<std::string, ValueId> by_name_left_;   // looked up, never iterated
  std::uint32_t last_bucket_ = 0;                           // the plan's bucket of which a member was written last
  std::uint32_t num_buckets_ = 0;
  FewerCopies result_;
};

}  // namespace

std::optional<FewerCopies> fewer_copies(const Plan& plan) {
  try {
    return LeavingOut(plan).run();
  } catch (const NotTheSame&) {
    return std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;  // the file names a dropped copy
  }
}

}  // namespace shardplan
