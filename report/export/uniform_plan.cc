#include "report/export/uniform_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/export/exported_plan.h"
#include "report/metrics/parallelism_patterns.h"

namespace shardplan {
namespace {

bool any_overlap(const std::vector<AxisRef>& a, const std::vector<AxisRef>& b) {
  return std::any_of(a.begin(), a.end(), [&](const AxisRef& axis) {
    return std::any_of(b.begin(), b.end(), [&](const AxisRef& other) { return overlaps(axis, other); });
  });
}

std::int64_t rows_of_batch(const OperatorGraph& graph) {
  for (const GraphTensor& tensor : graph.tensors()) {
    if (tensor.kind == TensorKind::kInput && !tensor.type.shape.empty()) return tensor.type.shape[0];
  }
  return 1;
}

/// True if most bytes of the gradients are held in as many pieces as the optimizer's states.
bool gradients_are_cut(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  std::map<TensorId, std::int64_t> state_pieces;  // by parameter
  for (const Binding& binding : plan.program.given) {
    const GraphTensor& tensor = graph.tensor(binding.tensor);
    if (tensor.kind != TensorKind::kState || !tensor.state_of || tensor.type.shape.empty()) continue;
    std::int64_t& pieces = state_pieces[*tensor.state_of];
    pieces = std::max(pieces, num_shards(plan.program.values[binding.value].layout));
  }
  std::map<TensorId, const ProgramValue*> last;  // by parameter: its gradient as the update takes it, or its sum
  for (const ProgramValue& value : plan.program.values) {
    if (!value.tensor) continue;
    const GraphTensor& tensor = graph.tensor(*value.tensor);
    const auto parameter = graph.is_accumulated(*value.tensor) ? tensor.gradient_for : tensor.gradient_of;
    if (!parameter || (plan.program.micro_batches > 1 && !graph.is_accumulated(*value.tensor))) continue;
    last[*parameter] = &value;
  }
  double bytes = 0, cut = 0;
  for (const auto& [parameter, value] : last) {
    const auto found = state_pieces.find(parameter);
    if (found == state_pieces.end()) continue;
    bytes += static_cast<double>(value->type.bytes());
    if (num_shards(value->layout) >= found->second) cut += static_cast<double>(value->type.bytes());
  }
  return bytes > 0 && 2 * cut >= bytes;
}

/// One entry for every matrix product or lookup that is not cut as the uniform plan cuts it.
std::vector<ExportedEntry> operators_that_differ(const Plan& plan, const UniformPlan& uniform, std::int64_t batch) {
  const OperatorGraph& graph = *plan.graph;
  std::vector<ExportedEntry> entries;
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    const Operation& operation = graph.operation(id);
    const bool is_lookup = operation.type->role == OperatorRole::kLookup;
    if (op.pass != Pass::kForward || operation.results.empty()) continue;
    if (!is_lookup && operation.type->work != WorkKind::kContraction) continue;
    std::int64_t weight = 1;
    bool has_weight = false;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (weight_of(graph, op.operands[i]) == nullptr) continue;
      has_weight = true;
      weight = std::max(weight, num_shards(operand_layout(operation, plan.strategies[id], plan.mesh, i)));
    }
    const TensorLayout result = result_layout(operation, plan.strategies[id], plan.mesh, 0);
    // Rows of the batch, or of its tokens after a reshape; a lookup of positions has none.
    const std::int64_t extent = operation.results[0].shape.empty() ? 0 : operation.results[0].shape[0];
    const bool has_batch = extent > 0 && (is_lookup ? extent == batch : extent % batch == 0);
    const std::int64_t rows = has_batch ? result.dimensions[0].num_pieces() : 1;
    if ((!has_weight || weight == uniform.tensor) && (!has_batch || rows == uniform.data)) continue;
    const std::string what =
        has_weight ? fmt::format("weight in {}, batch in {}", weight, rows) : fmt::format("batch in {}", rows);
    entries.push_back({op.name, what, ""});
  }
  return entries;
}

/// One entry for every parameter that is stored otherwise, itself or its optimizer's states.
std::vector<ExportedEntry> parameters_that_differ(const Plan& plan, const UniformPlan& uniform) {
  const ExportedPlan exported = exported_plan(plan);
  std::map<std::string, std::int64_t> states;
  for (const ExportedTensor& state : exported.states) states.emplace(state.name, num_shards(state.layout));
  std::vector<ExportedEntry> entries;
  for (const ExportedTensor& parameter : exported.parameters) {
    const std::int64_t stored = num_shards(parameter.layout);
    // A vector belongs to a weight that is cut along it, or to one that is not.
    const bool may_be_whole = parameter.type.shape.size() < 2;
    const auto expected = [&](std::int64_t pieces, bool over_data) {
      const std::int64_t more = over_data ? uniform.data * uniform.context : 1;
      return pieces == uniform.tensor * more || (may_be_whole && pieces == more);
    };
    if (!expected(stored, uniform.zero == 3))
      entries.push_back({parameter.name, fmt::format("stored in {}", stored), ""});
    const auto found = states.find(parameter.name);
    if (found != states.end() && !expected(found->second, uniform.zero > 0)) {
      entries.push_back({parameter.name, fmt::format("optimizer states in {}", found->second), ""});
    }
  }
  return entries;
}

}  // namespace

UniformPlan nearest_uniform_plan(const Plan& plan) {
  const ParallelismPatterns patterns = find_parallelism_patterns(plan);
  const std::int64_t devices = plan.mesh.num_devices();
  UniformPlan uniform;
  uniform.tensor = num_pieces(patterns.weights);
  uniform.sequence = uniform.tensor > 1 && any_overlap(patterns.sequence, patterns.weights);
  if (!patterns.sequence.empty() && !any_overlap(patterns.sequence, patterns.weights) &&
      !any_overlap(patterns.sequence, patterns.batch)) {
    uniform.context = num_pieces(patterns.sequence);
  }
  if (devices % (uniform.tensor * uniform.context) != 0) uniform.context = 1;
  if (devices % uniform.tensor != 0) uniform.tensor = 1;
  uniform.data = devices / uniform.tensor / uniform.context;
  if (plan.graph->is_training()) {
    if (!patterns.gathered.empty()) {
      uniform.zero = 3;
    } else if (!patterns.states.empty()) {
      uniform.zero = gradients_are_cut(plan) ? 2 : 1;
    }
  }
  const std::int64_t batch = rows_of_batch(*plan.graph);
  uniform.micro_batch = std::max<std::int64_t>(1, batch / uniform.data);
  uniform.global_batch = batch * plan.graph->micro_batches();

  if (!plan.graph->is_training()) uniform.differences.emplace_back("the plan is one of inference");
  if (batch % uniform.data != 0) {
    uniform.differences.push_back(fmt::format("a batch of {} is not in {} equal pieces", batch, uniform.data));
  }
  std::vector<ExportedEntry> entries = operators_that_differ(plan, uniform, batch);
  // The two facts of one parameter fold each on their own.
  std::vector<ExportedEntry> stored, states;
  for (ExportedEntry& entry : parameters_that_differ(plan, uniform)) {
    (entry.value.starts_with("stored") ? stored : states).push_back(std::move(entry));
  }
  for (const auto* list : {&entries, &stored, &states}) {
    for (const ExportedEntry& entry : fold_entries(*list)) {
      uniform.differences.push_back(fmt::format("{}: {}", entry.name, entry.value));
    }
  }
  return uniform;
}

}  // namespace shardplan
