#include "simulator/execute/simulate.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "simulator/execute/executor.h"

namespace shardplan {

std::vector<SimulatedStep> simulate(const ParallelProgram& program, const OperatorGraph& graph,
                                    const SimulationOptions& options) {
  SHARDPLAN_CHECK(graph.loss().has_value());
  const TensorId loss = *graph.loss();
  const auto output = std::find_if(program.outputs.begin(), program.outputs.end(),
                                   [&](const Binding& binding) { return binding.tensor == loss; });
  SHARDPLAN_CHECK(output != program.outputs.end());

  std::map<TensorId, TensorValues> stored;  // on the one device
  const auto count = static_cast<std::uint64_t>(graph.micro_batches());
  const StoredValues given = [&](TensorId id, std::uint64_t micro_batch) {
    const auto found = stored.find(id);
    if (found != stored.end()) return found->second;
    return draw_tensor(graph, id, options.seed, micro_batch % count, States::kFresh);
  };
  Executor executor(program, graph, {.seed = options.seed, .threads = options.threads, .stop = options.stop});
  std::vector<SimulatedStep> steps;
  for (int i = 0; i < options.steps; ++i) {
    const auto step = static_cast<std::uint64_t>(i);
    if (i == 0) {
      executor.start(step, given);
    } else {
      executor.start_next(step, given);
    }
    while (!executor.is_done()) executor.run_next();
    const ReferenceStep reference = run_reference(graph, given, options.seed, step, Precision::kFloat64, options.stop);
    steps.push_back({reference.tensors[loss].front(), executor.value(output->value).data.front().front()});
    for (const TensorId id : graph.tensors().ids()) {
      const std::optional<TensorId>& updates = graph.tensor(id).updates;
      if (updates) stored[*updates] = reference.tensors[id];
    }
  }
  return steps;
}

}  // namespace shardplan
