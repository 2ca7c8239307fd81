// The versions of each tensor in the order in which they are made, from its readers by pass; then their live ranges,
// which need the versions made from them. A gradient that only updates read leaves its first version at once.

#include "graph/tensor_versions.h"

#include <algorithm>

#include "graph/weights.h"

namespace shardplan {
namespace {

std::uint32_t time_of(OperatorId op) { return static_cast<std::uint32_t>(op.value()); }

class VersionBuilder {
 public:
  explicit VersionBuilder(const OperatorGraph& graph) : graph_(graph) {
    versions_.num_times = static_cast<std::uint32_t>(graph.operators().size()) + 1;
    for (const OperatorId op : graph.operators().ids()) num_in_micro_batch_ += graph.is_in_micro_batch(op) ? 1 : 0;
    versions_.first.resize(graph.tensors().size());
    versions_.all.reserve(2 * graph.tensors().size());  // most tensors have fewer
    last_.resize(graph.tensors().size());
    versions_.read.resize(graph.operators().size());
    for (const OperatorId op : graph.operators().ids())
      versions_.read[op].resize(graph.operators()[op].operands.size());
  }

  TensorVersions run() {
    for (const TensorId tensor : graph_.tensors().ids()) {
      if (graph_.tensor(tensor).kind != TensorKind::kConstant) add_tensor(tensor);
    }
    add_updates();
    for (const VersionId version : versions_.all.ids()) set_live_range(version);
    return std::move(versions_);
  }

 private:
  VersionId add(TensorVersion version) {
    const VersionId id = versions_.all.push_back(std::move(version));
    const TensorVersion& added = versions_.all[id];
    if (added.from) versions_.all[*added.from].next.push_back(id);
    return id;
  }

  VersionId add(TensorVersion::Kind kind, TensorId tensor, VersionId from, std::optional<VersionId> stored) {
    TensorVersion version;
    version.kind = kind;
    version.tensor = tensor;
    version.from = from;
    version.stored = stored;
    return add(std::move(version));
  }

  void read(VersionId version, const ShortVector<Reader>& readers) {
    for (const Reader& reader : readers) {
      versions_.all[version].readers.push_back(reader);
      versions_.read[reader.op][reader.operand] = version;
    }
  }

  void add_tensor(TensorId id) {
    const GraphTensor& tensor = graph_.tensor(id);
    ShortVector<Reader> forward, backward, update;
    for (const Reader& reader : tensor.readers) {
      const Pass pass = graph_.operators()[reader.op].pass;
      (pass == Pass::kForward ? forward : pass == Pass::kBackward ? backward : update).push_back(reader);
    }
    TensorVersion first;
    first.tensor = id;
    first.kind = tensor.kind == TensorKind::kResult ? TensorVersion::Kind::kProduced : TensorVersion::Kind::kStored;
    const VersionId start = add(std::move(first));
    versions_.first[id] = start;

    const bool is_stored = tensor.kind == TensorKind::kParameter || tensor.kind == TensorKind::kState;
    const std::optional<VersionId> stored = is_stored ? std::optional(start) : std::nullopt;
    if (is_stored) {
      read(start, update);  // stored tensors exist all the time
    } else {
      for (const Reader& reader : update) backward.push_back(reader);
    }
    VersionId last = start;
    if (tensor.producer && !graph_.operators()[*tensor.producer].strategy->out.empty()) {
      last = add(TensorVersion::Kind::kRequested, id, last, std::nullopt);
    }
    if (!forward.empty()) {
      const std::optional<bool> gather_again = is_stored ? std::nullopt : gathered_again(id, forward);
      // A tensor of the backward pass is delivered even to one reader: it may be kept in that reader's layout.
      if (forward.size() > 1 || !backward.empty()) last = add(TensorVersion::Kind::kDelivered, id, last, stored);
      read(last, forward);
      if (!backward.empty()) {
        last = add(TensorVersion::Kind::kKept, id, last, stored);
        using Keeping = TensorVersion::Keeping;
        if (gather_again) versions_.all[last].keeping = *gather_again ? Keeping::kAsProduced : Keeping::kAsRead;
      }
    }
    if (!backward.empty()) {
      if (backward.size() > 1) last = add(TensorVersion::Kind::kDelivered, id, last, stored);
      read(last, backward);
    }
    if (tensor.is_output) add(TensorVersion::Kind::kOutput, id, last, std::nullopt);
    last_[id] = last;
  }

  /// The user's decision about an activation; if one of several readers gathers it again, that decides.
  std::optional<bool> gathered_again(TensorId id, const ShortVector<Reader>& forward) const {
    std::optional<bool> result;
    for (const Reader& reader : forward) {
      const std::optional<bool>& said = graph_.operators()[reader.op].gather_again;
      if (said && !result.value_or(false)) result = said;
    }
    if (!result) return result;
    // A weight converted to another type counts as a weight.
    return graph_.tensor(behind_casts(graph_, id)).kind == TensorKind::kParameter ? std::nullopt : result;
  }

  void add_updates() {
    for (const TensorId id : graph_.tensors().ids()) {
      const GraphTensor& tensor = graph_.tensor(id);
      if (tensor.updates) add(TensorVersion::Kind::kUpdated, id, last_[id], versions_.first[*tensor.updates]);
    }
  }

  /// True for a gradient that is made in the backward pass and read at the end of the step only: it need not wait in the
  /// layout in which it is made. Sums over micro-batches are complete only then; and what views memory that others read
  /// does not free it.
  bool waits_for_update(TensorId id) const {
    const GraphTensor& tensor = graph_.tensor(id);
    if (!tensor.producer || tensor.is_output || graph_.is_accumulated(id)) return false;
    if (graph_.operators()[*tensor.producer].pass != Pass::kBackward) return false;
    if (tensor.readers.empty()) return false;
    if (graph_.operators()[tensor.readers.front().op].pass != Pass::kUpdate) return false;
    TensorId held = id;
    while (is_view(*graph_.tensor(held).producer)) {
      held = graph_.operators()[*graph_.tensor(held).producer].operands[0];
      if (!graph_.tensor(held).producer || graph_.tensor(held).readers.size() > 1) return false;
    }
    return true;
  }

  bool is_view(OperatorId op) const { return graph_.operation(op).type->work == WorkKind::kView; }

  /// The time at which the version is made: just before its first reader; a kept one after the last forward reader; the
  /// delivered one of a gradient right behind its producer.
  std::uint32_t made_at(const TensorVersion& version) const {
    switch (version.kind) {
      case TensorVersion::Kind::kProduced:
        return time_of(*graph_.tensor(version.tensor).producer);
      case TensorVersion::Kind::kStored:
        return 0;
      case TensorVersion::Kind::kDelivered:
        if (waits_for_update(version.tensor)) return made_at(versions_.all[*version.from]) + 1;
        return time_of(version.readers.front().op);
      case TensorVersion::Kind::kKept: {
        // After the last forward reader, which reads the version before.
        return time_of(versions_.all[*version.from].readers.back().op) + 1;
      }
      case TensorVersion::Kind::kRequested:
      case TensorVersion::Kind::kOutput:
      case TensorVersion::Kind::kUpdated: {
        const TensorVersion& from = versions_.all[*version.from];
        std::uint32_t time = from.kind == TensorVersion::Kind::kStored ? 0 : made_at(from);
        if (!from.readers.empty()) time = std::max(time, time_of(from.readers.back().op));
        // A sum over the micro-batches is complete after the last of them.
        return std::max(time + 1, graph_.is_accumulated(version.tensor) ? num_in_micro_batch_ : 0);
      }
    }
    return 0;
  }

  /// The end of the version's use by its readers. A view's result takes over the memory of its operand, so at the time
  /// of the view only the result counts.
  std::uint32_t last_use(const TensorVersion& version) const {
    const OperatorId last = version.readers.back().op;
    return time_of(last) + (is_view(last) ? 0 : 1);
  }

  /// True for a new value of a stored tensor whose old value has no later reader.
  bool replaces_old_value(TensorId tensor) const {
    const GraphTensor& value = graph_.tensor(tensor);
    if (!value.updates) return false;
    const std::vector<Reader>& readers = graph_.tensor(*value.updates).readers;
    return readers.empty() || readers.back().op <= *value.producer;
  }

  /// True if the last reader takes the version over. False if the version may share a stored tensor's memory, continues
  /// in a view, or is read twice by one operator.
  bool hands_over(const TensorVersion& version) const {
    if (version.readers.empty() || !version.next.empty() || version.stored) return false;
    const OperatorId last = version.readers.back().op;
    const auto reads = std::count_if(version.readers.begin(), version.readers.end(),
                                     [&](const Reader& reader) { return reader.op == last; });
    return reads == 1 && !is_view(last);
  }

  void set_live_range(VersionId id) {
    TensorVersion& version = versions_.all[id];
    const TensorKind kind = graph_.tensor(version.tensor).kind;
    version.begin = made_at(version);
    version.end = version.begin + 1;
    version.is_in_micro_batch = version.begin < num_in_micro_batch_;
    const bool is_sum = version.kind == TensorVersion::Kind::kProduced && graph_.is_accumulated(version.tensor);
    if (is_sum) version.begin = 0;  // live from the first micro-batch on
    if (version.kind == TensorVersion::Kind::kOutput ||
        (version.kind == TensorVersion::Kind::kStored && kind != TensorKind::kInput)) {
      version.end = versions_.num_times;
      return;
    }
    if (version.kind == TensorVersion::Kind::kUpdated) {
      version.end = version.begin;  // it replaces the old value
      return;
    }
    if (version.kind == TensorVersion::Kind::kProduced && replaces_old_value(version.tensor)) {
      version.end = version.begin;
      return;
    }
    if (hands_over(version)) {
      version.is_handed_over = true;
      version.is_taken_early = version.readers.size() == 1 && waits_for_update(version.tensor);
      if (!version.is_taken_early) version.end = time_of(version.readers.back().op);
      return;
    }
    if (!version.readers.empty()) version.end = std::max(version.end, last_use(version));
    for (const VersionId next : version.next) version.end = std::max(version.end, made_at(versions_.all[next]));
    version.end = std::min(version.end, versions_.num_times);
  }

  const OperatorGraph& graph_;
  TensorVersions versions_;
  std::uint32_t num_in_micro_batch_ = 0;  // number of operators, which precede all others
  IdVector<TensorId, VersionId> last_;    // of all tensors but constants
};

}  // namespace

TensorVersions tensor_versions(const OperatorGraph& graph) { return VersionBuilder(graph).run(); }

VersionId produced_before(const TensorVersions& versions, VersionId kept) {
  const VersionId from = *versions.all[kept].from;
  return versions.all[from].kind == TensorVersion::Kind::kDelivered ? *versions.all[from].from : from;
}

Reader kept_for(const OperatorGraph& graph, const TensorVersions& versions, VersionId kept) {
  const ShortVector<Reader, 8>& readers = versions.all[*versions.all[kept].from].readers;
  for (std::size_t i = readers.size(); i-- > 1;) {
    if (graph.operators()[readers[i].op].gather_again == false) return readers[i];
  }
  return readers[0];
}

std::int64_t runs_of(const OperatorGraph& graph, const TensorVersion& version) {
  return version.is_in_micro_batch ? graph.micro_batches() : 1;
}

}  // namespace shardplan
