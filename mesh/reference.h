#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/operator_graph.h"
#include "mesh/data.h"

namespace shardplan {

/// One step of a graph on one device, no mesh, no program: every operator's kernel on the whole iteration space, in
/// program order. What the mesh is compared with.
struct ReferenceStep {
  IdVector<TensorId, TensorValues> tensors;  // all of the graph
};

/// `stored` gives what inputs, parameters and states hold (constants are made here).
using StoredValues = std::function<TensorValues(TensorId)>;

/// Requires a kernel for every operator (`operators_without_kernel` is empty).
ReferenceStep run_reference(const OperatorGraph& graph, const StoredValues& stored, std::uint64_t seed,
                            std::uint64_t step, Precision precision);

/// A step twice, exactly and rounded to float after every operator: how far the two are apart says how far a tensor's
/// numbers mean anything. The gradient of an attention key bias is truly 0, so all that is computed for it is rounding.
struct ReferencePair {
  ReferenceStep exact;
  ReferenceStep rounded;
  IdVector<TensorId, double> rounding;  // max |exact - rounded|
};
ReferencePair run_reference_pair(const OperatorGraph& graph, const StoredValues& stored, std::uint64_t seed,
                                 std::uint64_t step);

/// Names of operators that cannot be executed, in program order.
std::vector<std::string> operators_without_kernel(const OperatorGraph& graph);

}  // namespace shardplan
