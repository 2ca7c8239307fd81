#include "simulator/checkpoint/training_checkpoint.h"

#include <algorithm>

#include "base/error.h"
#include "simulator/checkpoint/checkpoint_match.h"
#include "simulator/checkpoint/tensor_bytes.h"
#include "simulator/execute/collectives.h"

namespace shardplan {
namespace {

/// The values that the next step is given, except inputs, as the end of a step leaves them.
std::vector<Binding> stored_values(const ParallelProgram& program, const OperatorGraph& graph) {
  std::map<TensorId, ValueId> updated;
  for (const Binding& binding : program.updates) updated[binding.tensor] = binding.value;
  std::vector<Binding> stored;
  for (Binding binding : program.given) {
    if (graph.tensor(binding.tensor).kind == TensorKind::kInput) continue;
    const auto update = updated.find(binding.tensor);
    if (update != updated.end()) binding.value = update->second;
    stored.push_back(binding);
  }
  return stored;
}

/// A device's buffer without the padding of an uneven piece.
std::vector<std::byte> piece_bytes(const TensorValues& buffer, const Shape& padded, const Shape& shape) {
  if (shape == padded) return bytes_of_numbers(buffer);
  TensorValues piece(static_cast<std::size_t>(num_elements(shape)));
  for_each_shared_row(whole_piece(padded), whole_piece(shape),
                      [&](std::int64_t from, std::int64_t to, std::int64_t count) {
                        std::copy_n(buffer.begin() + from, count, piece.begin() + to);
                      });
  return bytes_of_numbers(piece);
}

}  // namespace

CheckpointForm stored_form(const ParallelProgram& program, const OperatorGraph& graph, std::int64_t step,
                           std::uint64_t seed) {
  CheckpointForm form;
  form.model = graph.name();
  form.step = step;
  form.seed = seed;
  form.mesh = program.mesh;
  for (const Binding& binding : stored_values(program, graph)) {
    const GraphTensor& tensor = graph.tensor(binding.tensor);
    form.tensors.push_back({tensor.name, kSimulatedDtype, tensor.type.shape, program.values[binding.value].layout});
    if (tensor.padding) form.tensors.back().unpadded = real_shape(*tensor.padding);
  }
  return form;
}

void save_checkpoint(const std::string& folder, const CheckpointForm& form, const ParallelProgram& program,
                     const OperatorGraph& graph, const Executor& executor) {
  SHARDPLAN_CHECK(executor.is_done());
  const std::vector<Binding> stored = stored_values(program, graph);
  write_checkpoint(folder, form, [&](std::size_t t, std::int64_t rank) {
    const ProgramValue& value = program.values[stored[t].value];
    const PlacedValue& placed = executor.value(stored[t].value);
    if (form.is_integrated) return bytes_of_numbers(gather(placed.data, value.type.shape, value.layout, program.mesh));
    const Shape shape = held_piece(value.layout, program.mesh, value.type.shape, rank).shape();
    return piece_bytes(placed.data[static_cast<std::size_t>(rank)], value.local_shape, shape);
  });
}

CheckpointForm form_for_plan(const Checkpoint& checkpoint, const ParallelProgram& program, const OperatorGraph& graph,
                             std::vector<std::string>& notices) {
  CheckpointForm form = stored_form(program, graph, checkpoint.form().step, checkpoint.form().seed);
  CheckpointMatch match(checkpoint);
  std::vector<CheckpointTensor> tensors;
  for (CheckpointTensor& tensor : form.tensors) {
    const std::optional<std::size_t> found = match.find(graph.tensor(*graph.find_tensor(tensor.name)));
    if (!found) continue;
    const CheckpointTensor& stored = checkpoint.form().tensors[*found];
    if (stored.shape != tensor.shape) {
      match.add_other_shape(tensor.name, stored.shape, tensor.shape);
      continue;
    }
    if (stored.unpadded != tensor.unpadded) {
      match.add_other_padding(tensor.name, stored.shape, stored.unpadded, tensor.unpadded);
      continue;
    }
    tensor.dtype = stored.dtype;
    tensors.push_back(std::move(tensor));
  }
  for (std::string& notice : match.notices()) notices.push_back(std::move(notice));
  form.tensors = std::move(tensors);
  return form;
}

LoadedTensors load_checkpoint(Checkpoint& checkpoint, const ParallelProgram& program, const OperatorGraph& graph) {
  LoadedTensors loaded;
  const CheckpointForm form = form_for_plan(checkpoint, program, graph, loaded.notices);
  for (const CheckpointTensor& tensor : form.tensors) {
    const std::size_t stored = *checkpoint.find(tensor.name);
    loaded.values[*graph.find_tensor(tensor.name)] = read_numbers(checkpoint, stored, whole_piece(tensor.shape));
  }
  start_master_copies(graph, loaded.values);
  return loaded;
}

}  // namespace shardplan
