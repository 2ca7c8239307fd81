#include "planner/problem/mode_layouts.h"

#include <utility>

#include "graph/weights.h"

namespace shardplan {
namespace {

using Layout = RareValue<TensorLayout>;

}  // namespace

IdVector<VersionId, RareValue<TensorLayout>> layouts_by_mode(const UserStrategies& decided,
                                                             const IdVector<OperatorId, char>& is_decided,
                                                             const OperatorGraph& graph, const TensorVersions& versions,
                                                             const DeviceMesh& mesh, bool reshard_after_forward) {
  IdVector<VersionId, Layout> layouts(versions.all.size());
  const auto as_produced = [&](const GraphTensor& tensor) {
    const OperatorId op = *tensor.producer;
    return result_layout(graph.operation(op), decided.operators[op][0], mesh, tensor.result);
  };
  // The layout that all readers of a version, and of versions made from it, take; from the last versions to the
  // first.
  struct Wanted {
    Layout layout;
    bool is_one = true;
  };
  IdVector<VersionId, Wanted> wanted(versions.all.size());
  for (std::size_t i = versions.all.size(); i-- > 0;) {
    const VersionId id(i);
    const TensorVersion& version = versions.all[id];
    Wanted& want = wanted[id];
    const auto add = [&](const Layout& layout) {
      if (!layout || (want.layout && *want.layout != *layout)) want.is_one = false;
      if (!want.layout) want.layout = layout;
    };
    for (const Reader& reader : version.readers) {
      const GraphOperator& op = graph.operators()[reader.op];
      const OperatorId owner = op.is_copy ? *op.forward : reader.op;
      if (!is_decided[owner]) {
        add(std::nullopt);
      } else {
        add(operand_layout(graph.operation(reader.op), decided.operators[owner][0], mesh, reader.operand));
      }
    }
    const bool is_searched =
        version.kind == TensorVersion::Kind::kDelivered || version.kind == TensorVersion::Kind::kKept;
    for (const VersionId next : version.next) {
      const TensorVersion::Kind kind = versions.all[next].kind;
      if (kind == TensorVersion::Kind::kOutput || kind == TensorVersion::Kind::kUpdated) continue;
      add(wanted[next].is_one ? wanted[next].layout : std::nullopt);
    }
    if (is_searched && version.keeping == TensorVersion::Keeping::kFree && want.is_one && want.layout)
      layouts[id] = want.layout;
    const GraphTensor& tensor = graph.tensor(version.tensor);
    // A parameter that is stored sharded, or its cast, is gathered again in the backward pass.
    const bool is_kept = version.kind == TensorVersion::Kind::kKept;
    if (layouts[id] && is_kept && reshard_after_forward) {
      if (tensor.kind == TensorKind::kParameter) layouts[id] = decided.stored[version.tensor];
      if (is_cast_parameter(graph, version.tensor) && is_decided[*tensor.producer]) layouts[id] = as_produced(tensor);
    }
    if (version.kind == TensorVersion::Kind::kOutput && tensor.producer && is_decided[*tensor.producer]) {
      TensorLayout layout = as_produced(tensor);
      layout.partial.clear();
      layouts[id] = std::move(layout);
    }
  }
  return layouts;
}

}  // namespace shardplan
