#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

using VersionId = Index<struct VersionTag>;

/// One layout of a tensor over its life. A tensor is produced or stored; put as its out_strategy says, if it has one;
/// delivered to its forward readers if they are several; kept for the backward pass; delivered to its backward readers
/// if they are several; put out. Each version is made of the one before it, by a redistribution that costs nothing if
/// the two place alike. A single reader reads the version before it and pays its own redistribution.
struct TensorVersion {
  enum class Kind {
    kProduced,   // as the producer's strategy gives it
    kStored,     // an input, parameter or state: its layout is a choice
    kWanted,     // as the producer's out_strategy wants it, right after it is produced
    kDelivered,  // for `readers`, several
    kKept,       // from the last forward reader to the backward ones
    kOutput,     // of the graph, after all readers; never partial
    kUpdated,    // a parameter's new value, in the layout it is stored in
  };
  Kind kind = Kind::kProduced;
  TensorId tensor;
  std::optional<VersionId> from;    // what it is made of; nothing for the first
  std::optional<VersionId> stored;  // kDelivered, kKept of a stored tensor: its first version, which it may share
                                    // memory with; kUpdated: the version whose layout it has
  std::vector<Reader> readers;      // that read this version, in program order
  std::vector<VersionId> next;      // versions made of it
  std::uint32_t begin = 0;  // life in schedule times [begin, end): operator k runs at time k, and what a version
                            // is made with just before the operator of time `begin` (kProduced: by it). Where a
                            // view reads last it ends at that time, since the view goes on in the same memory; a new
                            // value that is written in the place of the old one has no life of its own
  std::uint32_t end = 0;
  /// The last reader, where nothing needs the version any more once that one's redistribution is done. The version's
  /// life ends when that operator begins, which holds the operand in its own layout while it runs.
  std::optional<Reader> last_reader;
  std::int64_t runs = 1;  // how often a step makes it: with every micro-batch, or once
};

/// The versions of all tensors but constants (those are made where they are read), in an order in which `from` comes
/// first. Fixed by the graph alone.
struct TensorLives {
  IdVector<VersionId, TensorVersion> versions;
  IdVector<TensorId, std::optional<VersionId>> first;                // by tensor; nothing for constants
  IdVector<OperatorId, std::vector<std::optional<VersionId>>> read;  // by operator and operand; nothing for constants
  std::uint32_t num_times = 0;                                       // operators, and the end of the step
};

TensorLives tensor_lives(const OperatorGraph& graph);

}  // namespace shardplan
