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
  LocalProgram program;  // refers to `graphs`
};
/// Throws InputError at an operator that has no kernel and is not a communication; `name` is the model's.
void check_runs(const OperatorGraph& graph, const std::string& name);
/// Throws InputError as `check_runs` and `local_program` do.
std::unique_ptr<const RankGraphs> rank_graphs(const std::vector<std::shared_ptr<const Model>>& ranks);

/// The position of a rank's input, parameter or state in the whole that all ranks hold together.
struct RankPiece {
  Shape whole;
  Shape begin;
  Shape shape;
  /// Every rank has its own tensor, for instance a layerwise_parallel parameter without `begin`: the whole has the
  /// ranks as a new first dimension, and the piece is one entry of it.
  bool is_own = false;

  bool operator==(const RankPiece&) const = default;
};
/// The positions of the whole that the piece covers.
PieceRuns runs_of(const RankPiece& piece);

/// By rank. The file's `begin` says where a piece begins (a state's is that of its parameter), and the whole ends where
/// the last piece does. Without `begin` an input, or a parameter whose gradients are exchanged, is whole on every rank;
/// any other parameter is each rank's own, and so are its states.
std::vector<std::map<TensorId, RankPiece>> rank_pieces(const std::vector<std::shared_ptr<const Model>>& ranks,
                                                       const std::vector<OperatorGraph>& graphs);

}  // namespace shardplan
