#include "simulator/local/local_checkpoint.h"

#include <set>

#include "base/error.h"
#include "simulator/checkpoint/checkpoint_match.h"
#include "simulator/checkpoint/tensor_bytes.h"

namespace shardplan {
namespace {

bool is_stored(const GraphTensor& tensor) {
  return tensor.kind == TensorKind::kParameter || tensor.kind == TensorKind::kState;
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

CheckpointForm form_for_ranks(const Checkpoint& checkpoint, const std::vector<std::shared_ptr<const Model>>& ranks,
                              const RankGraphs& run, std::vector<std::string>& notices) {
  CheckpointForm form = local_form(ranks, run, checkpoint.form().step, checkpoint.form().seed);
  CheckpointMatch match(checkpoint);
  std::vector<CheckpointTensor> tensors;
  const auto pieces = rank_pieces(ranks, run.graphs);
  for (CheckpointTensor& tensor : form.tensors) {
    // Any rank with a part of the tensor knows its kind; tensors of which each rank has its own may differ in shape.
    std::optional<std::size_t> found;
    bool fits = true;
    for (const auto& [rank, runs] : tensor.pieces) {
      const OperatorGraph& graph = run.graphs[static_cast<std::size_t>(rank)];
      const TensorId id = *graph.find_tensor(tensor.name);
      found = match.find(graph.tensor(id));
      if (!found) break;
      const Shape& stored = checkpoint.form().tensors[*found].shape;
      const bool is_own = pieces[static_cast<std::size_t>(rank)].at(id).is_own;
      if (stored == tensor.shape || (is_own && stored == graph.tensor(id).type.shape)) continue;
      fits = false;
      match.add_other_shape(tensor.name, stored, tensor.shape,
                            is_own ? fmt::format(", one for each of {} ranks", ranks.size()) : "",
                            is_own ? "`begin:` beside the parameter says which part of a whole each rank holds" : "");
      break;
    }
    if (!found || !fits) continue;
    tensor.dtype = checkpoint.form().tensors[*found].dtype;
    tensors.push_back(std::move(tensor));
  }
  for (std::string& notice : match.notices()) notices.push_back(std::move(notice));
  form.tensors = std::move(tensors);
  return form;
}

LoadedRanks load_ranks(Checkpoint& checkpoint, const std::vector<std::shared_ptr<const Model>>& ranks,
                       const RankGraphs& run) {
  LoadedRanks loaded;
  loaded.values.resize(ranks.size());
  std::vector<Diagnostic> faults;
  std::set<std::string> known;  // so that a fault of many ranks is reported once
  const CheckpointForm form = form_for_ranks(checkpoint, ranks, run, loaded.notices);
  for (const CheckpointTensor& tensor : form.tensors) {
    const std::size_t stored = *checkpoint.find(tensor.name);
    for (const auto& [rank, piece] : tensor.pieces) {
      const OperatorGraph& graph = run.graphs[static_cast<std::size_t>(rank)];
      try {
        loaded.values[static_cast<std::size_t>(rank)][*graph.find_tensor(tensor.name)] =
            read_numbers(checkpoint, stored, source_piece(checkpoint.form().tensors[stored], tensor, piece), rank);
      } catch (const InputError& error) {
        for (const Diagnostic& fault : error.diagnostics()) {
          if (known.insert(fault.message).second) faults.push_back(fault);
        }
      }
    }
  }
  if (!faults.empty()) throw InputError(std::move(faults));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) start_master_copies(run.graphs[rank], loaded.values[rank]);
  return loaded;
}

}  // namespace shardplan
