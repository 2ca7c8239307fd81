#include "simulator/workers/run_worker.h"

#include <algorithm>

#include "base/error.h"

namespace shardplan {
namespace {

/// A tensor's initial value in a run; for inputs, that of a micro-batch.
TensorValues value_of(const OperatorGraph& graph, const StoredTensors& stored, const WorkerRunOptions& options,
                      TensorId id, std::uint64_t micro_batch) {
  const auto found = stored.find(graph.tensor(id).name);
  if (found != stored.end()) return found->second;
  const auto count = static_cast<std::uint64_t>(graph.micro_batches());
  const std::uint64_t batch = graph.is_training() ? micro_batch % count : options.first_batch + micro_batch;
  return draw_tensor(graph, id, options.seed, batch, States::kFresh);
}

class WorkerRun {
 public:
  WorkerRun(const ParallelProgram& program, const OperatorGraph& graph, WorkerLink& link, StoredTensors& stored,
            const WorkerRunOptions& options)
      : program_(program), graph_(graph), link_(link), stored_(stored), options_(options) {
    for (const TensorId id : scalar_output_tensors(graph)) {
      const auto output = std::find_if(program.outputs.begin(), program.outputs.end(),
                                       [&](const Binding& binding) { return binding.tensor == id; });
      SHARDPLAN_CHECK(output != program.outputs.end());
      scalars_.push_back(*output);
    }
  }

  std::vector<SimulatedScalar> run() {
    std::vector<SimulatedScalar> results;
    for (const std::string& name : scalar_outputs(graph_)) results.push_back({name, {}});
    Executor executor(program_, graph_,
                      {.seed = options_.seed,
                       .threads = options_.threads,
                       .stop = options_.stop,
                       .worker = link_.rank(),
                       .channel = &link_});
    const StoredValues given = [&](TensorId id, std::uint64_t micro_batch) {
      return value_of(graph_, stored_, options_, id, micro_batch);
    };
    for (int i = 0; i < options_.steps; ++i) {
      const auto step = static_cast<std::uint64_t>(i);
      if (i == 0) {
        executor.start(step, given);
      } else {
        executor.start_next(step, given);
      }
      while (!executor.is_done()) executor.run_next();
      const std::vector<double> found = gathered(executor);
      for (std::size_t k = 0; k < found.size(); ++k) results[k].steps.push_back({0, found[k]});
    }
    keep(executor);
    return link_.rank() == 0 ? results : std::vector<SimulatedScalar>();
  }

 private:
  /// The scalar outputs on worker 0, sent there by the workers that have them.
  std::vector<double> gathered(const Executor& executor) {
    std::vector<double> found;
    for (std::size_t k = 0; k < scalars_.size(); ++k) {
      const ValueId id = scalars_[k].value;
      const int owner = program_.values[id].worker;
      const std::size_t number = program_.instructions.size() + k;
      if (owner == link_.rank() && link_.rank() == 0) {
        found.push_back(executor.value(id).data.front().front());
      } else if (owner == link_.rank()) {
        link_.send(0, number, {{executor.value(id).data.front().front()}});
      } else if (link_.rank() == 0) {
        const DeviceBuffers received = link_.receive(owner, number);
        if (received.size() != 1 || received[0].size() != 1) {
          throw InputError(SourcePlace{}, "worker {} sends another size than that of one number", owner);
        }
        found.push_back(received[0][0]);
      }
    }
    return found;
  }

  /// Keeps the tensors that this worker stores, whole.
  void keep(const Executor& executor) {
    std::map<TensorId, ValueId> last;
    for (const Binding& given : program_.given) {
      const bool is_here = program_.values[given.value].worker == link_.rank();
      if (is_here && !given.is_input) last[given.tensor] = given.value;
    }
    for (const Binding& update : program_.updates) {
      if (last.contains(update.tensor)) last[update.tensor] = update.value;
    }
    for (const auto& [tensor, id] : last) {
      const ProgramValue& value = program_.values[id];
      stored_[graph_.tensor(tensor).name] =
          gather(executor.value(id).data, value.type.shape, value.layout, program_.mesh);
    }
  }

  const ParallelProgram& program_;
  const OperatorGraph& graph_;
  WorkerLink& link_;
  StoredTensors& stored_;
  const WorkerRunOptions& options_;
  std::vector<Binding> scalars_;
};

}  // namespace

std::int64_t largest_message(const ParallelProgram& program) {
  std::int64_t largest = 0;
  for (const Instruction& instruction : program.instructions) {
    if (instruction.kind != InstructionKind::kSend) continue;
    const Shape& shape = program.values[instruction.outputs.front()].local_shape;
    largest = std::max(largest, num_elements(shape) * static_cast<std::int64_t>(sizeof(double)));
  }
  return largest;
}

std::vector<SimulatedScalar> run_worker(const ParallelProgram& program, const OperatorGraph& graph, WorkerLink& link,
                                        StoredTensors& stored, const WorkerRunOptions& options) {
  return WorkerRun(program, graph, link, stored, options).run();
}

void run_one_device(const OperatorGraph& graph, StoredTensors& stored, const WorkerRunOptions& options,
                    std::vector<SimulatedScalar>& scalars) {
  const std::vector<TensorId> tensors = scalar_output_tensors(graph);
  const StoredValues given = [&](TensorId id, std::uint64_t micro_batch) {
    return value_of(graph, stored, options, id, micro_batch);
  };
  for (int i = 0; i < options.steps; ++i) {
    const ReferenceStep step =
        run_reference(graph, given, options.seed, static_cast<std::uint64_t>(i), Precision::kFloat64, options.stop);
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      scalars[k].steps[static_cast<std::size_t>(i)].one_device = step.tensors[tensors[k]].front();
    }
    for (const TensorId id : graph.tensors().ids()) {
      const std::optional<TensorId>& updates = graph.tensor(id).updates;
      if (updates) stored[graph.tensor(*updates).name] = step.tensors[id];
    }
  }
}

}  // namespace shardplan
