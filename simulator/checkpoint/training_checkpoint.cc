#include "simulator/checkpoint/training_checkpoint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "simulator/execute/collectives.h"

namespace shardplan {
namespace {

constexpr char kDtype[] = "F64";
constexpr std::size_t kMostNamed = 3;

/// Where the end of a step leaves what the next one is given; inputs are no part of it.
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

std::vector<std::byte> bytes_of(std::span<const double> numbers) {
  std::vector<std::byte> bytes(numbers.size_bytes());
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

/// A device's buffer without what pads an uneven piece.
std::vector<std::byte> piece_bytes(const TensorValues& buffer, const Shape& padded, const Shape& shape) {
  if (shape == padded) return bytes_of(buffer);
  TensorValues piece(static_cast<std::size_t>(num_elements(shape)));
  for_each_shared_row(whole_piece(padded), whole_piece(shape),
                      [&](std::int64_t from, std::int64_t to, std::int64_t count) {
                        std::copy_n(buffer.begin() + from, count, piece.begin() + to);
                      });
  return bytes_of(piece);
}

double half_number(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

template <class Stored, class Convert>
TensorValues converted(const std::vector<std::byte>& bytes, const Convert& convert) {
  TensorValues values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert(stored);
  }
  return values;
}

/// Nothing for dtypes that hold no numbers of this program.
std::optional<TensorValues> numbers_of(const std::vector<std::byte>& bytes, const std::string& dtype) {
  const auto plain = [](auto number) { return static_cast<double>(number); };
  if (dtype == "F64") return converted<double>(bytes, plain);
  if (dtype == "F32") return converted<float>(bytes, plain);
  if (dtype == "F16") return converted<std::uint16_t>(bytes, half_number);
  if (dtype == "BF16") {
    return converted<std::uint16_t>(
        bytes, [](std::uint16_t b) { return double{std::bit_cast<float>(std::uint32_t{b} << 16)}; });
  }
  if (dtype == "I64") return converted<std::int64_t>(bytes, plain);
  if (dtype == "I32") return converted<std::int32_t>(bytes, plain);
  return std::nullopt;
}

std::string some_of(const std::vector<std::string>& names) {
  const auto shown = std::min(names.size(), kMostNamed);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
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
    form.tensors.push_back({tensor.name, kDtype, tensor.type.shape, program.values[binding.value].layout});
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
    if (form.is_integrated) return bytes_of(gather(placed.data, value.type.shape, value.layout, program.mesh));
    const Shape shape = held_piece(value.layout, program.mesh, value.type.shape, rank).shape();
    return piece_bytes(placed.data[static_cast<std::size_t>(rank)], value.local_shape, shape);
  });
}

CheckpointForm form_for_plan(const Checkpoint& checkpoint, const ParallelProgram& program, const OperatorGraph& graph,
                             std::vector<std::string>& notices) {
  CheckpointForm form = stored_form(program, graph, checkpoint.form().step, checkpoint.form().seed);
  std::vector<Diagnostic> faults;
  std::vector<std::string> fresh;
  std::set<std::string> taken;
  const SourcePlace place{checkpoint.path(), 0, 0};
  std::vector<CheckpointTensor> tensors;
  for (CheckpointTensor& tensor : form.tensors) {
    const std::optional<std::size_t> found = checkpoint.find(tensor.name);
    const bool is_state = graph.tensor(*graph.find_tensor(tensor.name)).kind == TensorKind::kState;
    if (!found && is_state) {
      fresh.push_back(tensor.name);
      continue;
    }
    if (!found) {
      faults.push_back({place, fmt::format("has no tensor '{}', which the model has", tensor.name), {}});
      continue;
    }
    const CheckpointTensor& stored = checkpoint.form().tensors[*found];
    if (stored.shape != tensor.shape) {
      faults.push_back({place,
                        fmt::format("tensor '{}' has the shape {}, in the model it has {}", tensor.name,
                                    to_string(stored.shape), to_string(tensor.shape)),
                        {}});
      continue;
    }
    tensor.dtype = stored.dtype;
    taken.insert(tensor.name);
    tensors.push_back(std::move(tensor));
  }
  if (!faults.empty()) throw InputError(std::move(faults));
  form.tensors = std::move(tensors);
  std::vector<std::string> extra;
  for (const CheckpointTensor& stored : checkpoint.form().tensors) {
    if (!taken.contains(stored.name)) extra.push_back(stored.name);
  }
  if (!fresh.empty()) {
    notices.push_back(fmt::format("optimizer states that the checkpoint does not hold: {}", some_of(fresh)));
  }
  if (!extra.empty()) {
    notices.push_back(fmt::format("tensors of the checkpoint that the model does not have: {}", some_of(extra)));
  }
  return form;
}

LoadedTensors load_checkpoint(Checkpoint& checkpoint, const ParallelProgram& program, const OperatorGraph& graph) {
  LoadedTensors loaded;
  const CheckpointForm form = form_for_plan(checkpoint, program, graph, loaded.notices);
  for (const CheckpointTensor& tensor : form.tensors) {
    auto numbers = numbers_of(checkpoint.read(*checkpoint.find(tensor.name), whole_piece(tensor.shape)), tensor.dtype);
    if (!numbers) {
      throw InputError({checkpoint.path(), 0, 0}, "tensor '{}' is {}; expected F64, F32, F16, BF16, I64 or I32",
                       tensor.name, tensor.dtype);
    }
    loaded.values[*graph.find_tensor(tensor.name)] = std::move(*numbers);
  }
  return loaded;
}

}  // namespace shardplan
