#pragma once

#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

/// How the weights of products are stored.
enum class StoredWeights {
  kAsDeclared,  // and cast in every step: training
  kInFloat8,    // those that nothing else reads: inference, whose software quantises them when it loads them
};

/// A forward graph whose `products` multiply in f8e4m3, as torchao's Float8Linear and Transformer Engine's Linear do: both
/// operands are read through a Cast, "<tensor>.f8e4m3", which their readers share; the result keeps its type. Operands
/// that are of f8e4m3 already stay as they are. A weight is cast in the layout in which the user stores it, and gathered
/// afterwards (FSDP's float8 all-gather); the layouts of other casts are open even where those of the products are given,
/// so that a search may cast before it gathers. Gradients follow from the products'
/// (operators/families/contraction.cc): that of the result is cast to f8e4m3 too, and multiplied by the same operands.
OperatorGraph products_in_float8(const OperatorGraph& graph, const std::vector<OperatorId>& products,
                                 StoredWeights weights);

}  // namespace shardplan
