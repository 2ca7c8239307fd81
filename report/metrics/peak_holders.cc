#include "report/metrics/peak_holders.h"

#include <algorithm>
#include <map>

#include "graph/stored_updates.h"
#include "report/text/origin_words.h"

namespace shardplan {

std::vector<std::pair<std::string, Bytes>> peak_holders(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  std::map<std::string, std::size_t> position;
  std::vector<std::pair<std::string, Bytes>> holders;
  for (const MemoryProfile::Alive& alive : plan.memory.alive_at_peak) {
    const ProgramValue& value = plan.program.values[alive.value];
    std::string name = "buffers";
    if (value.tensor) {
      const GraphTensor& tensor = graph.tensor(*value.tensor);
      switch (tensor.kind) {
        case TensorKind::kInput:
          name = "inputs";
          break;
        case TensorKind::kParameter:
          name = is_cache(graph, *value.tensor) ? "caches" : "weights";
          break;
        case TensorKind::kState:
          name = "optimizer states";
          break;
        case TensorKind::kConstant:
          name = "constants";
          break;
        case TensorKind::kResult: {
          const Pass pass = tensor.producer ? graph.operators()[*tensor.producer].pass : Pass::kForward;
          const bool is_copy = tensor.producer && graph.operators()[*tensor.producer].is_copy;
          name = is_copy                   ? "recomputed activations"
                 : pass == Pass::kForward  ? "activations of " + folded_block(tensor.name)
                 : pass == Pass::kBackward ? "gradients"
                                           : "new weights and states";
        }
      }
    }
    const auto [found, is_new] = position.try_emplace(name, holders.size());
    if (is_new) holders.emplace_back(name, 0);
    holders[found->second].second += alive.bytes;
  }
  std::stable_sort(holders.begin(), holders.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return holders;
}

}  // namespace shardplan
