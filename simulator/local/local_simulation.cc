#include "simulator/local/local_simulation.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/model_source.h"
#include "simulator/checkpoint/piece.h"
#include "simulator/execute/simulate.h"

namespace shardplan {
namespace {

constexpr double kMostNumbersOfRanks = 5e8;  // 4 GB of float64

using RankPieces = std::vector<std::map<TensorId, RankPiece>>;

double count_of(const Shape& shape) {
  double elements = 1;
  for (const std::int64_t extent : shape) elements *= static_cast<double>(extent);
  return elements;
}

/// The shape drawn for a tensor: the whole or, if each rank has its own tensor, that of one rank.
const Shape& drawn_shape(const GraphTensor& tensor, const RankPiece& piece) {
  return piece.is_own ? tensor.type.shape.items() : piece.whole;
}

/// Counts the numbers: every rank's stored and computed tensors, and wholes, which are drawn once.
void check_numbers(const Model& model, const RankGraphs& run, const RankPieces& pieces) {
  double numbers = 0;
  std::map<std::string, double> wholes;
  for (std::size_t rank = 0; rank < run.graphs.size(); ++rank) {
    for (const GraphTensor& tensor : run.graphs[rank].tensors()) numbers += count_of(tensor.type.shape);
    for (const auto& [id, piece] : pieces[rank]) {
      const GraphTensor& tensor = run.graphs[rank].tensor(id);
      wholes[tensor.name] = std::max(wholes[tensor.name], count_of(drawn_shape(tensor, piece)));
    }
  }
  for (const auto& [name, elements] : wholes) numbers += elements;
  if (numbers <= kMostNumbersOfRanks) return;
  throw InputError(model.parallel.place,
                   "the {} ranks hold {:.1e} numbers, more than {:.0e}; smaller sizes (--dim B=8) show the same",
                   run.graphs.size(), numbers, kMostNumbersOfRanks);
}

TensorValues cut_from(const TensorValues& whole, const RankPiece& piece) {
  TensorValues values(static_cast<std::size_t>(num_elements(piece.shape)));
  for_each_shared_row(whole_piece(piece.whole), runs_of(piece),
                      [&](std::int64_t from, std::int64_t to, std::int64_t count) {
                        std::copy_n(whole.begin() + from, count, values.begin() + to);
                      });
  return values;
}

std::string output_name(const OperatorGraph& graph, TensorId id) {
  return id == graph.loss() ? "loss" : graph.tensor(id).name;
}

}  // namespace

std::vector<LocalScalar> simulate_locally(const std::vector<std::shared_ptr<const Model>>& ranks, const RankGraphs& run,
                                          const LocalSimulationOptions& options) {
  std::vector<LocalScalar> results;
  for (const OperatorGraph& graph : run.graphs) {
    for (const std::string& name : scalar_outputs(graph)) {
      const auto is_it = [&](const LocalScalar& known) { return known.name == name; };
      if (std::none_of(results.begin(), results.end(), is_it)) results.push_back({name, {}});
    }
  }
  if (results.empty()) {
    throw InputError({ranks[0]->source->file(), 0, 0},
                     "nothing to simulate: the model has no 'loss' and no output of one number");
  }
  const RankPieces pieces = rank_pieces(ranks, run.graphs);
  check_numbers(*ranks[0], run, pieces);
  // Drawn once for all ranks, so that a tensor that all of them share is the same on each.
  std::map<std::pair<std::string, Shape>, TensorValues> drawn;
  const auto given = [&](std::uint64_t step) {
    return [&, step](std::int64_t rank, TensorId id) {
      const auto r = static_cast<std::size_t>(rank);
      if (!options.loaded.empty()) {
        const auto found = options.loaded[r].find(id);
        if (found != options.loaded[r].end()) return found->second;
      }
      const OperatorGraph& graph = run.graphs[r];
      const RankPiece& piece = pieces[r].at(id);
      const Shape& shape = drawn_shape(graph.tensor(id), piece);
      const auto [whole, is_new] = drawn.try_emplace({graph.tensor(id).name, shape});
      const std::uint64_t batch = graph.is_training() ? 0 : step;
      if (is_new) whole->second = draw_tensor(graph, id, shape, options.seed, batch, States::kFresh);
      return piece.is_own || piece.shape == shape ? whole->second : cut_from(whole->second, piece);
    };
  };
  LocalExecutor executor(run.program, options.seed, options.stop);
  for (int i = 0; i < options.steps; ++i) {
    const auto step = static_cast<std::uint64_t>(options.first_step + i);
    executor.run(step, given(step));
    drawn.clear();
    for (LocalScalar& scalar : results) {
      std::vector<std::optional<double>>& values = scalar.steps.emplace_back(run.graphs.size());
      for (std::size_t rank = 0; rank < run.graphs.size(); ++rank) {
        for (const TensorId id : scalar_output_tensors(run.graphs[rank])) {
          if (output_name(run.graphs[rank], id) != scalar.name) continue;
          values[rank] = executor.value(static_cast<std::int64_t>(rank), id).front();
        }
      }
    }
    if (options.after_step) options.after_step(options.first_step + i + 1, executor);
  }
  return results;
}

}  // namespace shardplan
