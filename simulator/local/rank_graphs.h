#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "program/local_program.h"
#include "simulator/checkpoint/piece.h"

namespace shardplan {

/// The graphs of a model written per device, by rank, and the order in which all of them run.
struct RankGraphs {
  std::vector<OperatorGraph> graphs;
  LocalProgram program;  // points to `graphs`
};
/// Throws InputError at an operator that has no kernel and is no communication; `name` is the model's.
void check_runs(const OperatorGraph& graph, const std::string& name);
/// Throws InputError: as `check_runs`, and what `local_program` throws.
std::unique_ptr<const RankGraphs> rank_graphs(const std::vector<std::shared_ptr<const Model>>& ranks);

/// Where what a rank holds of an input, parameter or state lies in the whole that all ranks hold together.
struct RankPiece {
  Shape whole;
  Shape begin;
  Shape shape;
  /// Every rank has a tensor of its own, as of a layerwise_parallel parameter without `begin`: the whole has the ranks as
  /// a new first dimension, of which the piece is one.
  bool is_own = false;

  bool operator==(const RankPiece&) const = default;
};
/// The entries of the whole that the piece covers.
PieceRuns runs_of(const RankPiece& piece);

/// By rank. `begin` of the file says where a piece begins (states as their parameter), and the whole ends where the last
/// piece does. Without it a tensor is whole on every rank: an input, or a parameter whose gradients are exchanged; any
/// other parameter and its states are the rank's own.
std::vector<std::map<TensorId, RankPiece>> rank_pieces(const std::vector<std::shared_ptr<const Model>>& ranks,
                                                       const std::vector<OperatorGraph>& graphs);

}  // namespace shardplan
