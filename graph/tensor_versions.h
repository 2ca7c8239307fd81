#pragma once

#include <cstdint>
#include <vector>

#include "graph/operator_graph.h"

namespace shardplan {

using VersionId = Index<struct VersionTag>;

/// One layout of a tensor over its life. A tensor is produced or stored; laid out as its producer's out_strategy
/// requests, if there is one; delivered to its forward readers if there are several; kept for the backward pass;
/// delivered to its backward readers if there are several; output. Each version is made from the one before it by a
/// redistribution, which costs nothing if both have the same layout. A single reader needs no version of its own: it
/// reads the version before it and pays for its own redistribution. In the forward pass it has one where what it reads may be
/// kept so: of what is stored, and where the user decides it.
struct TensorVersion {
  enum class Kind : std::uint8_t {
    kProduced,   // in the layout in which the producer's strategy leaves it
    kStored,     // an input, parameter or state: its layout is a choice
    kRequested,  // as the producer's out_strategy asks, right after it is produced
    kDelivered,  // for `readers`, several as a rule
    kKept,       // from the last forward reader to the backward ones
    kOutput,     // what the graph returns, after all readers; never partial
    kUpdated,    // a parameter's new value, in the layout in which it is stored
  };
  /// What the user says of an activation that is kept (`gather_again`). Its layout is then no choice of its own.
  enum class Keeping : std::uint8_t {
    kFree,
    kAsProduced,  // that of the version before its delivery, without partial sums: true
    kAsRead,      // that in which a forward reader takes it: false
  };
  Kind kind = Kind::kProduced;
  Keeping keeping = Keeping::kFree;
  /// Nothing needs the version once its last reader's redistribution is done. The live range then ends when that operator
  /// begins, which holds the operand in its own layout while it runs.
  bool is_handed_over = false;
  bool is_in_micro_batch = false;  // made with every micro-batch; else once in a step
  TensorId tensor;
  OptionalIndex<VersionId> from;    // the version that it is made from; nothing for the first
  OptionalIndex<VersionId> stored;  // kDelivered, kKept of a stored tensor: its first version, whose memory it may
                                    // share; kUpdated: the version whose layout it has
  ShortVector<Reader, 8> readers;   // that read this version, in program order
  ShortVector<VersionId, 8> next;   // versions made from it
  /// The live range in schedule times, [begin, end). Operator k runs at time k; a version comes into being just before
  /// the operator of time `begin` (kProduced: by it). Where a view reads last the range ends at that time, since the
  /// view continues in the same memory; a new value that is written in the place of the old one has an empty range.
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  bool is_handed_over_to(const Reader& reader) const { return is_handed_over && readers.back() == reader; }
};

/// The versions of all tensors but constants (those are made where they are read), in an order in which `from` comes
/// first. Fixed by the graph alone.
struct TensorVersions {
  IdVector<VersionId, TensorVersion> all;
  IdVector<TensorId, OptionalIndex<VersionId>> first;                // by tensor; nothing for constants
  IdVector<OperatorId, ShortVector<OptionalIndex<VersionId>>> read;  // by operator and operand; nothing for constants
  std::uint32_t num_times = 0;                                       // operators, and the end of the step
};

TensorVersions tensor_versions(const OperatorGraph& graph);

/// The version that one kept kAsProduced is like.
VersionId produced_before(const TensorVersions& versions, VersionId kept);
/// The reader that one kept kAsRead is for: of the forward ones that say so the last.
Reader kept_for(const OperatorGraph& graph, const TensorVersions& versions, VersionId kept);

/// How often a step makes a version.
std::int64_t runs_of(const OperatorGraph& graph, const TensorVersion& version);

}  // namespace shardplan
