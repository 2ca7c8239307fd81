// Most of a plan decides what degrees are nearest to it: products by their work, what is stored by its bytes. The rest
// differs from them, which is told operator by operator and tensor by tensor, by the rule that also plans such degrees.
#include "report/export/uniform_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graph/batch_factors.h"
#include "graph/stored_updates.h"
#include "graph/weights.h"
#include "layouts/layout_axes.h"
#include "report/export/exported_plan.h"
#include "report/metrics/parallelism_patterns.h"

namespace shardplan {
namespace {

bool any_overlap(const std::vector<AxisRef>& a, const std::vector<AxisRef>& b) {
  return std::any_of(a.begin(), a.end(), [&](const AxisRef& axis) {
    return std::any_of(b.begin(), b.end(), [&](const AxisRef& other) { return overlaps(axis, other); });
  });
}

/// The number of pieces of each dimension: "(2, 4, 1)".
std::string pieces_text(const TensorLayout& layout) {
  std::vector<std::string> pieces;
  for (const DimensionLayout& dimension : layout.dimensions)
    pieces.push_back(fmt::format("{}", dimension.num_pieces()));
  return fmt::format("({})", fmt::join(pieces, ", "));
}

/// "8", or "(2, 4)" if several dimensions are sharded.
std::string shards_text(const TensorLayout& layout) {
  const auto cut = std::count_if(layout.dimensions.begin(), layout.dimensions.end(),
                                 [](const DimensionLayout& dimension) { return dimension.is_sharded(); });
  return cut > 1 ? pieces_text(layout) : fmt::format("{}", num_shards(layout));
}

/// How an operator is sharded that the degrees would shard otherwise.
std::string operator_text(const Plan& plan, OperatorId id) {
  const OperatorGraph& graph = *plan.graph;
  const GraphOperator& op = graph.operators()[id];
  const Operation& operation = graph.operation(id);
  const TensorLayout result = result_layout(operation, plan.strategies[id], plan.mesh, 0);
  std::int64_t weight = 0;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (weight_of(graph, op.operands[i]) == nullptr) continue;
    weight = std::max(weight, num_shards(operand_layout(operation, plan.strategies[id], plan.mesh, i)));
  }
  const std::int64_t rows = result.dimensions.empty() ? 1 : result.dimensions[0].num_pieces();
  if (weight > 0) return fmt::format("weight in {}, batch in {}", weight, rows);
  return fmt::format("cut {}", pieces_text(result));
}

/// One entry for every product, lookup and norm that is not sharded as the degrees would, and for sums of gradients.
/// Other differences follow from these, and are only listed if there are none of these.
std::vector<ExportedEntry> operators_that_differ(const Plan& plan, const DegreesKind& kind) {
  const OperatorGraph& graph = *plan.graph;
  std::vector<ExportedEntry> entries, others;
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    if (op.is_copy || op.results.empty() || kind.allows(id, plan.strategies[id])) continue;
    const OperatorType& type = *graph.operation(id).type;
    if (type.accumulates) {
      const TensorLayout sum = result_layout(graph.operation(id), plan.strategies[id], plan.mesh, 0);
      entries.push_back({op.name, fmt::format("summed over micro-batches in {}", shards_text(sum)), ""});
      continue;
    }
    const bool decides =
        type.work == WorkKind::kContraction || type.role == OperatorRole::kLookup || kind.is_between(id);
    const bool is_listed = op.pass == Pass::kForward && decides;
    (is_listed ? entries : others).push_back({op.name, operator_text(plan, id), ""});
  }
  return entries.empty() ? others : entries;
}

/// The axes over which a kept weight is sharded that some operator of the backward pass takes gathered.
std::vector<AxisRef> gathered_again(const Plan& plan, const TensorVersions& versions, VersionId kept) {
  std::vector<Reader> readers(versions.all[kept].readers.begin(), versions.all[kept].readers.end());
  for (const VersionId next : versions.all[kept].next) {
    readers.insert(readers.end(), versions.all[next].readers.begin(), versions.all[next].readers.end());
  }
  std::vector<AxisRef> axes = cutting_axes(plan.versions[kept]);
  std::erase_if(axes, [&](const AxisRef& axis) {
    return std::ranges::all_of(readers, [&](const Reader& reader) {
      const TensorLayout read =
          operand_layout(plan.graph->operation(reader.op), plan.strategies[reader.op], plan.mesh, reader.operand);
      return common_pieces({axis}, cutting_axes(read)) == axis.size;
    });
  });
  std::ranges::sort(axes);
  return joined(axes);
}

/// How a weight is kept that the degrees would shard again between the passes.
std::string kept_text(const Plan& plan, const TensorVersions& versions, VersionId kept) {
  const std::vector<AxisRef> again = gathered_again(plan, versions, kept);
  if (again.empty()) return "gathered once, for forward and backward pass";
  const std::string names = plan.mesh.to_string(again);
  return fmt::format("kept in {} pieces, gathered again over {}", shards_text(plan.versions[kept]),
                     again.size() == 1 ? names.substr(1, names.size() - 2) : names);
}

/// One entry for every parameter that is stored otherwise, or whose states are, or that is kept gathered.
std::vector<std::vector<ExportedEntry>> tensors_that_differ(const Plan& plan, const DegreesKind& kind,
                                                            const TensorVersions& versions) {
  const OperatorGraph& graph = *plan.graph;
  std::vector<ExportedEntry> stored, states, kept;
  for (const VersionId id : versions.all.ids()) {
    const TensorVersion& version = versions.all[id];
    if (kind.allows(id, plan.versions[id])) continue;
    const GraphTensor& tensor = graph.tensor(version.tensor);
    const bool is_stored_cache = version.kind == TensorVersion::Kind::kStored && is_cache(graph, version.tensor);
    const std::string pieces = is_stored_cache ? pieces_text(plan.versions[id]) : shards_text(plan.versions[id]);
    if (version.kind == TensorVersion::Kind::kKept) {
      kept.push_back({tensor.name, kept_text(plan, versions, id), ""});
    } else if (tensor.kind == TensorKind::kParameter) {
      stored.push_back({tensor.name, fmt::format("stored in {}", pieces), ""});
    } else {
      const std::string& name = graph.tensor(*tensor.state_of).name;
      const ExportedEntry entry{name, fmt::format("optimizer states in {}", pieces), ""};
      if (states.empty() || states.back() != entry) states.push_back(entry);  // its moments, one after the other
    }
  }
  return {stored, states, kept};
}

/// The bytes of weights and states that are stored, or kept for the backward pass, as the degrees want them.
Bytes bytes_of_kind(const Plan& plan, const TensorVersions& versions, const GlobalDegrees& degrees,
                    TensorVersion::Kind version_kind) {
  const DegreesKind kind(*plan.graph, versions, plan.mesh, degrees);
  Bytes bytes = 0;
  for (const VersionId id : versions.all.ids()) {
    if (versions.all[id].kind != version_kind || !kind.allows(id, plan.versions[id])) continue;
    const GraphTensor& stored = plan.graph->tensor(behind_casts(*plan.graph, versions.all[id].tensor));
    if (stored.kind == TensorKind::kParameter || stored.kind == TensorKind::kState) bytes += stored.type.bytes();
  }
  return bytes;
}

}  // namespace

GlobalDegrees nearest_degrees(const Plan& plan) {
  const ParallelismPatterns patterns = find_parallelism_patterns(plan);
  const std::int64_t devices = plan.mesh.num_devices();
  GlobalDegrees degrees;
  if (devices % num_pieces(patterns.weights) == 0) degrees.tensor = patterns.weights;
  const std::int64_t tensor = num_pieces(degrees.tensor);
  degrees.sequence = tensor > 1 && any_overlap(patterns.sequence, degrees.tensor);
  if (devices % (tensor * num_pieces(patterns.context)) == 0) degrees.context = patterns.context;
  degrees.experts = patterns.stacked;
  if (plan.graph->is_training()) degrees.zero = zero_stage(plan, patterns);
  return degrees;
}

std::vector<AxisRef> zero_replicas(const Plan& plan, GlobalDegrees degrees) {
  const ParallelismPatterns patterns = find_parallelism_patterns(plan);
  const std::vector<AxisRef>& sharded = degrees.zero == 3 ? patterns.gathered : patterns.states;
  if (degrees.zero == 0 || sharded.empty() || !degrees.experts.empty()) return {};
  std::vector<AxisRef> axes;
  for (std::size_t axis = 0; axis < plan.mesh.axes().size(); ++axis) axes.push_back(plan.mesh.whole(axis));
  axes = without(without(without(std::move(axes), degrees.tensor), degrees.context), sharded);
  const TensorVersions versions = tensor_versions(*plan.graph);
  degrees.replicas.clear();
  const Bytes everywhere = bytes_of_kind(plan, versions, degrees, TensorVersion::Kind::kStored);
  degrees.replicas = axes;
  if (bytes_of_kind(plan, versions, degrees, TensorVersion::Kind::kStored) <= everywhere) return {};
  return axes;
}

bool keeps_gathered(const Plan& plan, GlobalDegrees degrees) {
  if (degrees.zero < 3) return false;
  const TensorVersions versions = tensor_versions(*plan.graph);
  degrees.may_keep = degrees.must_keep = false;
  const Bytes sharded = bytes_of_kind(plan, versions, degrees, TensorVersion::Kind::kKept);
  degrees.must_keep = true;
  return bytes_of_kind(plan, versions, degrees, TensorVersion::Kind::kKept) > sharded;
}

UniformPlan uniform_plan(const Plan& plan, GlobalDegrees degrees) {
  degrees.reduces_wide = false;  // of types each framework tells itself
  UniformPlan uniform;
  uniform.tensor = num_pieces(degrees.tensor);
  uniform.context = num_pieces(degrees.context);
  uniform.experts = num_pieces(degrees.experts);
  uniform.data = plan.mesh.num_devices() / uniform.tensor / uniform.context;
  const std::int64_t batch = batch_size(*plan.graph);
  uniform.micro_batch = std::max<std::int64_t>(1, batch / uniform.data);
  uniform.global_batch = batch * plan.graph->micro_batches();

  if (batch % uniform.data != 0) {
    uniform.differences.push_back(fmt::format("a batch of {} is not in {} equal pieces", batch, uniform.data));
  }
  const TensorVersions versions = tensor_versions(*plan.graph);
  const DegreesKind kind(*plan.graph, versions, plan.mesh, degrees);
  std::vector<std::vector<ExportedEntry>> lists = tensors_that_differ(plan, kind, versions);
  lists.insert(lists.begin(), operators_that_differ(plan, kind));
  // The entries for one parameter are folded separately.
  for (const std::vector<ExportedEntry>& list : lists) {
    for (const ExportedEntry& entry : fold_entries(list)) {
      uniform.differences.push_back(fmt::format("{}: {}", entry.name, entry.value));
    }
  }
  return uniform;
}

}  // namespace shardplan
