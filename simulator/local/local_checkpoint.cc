#include "simulator/local/local_checkpoint.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "simulator/checkpoint/tensor_bytes.h"

namespace shardplan {
namespace {

PieceRuns runs_of(const RankPiece& piece) {
  PieceRuns runs;
  for (std::size_t d = 0; d < piece.shape.size(); ++d) runs.dimensions.push_back({{piece.begin[d], piece.shape[d]}});
  return runs;
}

bool is_stored(const GraphTensor& tensor) {
  return tensor.kind == TensorKind::kParameter || tensor.kind == TensorKind::kState;
}

/// A fault of the same words is one, whatever the number of ranks that have it.
void add_fault(std::vector<Diagnostic>& faults, const std::string& path, const std::string& message) {
  const auto is_it = [&](const Diagnostic& known) { return known.message == message; };
  if (std::none_of(faults.begin(), faults.end(), is_it)) faults.push_back({{path, 0, 0}, message, {}});
}

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

}  // namespace

CheckpointForm local_form(const std::vector<std::shared_ptr<const Model>>& ranks, const RankGraphs& run,
                          std::int64_t step, std::uint64_t seed) {
  CheckpointForm form;
  form.model = ranks[0]->name;
  form.step = step;
  form.seed = seed;
  form.is_per_device = true;
  form.mesh = mesh_of_ranks(static_cast<std::int64_t>(ranks.size()));
  const auto pieces = rank_pieces(ranks, run.graphs);
  std::map<std::string, std::size_t> by_name;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& [id, piece] : pieces[rank]) {
      const GraphTensor& tensor = run.graphs[rank].tensor(id);
      if (!is_stored(tensor)) continue;
      const auto [at, is_new] = by_name.emplace(tensor.name, form.tensors.size());
      if (is_new) {
        form.tensors.push_back(
            {tensor.name, kSimulatedDtype, piece.whole, TensorLayout::replicated(piece.whole.size()), {}});
      }
      CheckpointTensor& of = form.tensors[at->second];
      if (of.shape != piece.whole) {
        throw InputError(tensor.place, "{}: the ranks hold it in different numbers of dimensions", tensor.name);
      }
      of.pieces.emplace(static_cast<std::int64_t>(rank), runs_of(piece));
    }
  }
  return form;
}

void save_ranks(const std::string& folder, const CheckpointForm& form, const RankGraphs& run,
                const LocalExecutor& executor) {
  write_checkpoint(folder, form, [&](std::size_t t, std::int64_t rank) {
    const OperatorGraph& graph = run.graphs[static_cast<std::size_t>(rank)];
    return bytes_of_numbers(executor.stored(rank, *graph.find_tensor(form.tensors[t].name)));
  });
}

LoadedRanks load_ranks(Checkpoint& checkpoint, const std::vector<std::shared_ptr<const Model>>& ranks,
                       const RankGraphs& run) {
  LoadedRanks loaded;
  std::vector<Diagnostic> faults;
  std::vector<std::string> fresh;
  std::set<std::string> taken;
  const std::string& path = checkpoint.path();
  const auto pieces = rank_pieces(ranks, run.graphs);
  loaded.values.resize(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& [id, piece] : pieces[rank]) {
      const GraphTensor& tensor = run.graphs[rank].tensor(id);
      if (!is_stored(tensor)) continue;
      const std::optional<std::size_t> found = checkpoint.find(tensor.name);
      if (!found && tensor.kind == TensorKind::kState) {
        add_name(fresh, tensor.name);
        continue;
      }
      if (!found) {
        add_fault(faults, path, fmt::format("has no tensor '{}', which the model has", tensor.name));
        continue;
      }
      taken.insert(tensor.name);
      const Shape& stored = checkpoint.form().tensors[*found].shape;
      const bool is_alike = piece.is_own && stored == tensor.type.shape;  // one for all ranks
      if (stored != piece.whole && !is_alike) {
        add_fault(faults, path,
                  fmt::format("tensor '{}' has the shape {}, in the model it has {}{}", tensor.name, to_string(stored),
                              to_string(piece.whole),
                              piece.is_own ? fmt::format(", one for each of {} ranks", ranks.size()) : ""));
        continue;
      }
      try {
        loaded.values[rank][id] = read_numbers(checkpoint, *found, is_alike ? whole_piece(stored) : runs_of(piece),
                                               static_cast<std::int64_t>(rank));
      } catch (const InputError& error) {
        for (const Diagnostic& fault : error.diagnostics()) add_fault(faults, fault.place.file, fault.message);
      }
    }
  }
  if (!faults.empty()) throw InputError(std::move(faults));
  std::vector<std::string> extra;
  for (const CheckpointTensor& stored : checkpoint.form().tensors) {
    if (!taken.contains(stored.name)) extra.push_back(stored.name);
  }
  if (!fresh.empty()) {
    loaded.notices.push_back(fmt::format("optimizer states that the checkpoint does not hold: {}", some_names(fresh)));
  }
  if (!extra.empty()) {
    loaded.notices.push_back(
        fmt::format("tensors of the checkpoint that the model does not have: {}", some_names(extra)));
  }
  return loaded;
}

}  // namespace shardplan
