#include "simulator/local/local_checkpoint.h"

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

LoadedRanks load_ranks(Checkpoint& checkpoint, const std::vector<std::shared_ptr<const Model>>& ranks,
                       const RankGraphs& run) {
  LoadedRanks loaded;
  CheckpointMatch match(checkpoint);
  const auto pieces = rank_pieces(ranks, run.graphs);
  loaded.values.resize(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& [id, piece] : pieces[rank]) {
      const GraphTensor& tensor = run.graphs[rank].tensor(id);
      if (!is_stored(tensor)) continue;
      const std::optional<std::size_t> found = match.find(tensor);
      if (!found) continue;
      const Shape& stored = checkpoint.form().tensors[*found].shape;
      const bool is_alike = piece.is_own && stored == tensor.type.shape;  // one for all ranks
      if (stored != piece.whole && !is_alike) {
        match.add_other_shape(tensor.name, stored, piece.whole,
                              piece.is_own ? fmt::format(", one for each of {} ranks", ranks.size()) : "");
        continue;
      }
      try {
        loaded.values[rank][id] = read_numbers(checkpoint, *found, is_alike ? whole_piece(stored) : runs_of(piece),
                                               static_cast<std::int64_t>(rank));
      } catch (const InputError& error) {
        for (const Diagnostic& fault : error.diagnostics()) match.add_fault(fault);
      }
    }
  }
  loaded.notices = match.notices();
  return loaded;
}

}  // namespace shardplan
