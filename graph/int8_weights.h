#pragma once

#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

/// A graph for inference in which the weights of `products` are stored in i8 and widened as they are read ("weight-only"
/// quantisation, W8A16: gpt-fast, vLLM, TensorRT-LLM): through a Cast, "<weight>.<type>", to the type in which the product
/// computes. Compilers and hand-written kernels read the byte within the product (costmodel/kernel_fusion.h). Weights that
/// anything but products reads stay as they are. The scales of rows, which are multiplied into the result, are left out.
OperatorGraph weights_in_int8(const OperatorGraph& graph, const std::vector<OperatorId>& products);

}  // namespace shardplan
