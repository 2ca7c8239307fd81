#pragma once

#include <cstdint>
#include <vector>

#include "base/shared_value.h"
#include "graph/operator_graph.h"
#include "layouts/tensor_layout.h"

namespace shardplan {

using VersionId = Index<struct VersionTag>;

/// One layout of a tensor during its life. A tensor is produced or stored; laid out as its producer's out_strategy
/// requests, if there is one; delivered to its forward readers if there are several; kept for the backward pass;
/// delivered to its backward readers if there are several; output. Each version is made from the one before it by a
/// redistribution, which costs nothing if both have the same layout. A single reader needs no version of its own: it
/// reads the version before it and pays for its redistribution. In the forward pass a single reader has one if the
/// backward pass reads the tensor too, since its layout may be kept.
struct TensorVersion {
  enum class Kind : std::uint8_t {
    kProduced,   // in the layout that the producer's strategy gives it
    kStored,     // an input, parameter or state: its layout is a choice
    kRequested,  // as the producer's out_strategy asks, right after it is produced
    kDelivered,  // for `readers`, usually several
    kKept,       // from the last forward reader to the backward ones
    kOutput,     // returned by the graph, after all readers; never partial
    kUpdated,    // a parameter's new value, in the layout in which it is stored
  };
  /// The user's decision about a kept activation (`gather_again`). Its layout is then not searched.
  enum class Keeping : std::uint8_t {
    kFree,
    kAsProduced,  // true: the layout of the version before its delivery, without partial sums
    kAsRead,      // false: the layout in which a forward reader takes it
  };
  Kind kind = Kind::kProduced;
  Keeping keeping = Keeping::kFree;
  /// Nothing needs the version once its last reader's redistribution is done. The live range then ends when that
  /// operator begins, since the operator holds the operand in its own layout while it runs.
  bool is_handed_over : 1 = false;
  /// Handed over to a single reader as soon as it is made, long before that reader runs: a gradient that only its
  /// update reads. It is redistributed (usually reduced) right behind its producer, as DDP and FSDP do, and waits in
  /// the reader's layout, in which the reader holds it from `end` on.
  bool is_taken_early : 1 = false;
  bool is_in_micro_batch : 1 = false;  // made with every micro-batch; else once in a step
  TensorId tensor;
  OptionalIndex<VersionId> from;    // the version it is made from; nothing for the first
  OptionalIndex<VersionId> stored;  // kDelivered, kKept of a stored tensor: its first version, whose memory it may
                                    // share; kUpdated: the version whose layout it has
  /// The live range in schedule times, [begin, end). Operator k runs at time k; a version comes into being just before
  /// the operator at time `begin` (kProduced: by it). If the last reader is a view the range ends at that time, since
  /// the view continues in the same memory; a new value written in place of the old one has an empty range.
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  ShortVector<Reader, 8> readers;  // of this version, in program order
  ShortVector<VersionId, 8> next;  // versions made from it

  bool is_handed_over_to(const Reader& reader) const { return is_handed_over && readers.back() == reader; }
};

/// The versions of all tensors but constants (which each reader makes itself), in an order in which `from` comes first.
/// They depend on the graph alone.
struct TensorVersions {
  IdVector<VersionId, TensorVersion> all;
  IdVector<TensorId, OptionalIndex<VersionId>> first;                // by tensor; nothing for constants
  IdVector<OperatorId, ShortVector<OptionalIndex<VersionId>>> read;  // by operator and operand; nothing for constants
  std::uint32_t num_times = 0;                                       // number of operators, plus the end of the step
};

TensorVersions tensor_versions(const OperatorGraph& graph);

/// The layout of every version of a plan; there are three times as many versions as operators, and few layouts.
using VersionLayouts = IdVector<VersionId, SharedValue<TensorLayout>>;

/// The version whose layout one kept kAsProduced has.
VersionId produced_before(const TensorVersions& versions, VersionId kept);
/// The reader whose layout one kept kAsRead has: the last forward reader that requests it.
Reader kept_for(const OperatorGraph& graph, const TensorVersions& versions, VersionId kept);

/// How many times per step a version is made.
std::int64_t runs_of(const OperatorGraph& graph, const TensorVersion& version);

}  // namespace shardplan
