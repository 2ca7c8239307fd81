#include "graph/planned_graph.h"

#include "graph/differentiate.h"
#include "graph/recompute.h"

namespace shardplan {

OperatorGraph planned_graph(const Model& model) {
  return model.training ? recompute_marked(differentiate(model.graph, *model.training)) : model.graph;
}

}  // namespace shardplan
