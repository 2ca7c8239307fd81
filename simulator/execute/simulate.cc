#include "simulator/execute/simulate.h"

#include <algorithm>

#include "base/error.h"

namespace shardplan {
namespace {

std::string name_of(const OperatorGraph& graph, TensorId id) {
  return id == graph.loss() ? "loss" : graph.tensor(id).name;
}

}  // namespace

std::vector<TensorId> scalar_output_tensors(const OperatorGraph& graph) {
  std::vector<TensorId> scalars;
  if (graph.loss()) scalars.push_back(*graph.loss());
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    if (tensor.is_output && id != graph.loss() && num_elements(tensor.type.shape) == 1) scalars.push_back(id);
  }
  return scalars;
}

std::vector<std::string> scalar_outputs(const OperatorGraph& graph) {
  std::vector<std::string> names;
  for (const TensorId id : scalar_output_tensors(graph)) names.push_back(name_of(graph, id));
  return names;
}

std::vector<SimulatedScalar> simulate(const ParallelProgram& program, const OperatorGraph& graph,
                                      const SimulationOptions& options) {
  const std::vector<TensorId> scalars = scalar_output_tensors(graph);
  std::vector<ValueId> on_mesh;
  std::vector<SimulatedScalar> results;
  for (const TensorId id : scalars) {
    const auto output = std::find_if(program.outputs.begin(), program.outputs.end(),
                                     [&](const Binding& binding) { return binding.tensor == id; });
    SHARDPLAN_CHECK(output != program.outputs.end());
    on_mesh.push_back(output->value);
    results.push_back({name_of(graph, id), {}});
  }

  std::map<TensorId, TensorValues> stored = options.loaded;  // on the reference device
  const auto count = static_cast<std::uint64_t>(graph.micro_batches());
  const StoredValues given = [&](TensorId id, std::uint64_t micro_batch) {
    const auto found = stored.find(id);
    if (found != stored.end()) return found->second;
    const std::uint64_t batch = graph.is_training() ? micro_batch % count : micro_batch;
    return draw_tensor(graph, id, options.seed, batch, States::kFresh);
  };
  Executor executor(program, graph, {.seed = options.seed, .threads = options.threads, .stop = options.stop});
  for (int i = 0; i < options.steps; ++i) {
    const auto step = static_cast<std::uint64_t>(options.first_step + i);
    if (i == 0) {
      executor.start(step, given);
    } else {
      executor.start_next(step, given);
    }
    while (!executor.is_done()) executor.run_next();
    const ReferenceStep reference = run_reference(graph, given, options.seed, step, Precision::kFloat64, options.stop);
    for (std::size_t k = 0; k < scalars.size(); ++k) {
      results[k].steps.push_back(
          {reference.tensors[scalars[k]].front(), executor.value(on_mesh[k]).data.front().front()});
    }
    for (const TensorId id : graph.tensors().ids()) {
      const std::optional<TensorId>& updates = graph.tensor(id).updates;
      if (updates) stored[*updates] = reference.tensors[id];
    }
    if (options.after_step) options.after_step(options.first_step + i + 1, executor);
  }
  return results;
}

}  // namespace shardplan
