// simulator/proof/validate.h proves that the devices compute what one device computes of the padded graph, including
// the contents of the padding. It remains to show that the padded graph computes what the model does. Layouts play no
// part in that, so one device suffices.
#include "simulator/proof/unpadded.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "simulator/execute/reference.h"

namespace shardplan {
namespace {

/// A tensor in both graphs.
struct TensorPair {
  TensorId unpadded;
  TensorId padded;
};

class UnpaddedRun {
 public:
  UnpaddedRun(const OperatorGraph& padded, const OperatorGraph& unpadded, const ValidationOptions& options)
      : padded_(padded), unpadded_(unpadded), options_(options) {}

  UnpaddedComparison run() {
    find_pairs();
    result_.compared.precision = Precision::kFloat64;
    result_.compared.allowed = options_.float64_tolerance;
    if (!result_.missing.empty()) return std::move(result_);
    ReferenceSteps references(
        unpadded_, options_.seed, [&](TensorId id, std::uint64_t m) { return drawn_without_padding(id, m); },
        options_.stop);
    const bool updates = std::any_of(unpadded_.tensors().begin(), unpadded_.tensors().end(),
                                     [](const GraphTensor& tensor) { return tensor.updates.has_value(); });
    const int steps = updates ? options_.steps : 1;
    for (int step = 1; step <= steps && result_.is_equal(); ++step) {
      const MeasuredReference reference = references.next(false);
      const ReferenceStep run = run_reference(
          padded_, [&](TensorId id, std::uint64_t m) { return stored(id, m); }, options_.seed,
          static_cast<std::uint64_t>(step - 1), Precision::kFloat64, options_.stop);
      result_.compared.steps = step;
      for (const TensorPair& pair : pairs_) compare(pair, step, reference, run);
      for (const TensorId id : padded_.tensors().ids()) {
        if (padded_.tensor(id).updates) stored_[*padded_.tensor(id).updates] = run.tensors[id];
      }
    }
    return std::move(result_);
  }

 private:
  /// Pairs tensors by the parameter or state whose new value or gradient they are, others by name.
  void find_pairs() {
    std::map<std::string, TensorId> new_values, gradients;
    for (const TensorId id : padded_.tensors().ids()) {
      const GraphTensor& tensor = padded_.tensor(id);
      if (tensor.updates) new_values[padded_.tensor(*tensor.updates).name] = id;
      if (tensor.gradient_of) gradients[padded_.tensor(*tensor.gradient_of).name] = id;
    }
    const auto found_in = [](const std::map<std::string, TensorId>& all, const std::string& name) {
      const auto at = all.find(name);
      return at == all.end() ? std::nullopt : std::optional(at->second);
    };
    std::map<std::string, TensorId> last_gradients;
    for (const TensorId id : unpadded_.tensors().ids()) {
      const auto& of = unpadded_.tensor(id).gradient_of;
      if (of) last_gradients[unpadded_.tensor(*of).name] = id;
    }
    for (const TensorId id : unpadded_.tensors().ids()) {
      const GraphTensor& tensor = unpadded_.tensor(id);
      if (tensor.kind == TensorKind::kConstant) continue;
      std::optional<TensorId> other = padded_.find_tensor(tensor.name);
      const bool is_loss = unpadded_.loss() == id;
      bool is_gradient = false;
      if (is_loss) other = padded_.loss();
      if (tensor.updates) other = found_in(new_values, unpadded_.tensor(*tensor.updates).name);
      if (tensor.gradient_of && last_gradients.at(unpadded_.tensor(*tensor.gradient_of).name) == id) {
        is_gradient = true;
        other = found_in(gradients, unpadded_.tensor(*tensor.gradient_of).name);
      }
      if (other && !is_loss && !is_gradient && !tensor.updates && !means_the_same(id, *other)) other = std::nullopt;
      const bool is_alike = other && shape_without_padding(*other) == tensor.type.shape;
      if (is_alike) {
        pairs_.push_back({id, *other});
        if (tensor.kind == TensorKind::kResult) count(tensor, is_loss, is_gradient);
      } else if (is_loss || is_gradient || tensor.updates || tensor.is_output || tensor.kind != TensorKind::kResult) {
        result_.missing.push_back(tensor.name);
      }
    }
  }

  /// Backward tensors correspond if they are gradients of corresponding tensors: if a mask precedes an operator, the
  /// operator's gradient is that of the mask's result.
  bool means_the_same(TensorId unpadded, TensorId padded) const {
    const GraphTensor& a = unpadded_.tensor(unpadded);
    const GraphTensor& b = padded_.tensor(padded);
    if (!a.producer || unpadded_.operators()[*a.producer].pass == Pass::kForward) return true;
    return a.gradient_for && b.gradient_for &&
           unpadded_.tensor(*a.gradient_for).name == padded_.tensor(*b.gradient_for).name;
  }

  void count(const GraphTensor& tensor, bool is_loss, bool is_gradient) {
    PrecisionResult& counts = result_.compared;
    if (is_loss) {
      counts.has_loss = true;
    } else if (tensor.updates) {
      ++(unpadded_.tensor(*tensor.updates).kind == TensorKind::kParameter ? counts.parameters : counts.states);
    } else {
      ++(is_gradient ? counts.gradients : tensor.is_output ? counts.outputs : counts.between);
    }
  }

  Shape shape_without_padding(TensorId id) const {
    const GraphTensor& tensor = padded_.tensor(id);
    return tensor.padding ? real_shape(*tensor.padding) : tensor.type.shape.items();
  }

  TensorValues restricted(TensorId id, const TensorValues& values) const {
    const GraphTensor& tensor = padded_.tensor(id);
    return tensor.padding ? existing_values(values, *tensor.padding) : values;
  }

  TensorValues drawn_without_padding(TensorId id, std::uint64_t micro_batch) const {
    const TensorId other = *padded_.find_tensor(unpadded_.tensor(id).name);
    return restricted(other, draw_tensor(padded_, other, options_.seed, micro_batch));
  }

  TensorValues stored(TensorId id, std::uint64_t micro_batch) {
    const auto known = stored_.find(id);
    return known != stored_.end() ? known->second : draw_tensor(padded_, id, options_.seed, micro_batch);
  }

  void compare(const TensorPair& pair, int step, const MeasuredReference& reference, const ReferenceStep& run) {
    const Tolerance tolerance = float64_tolerance(options_.float64_tolerance, reference, pair.unpadded);
    for (std::size_t m = 0; m <= reference.exact.earlier.size(); ++m) {
      const TensorValues& expected = reference.exact.at(pair.unpadded, m);
      const TensorValues found = restricted(pair.padded, run.at(pair.padded, m));
      const double scale = scale_of(expected);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double difference = distance(found[i], expected[i]);
        if (difference == 0) continue;
        const double allowed = tolerance.allowed(scale, expected[i]);
        const double relative = difference / allowed * tolerance.relative;
        if (relative > result_.compared.largest) {
          result_.compared.largest = relative;
          result_.compared.largest_in = unpadded_.tensor(pair.unpadded).name;
        }
        if (difference <= allowed || result_.first_wrong) continue;
        const Shape& shape = unpadded_.tensor(pair.unpadded).type.shape;
        result_.first_wrong = {step,   unpadded_.tensor(pair.unpadded).name, index_of(i, shape), found[i], expected[i],
                               allowed};
        result_.compared.is_equal = false;
      }
    }
  }

  static Shape index_of(std::size_t element, const Shape& shape) {
    Shape index(shape.size());
    auto rest = static_cast<std::int64_t>(element);
    for (std::size_t d = shape.size(); d-- > 0;) {
      index[d] = rest % shape[d];
      rest /= shape[d];
    }
    return index;
  }

  const OperatorGraph& padded_;
  const OperatorGraph& unpadded_;
  const ValidationOptions& options_;
  std::vector<TensorPair> pairs_;
  std::map<TensorId, TensorValues> stored_;  // parameters and states of the padded graph after the first step
  UnpaddedComparison result_;
};

}  // namespace

UnpaddedComparison compare_with_unpadded(const OperatorGraph& padded, const OperatorGraph& unpadded,
                                         const ValidationOptions& options) {
  return UnpaddedRun(padded, unpadded, options).run();
}

TensorValues existing_values(const TensorValues& values, const PaddedShape& shape) {
  TensorValues kept = values;
  std::int64_t inner = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const std::int64_t size = padded_size(shape[d]);
    std::vector<std::int64_t> existing;
    for (std::int64_t i = 0; i < size; ++i) {
      if (real_position(shape[d], i).exists) existing.push_back(i);
    }
    const auto count = static_cast<std::int64_t>(kept.size()) / (size * inner);
    TensorValues next;
    next.reserve(static_cast<std::size_t>(count * inner) * existing.size());
    for (std::int64_t o = 0; o < count; ++o) {
      for (const std::int64_t i : existing) {
        const auto first = kept.begin() + (o * size + i) * inner;
        next.insert(next.end(), first, first + inner);
      }
    }
    kept = std::move(next);
    inner *= static_cast<std::int64_t>(existing.size());
  }
  return kept;
}

}  // namespace shardplan
