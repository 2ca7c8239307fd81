// Makes a plan small enough to be executed.
//
// First a mesh is chosen: the plan's own or, beyond `most_devices`, one whose axes are 3 or 2. model/shrink.h then
// finds sizes at which every factor is sharded as before; transfer.h writes the program out at these sizes, and sizes
// it finds too small grow. The cost of running the result is estimated before memory is allocated. If it is too high,
// equal copies of layers are left out (fewer_copies.h), and then sizes with more concessions are tried (`Thrift`):
// fewer positions per device, smaller numbers in the model's text, shorter sums of a softmax. A proof that is still
// expensive is announced with the largest tensor and its dims, and refused if memory would not suffice.
//
// A smaller mesh cannot show that boxes tile and groups partition at full size; arithmetic on the plan's own program
// checks that.

#include "simulator/proof/prove.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "base/error.h"
#include "layouts/uneven.h"
#include "model/planned_model.h"
#include "model/shrink.h"
#include "simulator/proof/fewer_copies.h"
#include "simulator/proof/transfer.h"
#include "strategies/strategy.h"

namespace shardplan {
namespace {

/// A mesh of more devices is never executed unchanged.
constexpr std::int64_t kMostDevicesOfOwnMesh = 256;

/// Maximal memory of a proof.
constexpr double kMostBytes = 4.0 * (1 << 30);

/// Target for the cost of a proof, if such sizes can be found: about half a minute.
constexpr double kWantedBytes = 2.0 * (1 << 30);
constexpr double kWantedOperations = 2e9;  // of a step on one device

/// Checks that every position of every factor belongs to exactly one place along the axes that shard it.
std::string check_boxes(const Instruction& instruction, const DeviceMesh& mesh) {
  const ShardingRule& rule = instruction.operation->rule;
  std::vector<std::vector<std::int64_t>> begins(rule.factors.size());
  for (std::size_t f = 0; f < rule.factors.size(); ++f) {
    begins[f].assign(static_cast<std::size_t>(num_pieces(instruction.strategy->factors[f])), -1);
  }
  for (std::int64_t point = 0; point < mesh.num_devices(); ++point) {
    const std::vector<Box> here = boxes(*instruction.operation, instruction.strategy, mesh, point);
    for (std::size_t f = 0; f < here.size(); ++f) {
      const auto at = static_cast<std::size_t>(mesh.coordinate(point, instruction.strategy->factors[f]));
      const auto pieces = static_cast<std::int64_t>(begins[f].size());
      const std::int64_t size = largest_piece(here[f].extent, pieces);
      const std::int64_t begin = static_cast<std::int64_t>(at) * size;
      const std::int64_t end = std::min(begin + size, here[f].extent);
      if (here[f].begin != begin || here[f].end != end || begin >= end || pieces * size < here[f].extent) {
        return fmt::format("{}: the boxes of {} do not tile it", instruction.name, rule.factors[f].name);
      }
      begins[f][at] = here[f].begin;
    }
  }
  for (std::size_t f = 0; f < begins.size(); ++f) {
    if (std::count(begins[f].begin(), begins[f].end(), -1) > 0) {
      return fmt::format("{}: no device computes a part of {}", instruction.name, rule.factors[f].name);
    }
  }
  return {};
}

/// Whether the pieces of each dimension with unequal pieces change as the kind of step requires: they are joined from
/// whole pieces, or split so that whole pieces consist of the new ones.
bool pieces_follow(const CollectiveStep& step, const Shape& shape) {
  const std::int64_t members = num_pieces(step.axes);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::int64_t before = step.before.dimensions[d].num_pieces();
    const std::int64_t after = step.after.dimensions[d].num_pieces();
    const bool grows = step.from_dim == d && step.kind != CollectiveKind::kCollectivePermute;
    const bool shrinks = step.to_dim == d && step.kind != CollectiveKind::kCollectivePermute;
    if (before != (grows ? after * members : shrinks ? after / members : after)) return false;
    if (!can_be_split(shape[d], after) || !nests(shape[d], std::max(before, after), std::min(before, after))) {
      return false;
    }
  }
  return true;
}

std::string check_groups(const Instruction& instruction, const DeviceMesh& mesh, const Shape& shape,
                         std::int64_t before, std::int64_t after) {
  const CollectiveStep& step = instruction.step;
  const std::int64_t members = num_pieces(step.axes);
  std::vector<char> is_member(static_cast<std::size_t>(mesh.num_devices()), 0);
  for (const std::vector<std::int64_t>& group : mesh.groups(step.axes)) {
    bool is_right = static_cast<std::int64_t>(group.size()) == members;
    for (std::size_t i = 0; i < group.size(); ++i) {
      char& seen = is_member[static_cast<std::size_t>(group[i])];
      is_right = is_right && seen == 0 && mesh.coordinate(group[i], step.axes) == static_cast<std::int64_t>(i);
      seen = 1;
    }
    if (!is_right) return fmt::format("{}: its groups are no partition of the devices", instruction.name);
  }
  if (std::count(is_member.begin(), is_member.end(), 0) > 0) {
    return fmt::format("{}: a device is in no group", instruction.name);
  }
  if (is_uneven(step.before, shape) || is_uneven(step.after, shape)) {
    return pieces_follow(step, shape)
               ? std::string()
               : fmt::format("{}: its pieces do not follow from those before it", instruction.name);
  }
  std::int64_t expected = before;
  if (step.kind == CollectiveKind::kAllGather) expected = before * members;
  if (step.kind == CollectiveKind::kReduceScatter || step.kind == CollectiveKind::kSlice) expected = before / members;
  if (step.kind == CollectiveKind::kToPartial) expected = after;
  return after == expected
             ? std::string()
             : fmt::format("{}: leaves {} elements on a device; expected {}", instruction.name, after, expected);
}

constexpr std::int64_t kMicroBatchesOfProof = 3;  // more of them show nothing new

/// What is proven: a plan, or its reduction by fewer_copies.
struct Subject {
  const Model& model;
  std::shared_ptr<const OperatorGraph> graph;
  const ParallelProgram& program;
  const IdVector<OperatorId, Strategy>& strategies;
};

Subject subject_of(const Plan& plan) { return {*plan.model, plan.graph, plan.program, plan.strategies}; }
Subject subject_of(const FewerCopies& plan) { return {*plan.model, plan.graph, plan.program, plan.strategies}; }

/// The numbers of pieces into which the plan shards things, on the mesh of the proof.
ShrinkRequest request_of(const Subject& plan, const SmallerMesh& mesh) {
  ShrinkRequest request;
  request.planned_graph = [num_devices = mesh.mesh().num_devices()](const Model& model) {
    return planned_graph(model, num_devices, kMicroBatchesOfProof);
  };
  for (const Strategy& strategy : plan.strategies) {
    const OperatorId op = OperatorId(request.operator_pieces.size());
    const std::vector<Factor>& factors = plan.graph->operation(op).rule.factors;
    const Strategy smaller = mesh.at(strategy);
    std::vector<std::int64_t> pieces(factors.size(), 1);
    std::vector<std::vector<std::int64_t>> uneven(factors.size());
    for (std::size_t f = 0; f < factors.size(); ++f) {
      const bool is_even = factors[f].size % num_pieces(strategy.factors[f]) == 0;
      const std::int64_t here = num_pieces(smaller.factors[f]);
      if (is_even) {
        pieces[f] = here;
      } else {
        uneven[f].push_back(here);
      }
    }
    request.operator_pieces.push_back(std::move(pieces));
    request.uneven_operator_pieces.push_back(std::move(uneven));
  }
  request.keeps_residues = !mesh.is_smaller();
  request.uneven_tensor_pieces.resize(plan.graph->tensors().size());
  request.tensor_pieces.resize(plan.graph->tensors().size());
  for (const ProgramValue& value : plan.program.values) {
    if (!value.tensor) continue;
    std::vector<std::int64_t>& pieces = request.tensor_pieces[*value.tensor];
    pieces.resize(value.layout->dimensions.size(), 1);
    std::vector<std::vector<std::int64_t>>& uneven = request.uneven_tensor_pieces[*value.tensor];
    uneven.resize(pieces.size());
    for (std::size_t d = 0; d < pieces.size(); ++d) {
      std::int64_t cuts = 1;
      for (const DimensionPart& part : value.layout->dimensions[d].parts) cuts *= num_pieces(mesh.at(part.axes));
      if (value.type.shape[d] % value.layout->dimensions[d].num_pieces() == 0) {
        pieces[d] = std::lcm(pieces[d], cuts);
      } else {
        uneven[d].push_back(cuts);
      }
    }
  }
  return request;
}

/// The graph that `planned_graph` makes of the model without padding; null: nothing is padded.
std::shared_ptr<const OperatorGraph> unpadded_graph(const Model& model, std::int64_t num_devices,
                                                    std::int64_t micro_batches) {
  if (!model.unpadded) return nullptr;
  return std::make_shared<const OperatorGraph>(planned_graph(*model.unpadded, num_devices, micro_batches));
}

struct Smaller {
  std::shared_ptr<const OperatorGraph> full;  // at full size
  SmallerMesh mesh;
  ShrunkModel model;
  OperatorGraph graph;
  ParallelProgram program;
};

/// How many concessions the sizes make to become small.
struct Thrift {
  std::int64_t least_local = 2;
  bool shrinks_literals = false;
  bool keeps_apart = true;
  std::int64_t least_normalised = 8;
};

/// The cost of running a program: memory of the reference and of all devices, and work.
struct Expense {
  double bytes = 0;
  double operations = 0;  // of a step on one device, plus rounding, moving and comparing on all devices

  bool is_wanted() const { return bytes <= kWantedBytes && operations <= kWantedOperations; }
  /// The cost as a multiple of the wanted one.
  double excess() const { return std::max(bytes / kWantedBytes, operations / kWantedOperations); }
};

/// The work per element on a device, in operations: rounding, moving and comparing it, in two precisions.
constexpr double kOperationsOfElement = 10;

double elements_of(const ProgramValue& value) { return static_cast<double>(num_elements(value.local_shape)); }

/// The maximal number of elements that one device holds at a time.
double most_elements(const ParallelProgram& program) {
  constexpr std::size_t kToTheEnd = static_cast<std::size_t>(-1);
  IdVector<ValueId, std::size_t> last_use(program.values.size(), 0);
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    for (const ValueId id : program.instructions[i].inputs) last_use[id] = i;
    for (const ValueId id : program.instructions[i].outputs) last_use[id] = i;
  }
  double held = 0;
  for (const auto* bindings : {&program.given, &program.outputs, &program.updates}) {
    for (const Binding& binding : *bindings) last_use[binding.value] = kToTheEnd;
  }
  for (const Binding& binding : program.given) held += elements_of(program.values[binding.value]);
  double most = held;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    std::vector<ValueId> here = program.instructions[i].inputs;
    for (const ValueId id : program.instructions[i].outputs) {
      held += elements_of(program.values[id]);
      here.push_back(id);
    }
    most = std::max(most, held);
    std::sort(here.begin(), here.end());
    here.erase(std::unique(here.begin(), here.end()), here.end());
    for (const ValueId id : here) {
      if (last_use[id] == i) held -= elements_of(program.values[id]);
    }
  }
  return most;
}

Expense expense_of(const OperatorGraph& graph, const ParallelProgram& program) {
  Expense expense;
  const double devices = static_cast<double>(program.mesh.num_devices());  // of the worker that holds a value
  double stored = 0;  // held by the run in the other precision meanwhile
  double made = 0;
  for (const Binding& binding : program.given) stored += elements_of(program.values[binding.value]);
  for (const ProgramValue& value : program.values) made += elements_of(value);
  expense.bytes = (reference_elements(graph) + devices * (stored + most_elements(program))) * sizeof(double);
  expense.operations = kOperationsOfElement * devices * made;
  for (const OperatorId op : graph.operators().ids()) {
    const Operation& operation = graph.operation(op);
    std::vector<std::int64_t> extents;
    for (const Factor& factor : operation.rule.factors) extents.push_back(factor.size);
    expense.operations += flops(operation, extents);
  }
  return expense;
}

/// The plan's program at small sizes on one mesh; `fault` explains why there is none.
std::optional<Smaller> find_smaller(const Subject& plan, const SmallerMesh& mesh, const Thrift& thrift,
                                    std::string& fault) {
  ShrinkRequest request = request_of(plan, mesh);
  request.least_local = thrift.least_local;
  request.shrinks_literals = thrift.shrinks_literals;
  request.keeps_apart = thrift.keeps_apart;
  request.least_normalised = thrift.least_normalised;
  request.check = [&](const Model&, const OperatorGraph& graph) -> std::optional<TooSmall> {
    if (!compare_structure(*plan.graph, graph).empty()) return std::nullopt;
    const Transfer transfer = transfer_program(plan.program, *plan.graph, graph, mesh);
    if (transfer.fault.empty() || !transfer.culprit) return std::nullopt;
    return TooSmall{transfer.culprit->first, transfer.culprit->second};
  };
  ShrunkModel model;
  OperatorGraph graph;
  try {
    model = shrink(plan.model, request);
    graph = planned_graph(model.model, mesh.mesh().num_devices(), kMicroBatchesOfProof);
  } catch (const InputError& error) {
    // This number of devices does not divide the rows of which each has its own weights.
    fault = error.diagnostics().empty() ? "the model cannot be made smaller" : error.diagnostics()[0].message;
    return std::nullopt;
  }
  fault = compare_structure(*plan.graph, graph);
  if (!fault.empty()) return std::nullopt;
  Transfer transfer = transfer_program(plan.program, *plan.graph, graph, mesh);
  fault = transfer.fault;
  if (!fault.empty()) return std::nullopt;
  return Smaller{plan.graph, mesh, std::move(model), std::move(graph), std::move(transfer.program)};
}

/// The same with more concessions, as long as it is expensive.
Smaller thrifty(const Subject& plan, Smaller smaller) {
  Expense expense = expense_of(smaller.graph, smaller.program);
  for (const Thrift& thrift : {Thrift{1, false, true, 8}, Thrift{2, true, true, 8}, Thrift{1, true, true, 8},
                               Thrift{1, true, true, 4}, Thrift{1, true, false, 4}}) {
    if (expense.is_wanted()) break;
    const bool only_adds_literals = thrift.keeps_apart && thrift.shrinks_literals && thrift.least_normalised == 8;
    const bool has_expressions = plan.model.dim_order.size() > plan.model.free_dims.size();
    if (only_adds_literals && plan.model.literals.empty() && !has_expressions) continue;
    std::string fault;
    std::optional<Smaller> other = find_smaller(plan, smaller.mesh, thrift, fault);
    if (!other) continue;
    const Expense its = expense_of(other->graph, other->program);
    if (its.excess() >= expense.excess()) continue;
    smaller = std::move(*other);
    expense = its;
  }
  return smaller;
}

/// Tries a mesh with axes of 3 and 2, one of 2 only (some things cannot be split in 3), one of equal axes (if one takes
/// the place of another), and the plan's own (if an axis of 8 takes the place of 2 and 4, no smaller mesh keeps these
/// products equal). Two positions of everything per device, or fewer if the plan itself has one and means it (8 heads
/// on an axis of 8).
std::optional<Smaller> find_smaller(const Subject& plan, std::int64_t most_devices, std::string& fault) {
  std::vector<SmallerMesh> meshes;
  for (const SmallerPieces pieces : {SmallerPieces::kThreesAndTwos, SmallerPieces::kTwos, SmallerPieces::kTwosAlike}) {
    SmallerMesh mesh(plan.program, most_devices, pieces);
    const bool is_known = std::any_of(meshes.begin(), meshes.end(),
                                      [&](const SmallerMesh& known) { return known.mesh() == mesh.mesh(); });
    if (!is_known) meshes.push_back(std::move(mesh));
  }
  if (meshes.front().is_smaller() && plan.program.mesh.num_devices() <= kMostDevicesOfOwnMesh) {
    meshes.emplace_back(plan.program, kMostDevicesOfOwnMesh, SmallerPieces::kThreesAndTwos);
  }
  for (const SmallerMesh& mesh : meshes) {
    for (const std::int64_t least_local : {2, 1}) {
      if (auto smaller = find_smaller(plan, mesh, {least_local}, fault)) return smaller;
    }
  }
  return std::nullopt;
}

/// The same; if that is expensive, with fewer copies of repeats and more concessions. `notes` lists the copies left
/// out.
std::optional<Smaller> find_affordable(const Plan& plan, std::int64_t most_devices, std::vector<std::string>& notes,
                                       std::string& fault) {
  std::optional<Smaller> smaller = find_smaller(subject_of(plan), most_devices, fault);
  if (!smaller || expense_of(smaller->graph, smaller->program).is_wanted()) return smaller;
  if (const std::optional<FewerCopies> fewer = fewer_copies(plan)) {
    std::string its_fault;
    if (auto of_fewer = find_smaller(subject_of(*fewer), most_devices, its_fault)) {
      notes = fewer->notes;
      return thrifty(subject_of(*fewer), std::move(*of_fewer));
    }
  }
  return thrifty(subject_of(plan), std::move(*smaller));
}

/// Describes the largest tensor of a step and the origin in the file of each of its larger dimensions.
std::string what_holds(const OperatorGraph& full, const OperatorGraph& graph, const ShrunkModel& model) {
  TensorId largest(0);
  for (const TensorId id : graph.tensors().ids()) {
    if (num_elements(graph.tensor(id).type.shape) > num_elements(graph.tensor(largest).type.shape)) largest = id;
  }
  const Shape& shape = graph.tensor(largest).type.shape;
  const Shape& own = full.tensor(largest).type.shape;
  std::string text = fmt::format("the largest tensor is {} {}, at full size {}", graph.tensor(largest).name,
                                 to_string(shape), to_string(own));
  std::vector<std::size_t> by_size(shape.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) { return shape[a] > shape[b]; });
  for (const std::size_t d : by_size) {
    if (shape[d] < 16 || d >= 3) continue;
    const std::vector<std::string>& names = model.origins[model.origin_of[largest][d]];
    text += names.empty() ? fmt::format("; no dim of the file makes its dimension {}: as a dim it could be smaller", d)
                          : fmt::format("; its dimension {} comes from {}", d, fmt::join(names, ", "));
  }
  return text;
}

/// Empty, or that the proof takes longer than it should, and because of what in the file.
std::string what_is_expensive(const Smaller& smaller) {
  const Expense expense = expense_of(smaller.graph, smaller.program);
  if (expense.is_wanted() || expense.bytes > kMostBytes) return {};  // refused, if above the limit
  return fmt::format("expensive: {:.1f} GiB and {:.1f}e9 operations a step; {}", expense.bytes / (1 << 30),
                     expense.operations / 1e9, what_holds(*smaller.full, smaller.graph, smaller.model));
}

/// Empty, or that running it would take too much memory, and because of what in the file.
std::string check_memory(const Executable& executable, const Smaller* smaller) {
  const double bytes = expense_of(*executable.graph, executable.program).bytes;
  if (bytes <= kMostBytes) return {};
  const std::string needed = fmt::format("running it takes {:.1f} GiB of memory, above the limit of {:.0f} GiB",
                                         bytes / (1 << 30), kMostBytes / (1 << 30));
  if (smaller == nullptr) return needed;
  return fmt::format("{}; {}", needed, what_holds(*smaller->full, *executable.graph, smaller->model));
}

}  // namespace

std::string check_groups_and_boxes(const ParallelProgram& program) {
  std::set<std::pair<const Operation*, std::string>> known_boxes;
  std::set<std::tuple<CollectiveKind, std::string, std::int64_t, std::int64_t>> known_groups;
  for (const Instruction& instruction : program.instructions) {
    std::string fault;
    if (instruction.kind == InstructionKind::kOperator) {
      std::string key;
      for (const std::vector<AxisRef>& axes : instruction.strategy->factors) key += program.mesh.to_string(axes);
      if (!known_boxes.emplace(instruction.operation.get(), key).second) continue;
      fault = check_boxes(instruction, program.mesh);
    } else if (instruction.kind == InstructionKind::kCollective) {
      const std::int64_t before = num_elements(program.values[instruction.inputs.front()].local_shape);
      const std::int64_t after = num_elements(program.values[instruction.outputs.front()].local_shape);
      const std::string axes = program.mesh.to_string(instruction.step->axes);
      const Shape& shape = program.values[instruction.inputs.front()].type.shape;
      const bool has_uneven = is_uneven(instruction.step->before, shape) || is_uneven(instruction.step->after, shape);
      const bool is_new = known_groups.emplace(instruction.step->kind, axes, before, after).second;
      if (!is_new && !has_uneven) continue;
      fault = check_groups(instruction, program.mesh, shape, before, after);
    }
    if (!fault.empty()) return fault;
  }
  return {};
}

Executable make_executable(const Plan& plan, bool shrink, std::int64_t most_devices) {
  Executable executable;
  Shrinking& shrinking = executable.shrinking;
  shrinking.mesh = plan.program.mesh;
  if (!shrink) {
    executable.program = plan.program;
    executable.graph = plan.graph;
    executable.unpadded = unpadded_graph(*plan.model, plan.program.mesh.num_devices(), plan.program.micro_batches);
    shrinking.refusal = check_memory(executable, nullptr);
    return executable;
  }
  std::string fault;
  std::optional<Smaller> smaller = find_affordable(plan, most_devices, shrinking.notes, fault);
  if (!smaller) {
    shrinking.refusal = fmt::format("the program cannot be written out at smaller sizes: {}", fault);
    return executable;
  }
  const std::int64_t micro_batches = plan.program.micro_batches;
  if (smaller->graph.micro_batches() < micro_batches) {
    shrinking.dims.push_back({"micro_batches", micro_batches, smaller->graph.micro_batches()});
  }
  for (const ShrunkDim& dim : smaller->model.dims) shrinking.dims.push_back({dim.name, dim.from, dim.to});
  shrinking.notes.insert(shrinking.notes.end(), smaller->model.notes.begin(), smaller->model.notes.end());
  if (std::string expense = what_is_expensive(*smaller); !expense.empty()) {
    shrinking.notes.push_back(expense);
    shrinking.expense = std::move(expense);
  }
  if (smaller->mesh.is_smaller()) {
    shrinking.refusal = check_groups_and_boxes(plan.program);
    for (std::size_t axis = 0; axis < plan.program.mesh.axes().size(); ++axis) {
      const MeshAxis& from = plan.program.mesh.axes()[axis];
      shrinking.axes.push_back({from.name, from.size, smaller->mesh.mesh().axes()[axis].size});
    }
    shrinking.notes.push_back(
        fmt::format("groups and boxes of all {} devices checked by arithmetic", plan.program.mesh.num_devices()));
  }
  shrinking.mesh = smaller->mesh.mesh();
  executable.program = std::move(smaller->program);
  executable.graph = std::make_shared<const OperatorGraph>(std::move(smaller->graph));
  executable.unpadded = unpadded_graph(smaller->model.model, smaller->mesh.mesh().num_devices(), kMicroBatchesOfProof);
  if (shrinking.refusal.empty()) shrinking.refusal = check_memory(executable, &*smaller);
  return executable;
}

Proof prove(const Plan& plan, const ProofOptions& options) {
  Proof proof;
  proof.shrinking.mesh = plan.program.mesh;
  proof.validation.without_kernel = operators_without_kernel(*plan.graph);
  if (!proof.validation.without_kernel.empty()) return proof;
  const Executable executable = make_executable(plan, options.shrink, options.most_devices);
  proof.shrinking = executable.shrinking;
  if (!proof.shrinking.refusal.empty()) return proof;
  if (options.validation.progress && !proof.shrinking.expense.empty()) {
    options.validation.progress(proof.shrinking.expense);
  }
  proof.validation = validate(executable.program, *executable.graph, options.validation);
  if (executable.unpadded && proof.validation.is_equal()) {
    if (options.validation.progress) options.validation.progress("the model without padding");
    proof.unpadded = compare_with_unpadded(*executable.graph, *executable.unpadded, options.validation);
  }
  if (options.mutations && options.validation.progress) options.validation.progress("faults");
  if (options.mutations && proof.validation.is_equal()) {
    proof.mutations = test_mutations(executable.program, *executable.graph, options.validation);
  }
  return proof;
}

}  // namespace shardplan
