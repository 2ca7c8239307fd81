#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/operator_graph.h"
#include "model/model.h"

namespace shardplan {

/// A factor of an operator that is still too small for something that only the caller can judge.
struct TooSmall {
  OperatorId op;
  std::size_t factor = 0;
};

/// What the small model must be able to do. Operators, factors and tensors are those of `planned_graph(model)`.
struct ShrinkRequest {
  /// The graph that is planned: the model's own, or its training graph. Must keep operators and tensors in one order
  /// whatever the sizes. Empty: the model's own.
  std::function<OperatorGraph(const Model&)> planned_graph;
  /// In how many pieces the plan cuts each factor of each operator, and each dimension of each tensor in any of its
  /// layouts. Either may be empty: nothing is cut.
  IdVector<OperatorId, std::vector<std::int64_t>> operator_pieces;
  IdVector<TensorId, std::vector<std::int64_t>> tensor_pieces;
  /// The same of cuts in pieces of unequal sizes (layouts/uneven.h), which stand here and not above; often empty.
  IdVector<OperatorId, std::vector<std::vector<std::int64_t>>> uneven_operator_pieces;
  IdVector<TensorId, std::vector<std::vector<std::int64_t>>> uneven_tensor_pieces;
  /// Whether sizes that are cut unequally keep their residue by the pieces, and with it which pieces are rows of whole
  /// smaller ones. Not where the pieces are those of a smaller mesh: then the pieces stay unequal, and that is all.
  bool keeps_residues = true;
  /// Looks at a small model and its planned graph: nothing, or a factor that must grow (a halo wider than the
  /// neighbour's piece, another redistribution than at full size, ...). May be empty.
  std::function<std::optional<TooSmall>(const Model&, const OperatorGraph&)> check;
  /// Whether whole numbers that are written in shapes and attributes become smaller as well as dims: each number
  /// wherever it is written, alone or, if the model is none then, together with its multiples. Dims that are expressions
  /// of others become smaller by themselves where the model exists so.
  bool shrinks_literals = false;
  bool keeps_apart = true;            // factors of one operator that had different sizes keep different sizes
  std::int64_t least_local = 2;       // extent of a cut factor on one device: at 1, blocked and strided look alike
  std::int64_t least_normalised = 8;  // values that a softmax or norm runs over: two keep only the sign
  int max_reads = 300;                // how often the model may be asked for at other sizes
};

struct ShrunkDim {
  std::string name;  // a dim's, or "the number 96"
  std::int64_t from = 0;
  std::int64_t to = 0;

  bool operator==(const ShrunkDim&) const = default;
};

struct ShrunkModel {
  Model model;
  std::vector<ShrunkDim> dims;     // that are smaller now, derived ones included, by the file's order; then literals
  std::vector<std::string> notes;  // what stayed at full size, and why
  /// What the dimensions of tensors come from: positions in `origins`, which are names of dims and literals.
  IdVector<TensorId, std::vector<std::size_t>> origin_of;
  std::vector<std::vector<std::string>> origins;
};

/// The same model with small dims, for proofs: every factor that its pieces divide stays divisible by them, every other
/// one indivisible; factors of one operator that had different sizes keep different sizes (`keeps_apart`; except height
/// and width of images); and nothing falls below the least sizes of the request unless it was below before. Dims that
/// count copies (`repeat:`) stay. Never fails: at worst the model comes back as it is.
ShrunkModel shrink(const Model& model, const ShrinkRequest& request);

}  // namespace shardplan
