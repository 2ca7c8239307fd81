#include "simulator/local/local_validation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "model/model_source.h"
#include "model/planned_model.h"
#include "simulator/execute/reference.h"
#include "simulator/local/local_executor.h"
#include "simulator/local/rank_graphs.h"
#include "simulator/proof/comparison.h"

// Both models run side by side. A parameter goes wrong because of its gradient, and the numbers show the fault: the
// ranks that hold the same piece have different gradients whose mean, or sum, is the reference's (they were not
// exchanged), or all have a multiple of the reference's (they were exchanged once too often).

namespace shardplan {
namespace {

constexpr double kMostNumbers = 5e8;  // 4 GB of float64
constexpr double kRelative = 1e-9;
constexpr double kRelativeOfGradients = 1e-6;  // to distinguish causes
constexpr std::int64_t kNone = -1;             // no rank was compared yet

/// The box of `whole` at `begin`.
TensorValues piece_of(const TensorValues& values, const Shape& whole, const Shape& begin, const Shape& shape) {
  if (shape == whole) return values;
  TensorValues piece(static_cast<std::size_t>(num_elements(shape)));
  Shape at(shape.size(), 0);
  for (double& element : piece) {
    std::int64_t from = 0;
    for (std::size_t d = 0; d < at.size(); ++d) from = from * whole[d] + begin[d] + at[d];
    element = values[static_cast<std::size_t>(from)];
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return piece;
}

/// The index of an element of a row-major tensor.
Shape index_of(std::int64_t element, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = element % shape[d];
    element /= shape[d];
  }
  return index;
}

/// The reference tensor of which a rank's tensor is a piece.
struct Counterpart {
  TensorId reference;
  Shape begin;
};

/// The gradient that a parameter's update reads.
std::optional<TensorId> gradient_of(const OperatorGraph& graph, TensorId parameter) {
  std::optional<TensorId> found;
  for (const TensorId id : graph.tensors().ids()) {
    if (graph.tensor(id).gradient_of == parameter) found = id;
  }
  return found;
}

std::optional<TensorId> update_of(const OperatorGraph& graph, TensorId stored) {
  for (const TensorId id : graph.tensors().ids()) {
    if (graph.tensor(id).updates == stored) return id;
  }
  return std::nullopt;
}

bool is_near(const TensorValues& a, const TensorValues& b, double factor = 1) {
  const double allowed = kRelativeOfGradients * std::abs(factor) * scale_of(b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - factor * b[i]) <= allowed)) return false;
  }
  return true;
}

class Validation {
 public:
  Validation(const std::vector<std::shared_ptr<const Model>>& ranks, const Model& reference,
             const LocalValidationOptions& options)
      : ranks_(ranks), options_(options), reference_model_(reference) {
    if (reference.local) {
      throw InputError(reference.parallel.parallel_mode_place,
                       "{} is written per device as well; a reference is in the view of all devices", reference.name);
    }
    if (reference.training && reference.training->micro_batches > 1) {
      throw InputError(reference.training->place, "training: a reference runs one batch a step, without micro_batches");
    }
    reference_ = planned_graph(reference, static_cast<std::int64_t>(ranks.size()));
    check_runs(reference_, reference.name);
    run_ = rank_graphs(ranks);
    check_size();
    find_counterparts();
    find_outputs();
  }

  LocalValidation run() {
    LocalExecutor executor(run_->program, options_.seed, options_.stop);
    ReferenceSteps reference(reference_, options_.seed, options_.stop);
    for (int s = 0; s < options_.steps; ++s) {
      const auto step = static_cast<std::uint64_t>(s);
      const MeasuredReference expected = reference.next(false);
      if (!is_finite(expected)) {
        if (s == 0) {
          throw InputError({reference_model_.source->file(), 0, 0},
                           "the numbers of {} are not finite in the first step: there is nothing to compare with",
                           reference_model_.name);
        }
        result_.not_finite = true;
        break;
      }
      executor.run(step, [&](std::int64_t rank, TensorId id) { return given(rank, id, step); });
      result_.steps.push_back(compare_step(executor, expected));
      if (result_.first_drift || result_.steps.back().agrees()) continue;
      result_.first_drift = static_cast<std::size_t>(s);
      find_causes(executor, expected);
    }
    return std::move(result_);
  }

 private:
  const OperatorGraph& graph(std::size_t rank) const { return run_->graphs[rank]; }

  /// Counts all tensors of the reference, and the given ones of every rank.
  void check_size() const {
    double numbers = 0;
    const auto add = [&](const GraphTensor& tensor) {
      double elements = 1;
      for (const std::int64_t extent : tensor.type.shape) elements *= static_cast<double>(extent);
      numbers += elements;
    };
    for (const GraphTensor& tensor : reference_.tensors()) add(tensor);
    for (const OperatorGraph& own : run_->graphs) {
      for (const GraphTensor& tensor : own.tensors()) {
        if (tensor.kind != TensorKind::kResult) add(tensor);
      }
    }
    if (numbers <= kMostNumbers) return;
    throw InputError(reference_model_.parallel.place,
                     "the two hold {:.1e} numbers, more than {:.0e}; smaller sizes (--dim B=8) show the same", numbers,
                     kMostNumbers);
  }

  // ---- correspondence

  Counterpart counterpart_of(std::size_t rank, TensorId id) const {
    const GraphTensor& tensor = graph(rank).tensor(id);
    const auto found = reference_.find_tensor(tensor.name);
    const bool has_it = found && reference_.tensor(*found).kind == tensor.kind;
    if (!has_it && tensor.state_of) {
      throw InputError(ranks_[rank]->training->place,
                       "{} has no optimizer state {}: both must train with the same optimizer", reference_model_.name,
                       tensor.name);
    }
    if (!has_it) {
      throw InputError(tensor.place, "{}: {} has no {} of this name", tensor.name, reference_model_.name,
                       tensor.kind == TensorKind::kInput ? "input" : "parameter");
    }
    const TensorType& whole = reference_.tensor(*found).type;
    const std::string owner = tensor.state_of ? graph(rank).tensor(*tensor.state_of).name : tensor.name;
    const auto at = ranks_[rank]->begins.find(owner);
    const bool has_begin = at != ranks_[rank]->begins.end() && at->second.size() == tensor.type.shape.size();
    const Shape begin = has_begin ? at->second : Shape(tensor.type.shape.size(), 0);
    bool fits = whole.shape.size() == tensor.type.shape.size() && (has_begin || whole.shape == tensor.type.shape);
    for (std::size_t d = 0; d < begin.size() && fits; ++d) {
      fits = begin[d] <= whole.shape[d] - tensor.type.shape[d];
    }
    if (!fits) {
      throw InputError(std::vector<Diagnostic>{
          {tensor.place,
           fmt::format("{}: {} of rank {} is not a piece of {} in {}{}", tensor.name, to_string(tensor.type.shape),
                       rank, to_string(whole.shape), reference_model_.name,
                       has_begin ? fmt::format(" that begins at {}", to_string(begin)) : ""),
           has_begin ? "" : "begin: [0, rank*64] says where a rank's piece begins"}});
    }
    if (whole.dtype != tensor.type.dtype) {
      throw InputError(tensor.place, "{} is {}, in {} {}", tensor.name, to_string(tensor.type.dtype),
                       reference_model_.name, to_string(whole.dtype));
    }
    return {*found, begin};
  }

  void find_counterparts() {
    std::set<std::string> known;
    counterparts_.resize(run_->graphs.size());
    for (std::size_t rank = 0; rank < run_->graphs.size(); ++rank) {
      for (const TensorId id : graph(rank).tensors().ids()) {
        const TensorKind kind = graph(rank).tensor(id).kind;
        if (kind == TensorKind::kConstant || kind == TensorKind::kResult) continue;
        counterparts_[rank].emplace(id, counterpart_of(rank, id));
        known.insert(graph(rank).tensor(id).name);
      }
    }
    for (const GraphTensor& tensor : reference_.tensors()) {
      if (tensor.kind != TensorKind::kParameter || known.contains(tensor.name)) continue;
      throw InputError(tensor.place, "{}: {} has no parameter of this name", tensor.name, ranks_[0]->name);
    }
    for (const TensorId id : reference_.tensors().ids()) {
      if (reference_.tensor(id).kind == TensorKind::kParameter) check_is_held(id);
    }
  }

  /// What no rank holds is not compared, so it must not exist.
  void check_is_held(TensorId whole) const {
    const GraphTensor& tensor = reference_.tensor(whole);
    const Shape& shape = tensor.type.shape;
    std::vector<bool> is_held(static_cast<std::size_t>(num_elements(shape)), false);
    SourcePlace place;
    std::set<std::pair<Shape, Shape>> known;
    for (std::size_t rank = 0; rank < run_->graphs.size(); ++rank) {
      const auto own = graph(rank).find_tensor(tensor.name);
      if (!own) continue;
      place = graph(rank).tensor(*own).place;
      const RankPiece piece{shape, counterparts_[rank].at(*own).begin, graph(rank).tensor(*own).type.shape};
      if (piece.shape == shape) return;
      if (!known.emplace(piece.begin, piece.shape).second) continue;
      for_each_shared_row(runs_of(piece), whole_piece(shape), [&](std::int64_t, std::int64_t to, std::int64_t count) {
        std::fill_n(is_held.begin() + to, count, true);
      });
    }
    const auto first = std::find(is_held.begin(), is_held.end(), false);
    if (first == is_held.end()) return;
    throw InputError(place, "{}: a part of its {} in {} is on no rank: {} of {} elements, the first at {}", tensor.name,
                     to_string(shape), reference_model_.name, std::count(is_held.begin(), is_held.end(), false),
                     is_held.size(), to_string(index_of(first - is_held.begin(), shape)));
  }

  /// An output with the reference's tensor, and the ranks that have it in the same shape.
  struct Output {
    std::string name;
    TensorId reference;
    std::map<std::size_t, TensorId> of_ranks;
  };

  /// Outputs of both; the loss may have another name.
  void find_outputs() {
    const OperatorGraph& whole = reference_;
    std::set<std::string> names;
    if (whole.loss() ||
        std::ranges::any_of(run_->graphs, [](const OperatorGraph& own) { return own.loss().has_value(); })) {
      add_output("loss", whole.loss() ? whole.loss() : whole.find_tensor("loss"));
      names.insert("loss");
    }
    for (const OperatorGraph& own : run_->graphs) {
      for (const TensorId id : own.tensors().ids()) {
        const GraphTensor& tensor = own.tensor(id);
        if (!tensor.is_output || id == own.loss() || !names.insert(tensor.name).second) continue;
        add_output(tensor.name, whole.find_tensor(tensor.name));
      }
    }
    for (const TensorId id : whole.tensors().ids()) {
      const GraphTensor& tensor = whole.tensor(id);
      if (!tensor.is_output || id == whole.loss() || names.contains(tensor.name)) continue;
      result_.not_compared.push_back({tensor.name, fmt::format("{} has no such output", ranks_[0]->name)});
    }
    if (!outputs_.empty() || whole.is_training()) return;
    throw InputError({ranks_[0]->source->file(), 0, 0}, "no output has the name and the shape of one of {}",
                     reference_model_.name);
  }

  void add_output(const std::string& name, const std::optional<TensorId>& whole) {
    if (!whole) {
      result_.not_compared.push_back({name, fmt::format("{} has no tensor of this name", reference_model_.name)});
      return;
    }
    Output output{name, *whole, {}};
    const Shape& shape = reference_.tensor(*whole).type.shape;
    std::map<Shape, std::vector<std::int64_t>> others;  // ranks that have another shape
    for (std::size_t rank = 0; rank < run_->graphs.size(); ++rank) {
      const auto own = own_output(rank, name);
      if (!own) continue;
      const Shape& found = graph(rank).tensor(*own).type.shape;
      if (found == shape) {
        output.of_ranks.emplace(rank, *own);
      } else {
        others[found].push_back(static_cast<std::int64_t>(rank));
      }
    }
    for (const auto& [found, ranks] : others) {
      result_.not_compared.push_back(
          {name, fmt::format("{} on rank{} {}, {} in {}", to_string(found), ranks.size() == 1 ? "" : "s",
                             ranks_text(ranks), to_string(shape), reference_model_.name)});
    }
    if (output.of_ranks.empty() && others.empty()) {
      result_.not_compared.push_back({name, fmt::format("{} has no such output", ranks_[0]->name)});
    }
    if (output.of_ranks.empty()) return;
    if (output.of_ranks.size() < run_->graphs.size()) result_.some_ranks_lack_tensors = true;
    outputs_.push_back(std::move(output));
  }

  std::optional<TensorId> own_output(std::size_t rank, const std::string& name) const {
    const OperatorGraph& own = graph(rank);
    if (name == "loss" && own.loss()) return own.loss();
    const auto found = own.find_tensor(name);
    return found && own.tensor(*found).is_output ? found : std::nullopt;
  }

  /// Parameters and states are those before the first step; inputs are new in each step.
  TensorValues given(std::int64_t rank, TensorId id, std::uint64_t step) const {
    const auto r = static_cast<std::size_t>(rank);
    const Counterpart& part = counterparts_[r].at(id);
    const GraphTensor& whole = reference_.tensor(part.reference);
    const std::uint64_t drawn = whole.kind == TensorKind::kInput ? step : 0;
    return piece_of(draw_tensor(reference_, part.reference, options_.seed, drawn), whole.type.shape, part.begin,
                    graph(r).tensor(id).type.shape);
  }

  // ---- comparing

  /// Whether all compared values are finite: equal infinities would prove nothing.
  bool is_finite(const MeasuredReference& reference) const {
    const auto is_so = [&](TensorId id) {
      const TensorValues& values = reference.exact.tensors[id];
      return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
    };
    for (const Output& output : outputs_) {
      if (!is_so(output.reference)) return false;
    }
    for (const TensorId id : reference_.tensors().ids()) {
      const GraphTensor& tensor = reference_.tensor(id);
      const bool is_parameter = tensor.updates && reference_.tensor(*tensor.updates).kind == TensorKind::kParameter;
      if (is_parameter && !is_so(id)) return false;
    }
    return true;
  }

  /// A rank's expected piece of a tensor of the reference.
  TensorValues expected_of(const MeasuredReference& reference, TensorId whole, const Shape& begin,
                           const Shape& shape) const {
    return piece_of(reference.exact.tensors[whole], reference_.tensor(whole).type.shape, begin, shape);
  }

  void compare_values(LocalStepComparison::Value& worst, const TensorValues& found, const TensorValues& should_be,
                      const Tolerance& tolerance, std::int64_t rank) const {
    SHARDPLAN_CHECK(found.size() == should_be.size());
    const double scale = scale_of(should_be);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double difference = distance(found[i], should_be[i]);
      const bool is_equal = difference <= tolerance.allowed(scale, should_be[i]);
      const bool is_first = worst.rank == kNone;
      const bool is_worse = difference > worst.difference || (worst.is_equal && !is_equal);
      if (is_first || (is_worse && (worst.is_equal || !is_equal))) {
        worst = {worst.name, rank, found[i], should_be[i], difference, worst.is_equal && is_equal};
      } else {
        worst.is_equal = worst.is_equal && is_equal;
      }
    }
  }

  bool is_updated(TensorId whole) const { return update_of(reference_, whole).has_value(); }

  bool is_updated_on_a_rank(const std::string& parameter) const {
    return std::ranges::any_of(run_->graphs, [&](const OperatorGraph& own) {
      const auto found = own.find_tensor(parameter);
      return found && update_of(own, *found).has_value();
    });
  }

  LocalStepComparison compare_step(const LocalExecutor& executor, const MeasuredReference& reference) const {
    LocalStepComparison step;
    for (const Output& output : outputs_) {
      LocalStepComparison::Value worst{output.name, kNone};
      const Movement& moved = reference.moved64[output.reference];
      const Tolerance tolerance{kRelative, moved.absolute, moved.of_large};
      for (const auto& [rank, own] : output.of_ranks) {
        const auto number = static_cast<std::int64_t>(rank);
        compare_values(worst, executor.value(number, own), reference.exact.tensors[output.reference], tolerance,
                       number);
      }
      step.values.push_back(worst);
    }
    for (const TensorId whole : reference_.tensors().ids()) {
      if (reference_.tensor(whole).kind != TensorKind::kParameter) continue;
      LocalStepComparison::Value worst{reference_.tensor(whole).name, kNone};
      if (!is_updated(whole) && !is_updated_on_a_rank(worst.name)) continue;
      const TensorId after = update_of(reference_, whole).value_or(whole);
      const Movement& moved = reference.moved64[after];
      const Tolerance tolerance{kRelative, moved.absolute, moved.of_large};
      for (std::size_t rank = 0; rank < run_->graphs.size(); ++rank) {
        const auto own = graph(rank).find_tensor(worst.name);
        if (!own) continue;
        const Shape& shape = graph(rank).tensor(*own).type.shape;
        const TensorValues should_be = expected_of(reference, after, counterparts_[rank].at(*own).begin, shape);
        const auto number = static_cast<std::int64_t>(rank);
        compare_values(worst, executor.stored(number, *own), should_be, tolerance, number);
      }
      step.values.push_back(worst);
    }
    return step;
  }

  // ---- causes

  /// The ranks with the same piece of one of the reference's parameters, and their gradients.
  struct Holders {
    std::vector<std::int64_t> ranks;
    std::vector<TensorValues> gradients;
    TensorValues should_be;
  };

  std::vector<Holders> holders_of(const std::string& name, const LocalExecutor& executor,
                                  const MeasuredReference& reference) const {
    const TensorId whole = *reference_.find_tensor(name);
    const auto whole_gradient = gradient_of(reference_, whole);
    std::map<Shape, Holders> by_begin;
    for (std::size_t rank = 0; rank < run_->graphs.size() && whole_gradient; ++rank) {
      const auto own = graph(rank).find_tensor(name);
      const auto gradient = own ? gradient_of(graph(rank), *own) : std::nullopt;
      if (!gradient) continue;
      const Shape& begin = counterparts_[rank].at(*own).begin;
      Holders& holders = by_begin[begin];
      holders.ranks.push_back(static_cast<std::int64_t>(rank));
      holders.gradients.push_back(executor.value(static_cast<std::int64_t>(rank), *gradient));
      holders.should_be = expected_of(reference, *whole_gradient, begin, graph(rank).tensor(*own).type.shape);
    }
    std::vector<Holders> all;
    for (auto& [begin, holders] : by_begin) all.push_back(std::move(holders));
    return all;
  }

  static TensorValues sum_of(const std::vector<TensorValues>& gradients) {
    TensorValues sum = gradients[0];
    for (std::size_t g = 1; g < gradients.size(); ++g) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients[g][i];
    }
    return sum;
  }

  static bool all_have(const std::vector<Holders>& pieces, double factor) {
    return std::all_of(pieces.begin(), pieces.end(), [&](const Holders& holders) {
      return std::all_of(holders.gradients.begin(), holders.gradients.end(),
                         [&](const TensorValues& gradient) { return is_near(gradient, holders.should_be, factor); });
    });
  }

  /// Whether all ranks with one piece have the same: then no sum over them is missing.
  static bool ranks_agree(const std::vector<Holders>& pieces) {
    return std::all_of(pieces.begin(), pieces.end(), [](const Holders& holders) {
      return std::all_of(holders.gradients.begin(), holders.gradients.end(),
                         [&](const TensorValues& gradient) { return is_near(gradient, holders.gradients[0]); });
    });
  }

  static bool all_sum_to(const std::vector<Holders>& pieces, bool is_mean) {
    return std::all_of(pieces.begin(), pieces.end(), [&](const Holders& holders) {
      const double factor = is_mean ? static_cast<double>(holders.ranks.size()) : 1;
      return is_near(sum_of(holders.gradients), holders.should_be, factor);
    });
  }

  /// The factor by which the first piece's gradient is too large, measured at its largest element.
  static double factor_of(const std::vector<Holders>& pieces) {
    const TensorValues& should_be = pieces[0].should_be;
    const auto largest = std::max_element(should_be.begin(), should_be.end(),
                                          [](double a, double b) { return std::abs(a) < std::abs(b); });
    if (largest == should_be.end() || *largest == 0) return 0;
    return pieces[0].gradients[0][static_cast<std::size_t>(largest - should_be.begin())] / *largest;
  }

  /// What may be wrong with gradients that are `factor` times the right ones.
  std::string hint_for(double factor, bool exchanges) const {
    const auto count = static_cast<double>(run_->graphs.size());
    const std::optional<Placed<bool>>& mean = ranks_[0]->parallel.gradients_mean;
    if (exchanges && std::abs(factor - count) < 1e-6) {
      return "gradients_mean: true divides the sum of the ranks' gradients by their number; a loss that AllReduce has "
             "added up is divided by group_size";
    }
    if (std::abs(factor * count - 1) < 1e-6) {
      return exchanges && mean && mean->value
                 ? "gradients_mean: true divides the sum of the ranks' gradients by their number, and so does the "
                   "loss: leave out one of the two"
                 : "a gradient is that of the sum of all ranks' losses: each is divided by their number once too often";
    }
    if (factor < 1) return "";
    return "a gradient is that of the sum of all ranks' losses: what AllReduce gives to each of them counts so many "
           "times";
  }

  DriftCause cause_of(const std::string& parameter, const std::vector<Holders>& pieces) const {
    const bool exchanges = ranks_[0]->parallel.parallel_mode == ParallelMode::kHybridParallel &&
                           !ranks_[0]->not_exchanged.contains(parameter);
    if (!is_updated(*reference_.find_tensor(parameter))) {
      return {fmt::format("{} does not train it", reference_model_.name),
              "requires_grad: false beside it leaves it as it is",
              {}};
    }
    if (pieces.empty()) return {"no gradient was computed", "", {}};
    if (all_have(pieces, 1)) {
      return {"the gradients agree, but the updates differ", "compare the `training:` of the two files", {}};
    }
    const std::size_t count = pieces[0].ranks.size();
    const bool may_miss_a_sum = count > 1 && !ranks_agree(pieces);
    if (may_miss_a_sum && all_sum_to(pieces, true)) {
      return {
          fmt::format("an AllReduce of the gradients is missing: those of the {} ranks differ, and their mean is the "
                      "reference's",
                      count),
          "parallel: {parallel_mode: hybrid_parallel, gradients_mean: true} adds it",
          {}};
    }
    if (may_miss_a_sum && all_sum_to(pieces, false)) {
      return {
          fmt::format("an AllReduce of the gradients is missing: those of the {} ranks differ, and their sum is the "
                      "reference's",
                      count),
          "parallel: {parallel_mode: hybrid_parallel} adds it",
          {}};
    }
    const double factor = factor_of(pieces);
    if (factor != 0 && all_have(pieces, factor)) {
      return {fmt::format("the gradients are {:.6g} times the reference's", factor), hint_for(factor, exchanges), {}};
    }
    return {"the gradients differ from the reference's", "", {}};
  }

  void find_causes(const LocalExecutor& executor, const MeasuredReference& reference) {
    for (const LocalStepComparison::Value& value : result_.steps.back().values) {
      if (value.is_equal) continue;
      const auto whole = reference_.find_tensor(value.name);
      const bool is_parameter = whole && reference_.tensor(*whole).kind == TensorKind::kParameter;
      DriftCause cause = is_parameter ? cause_of(value.name, holders_of(value.name, executor, reference))
                                      : cause_of_output(value, executor, reference);
      const auto known = std::find_if(result_.causes.begin(), result_.causes.end(), [&](const DriftCause& other) {
        return other.message == cause.message && other.hint == cause.hint;
      });
      DriftCause& entry = known != result_.causes.end() ? *known : result_.causes.emplace_back(std::move(cause));
      entry.tensors.push_back(value.name);
    }
  }

  /// The cause of a difference between the ranks' output and the reference's in the first step that drifts.
  DriftCause cause_of_output(const LocalStepComparison::Value& value, const LocalExecutor& executor,
                             const MeasuredReference& reference) const {
    const auto output =
        std::find_if(outputs_.begin(), outputs_.end(), [&](const Output& other) { return other.name == value.name; });
    std::vector<Holders> pieces(1);
    pieces[0].should_be = reference.exact.tensors[output->reference];
    for (const auto& [rank, own] : output->of_ranks) {
      pieces[0].ranks.push_back(static_cast<std::int64_t>(rank));
      pieces[0].gradients.push_back(executor.value(static_cast<std::int64_t>(rank), own));
    }
    const auto missing = [&](const char* what, const char* hint) {
      return DriftCause{
          fmt::format("an AllReduce is missing: the values of the ranks differ, and their {} is the reference's", what),
          hint,
          {}};
    };
    const bool is_of_all = output->of_ranks.size() == run_->graphs.size() && !ranks_agree(pieces);
    if (is_of_all && all_sum_to(pieces, true)) return missing("mean", "add an AllReduce and divide by group_size");
    if (is_of_all && all_sum_to(pieces, false)) return missing("sum", "add an AllReduce");
    const bool is_one_number = pieces[0].ranks.size() == 1 && pieces[0].should_be.size() == 1;  // any factor would fit
    const double factor = is_one_number ? 0 : factor_of(pieces);
    if (factor != 0 && all_have(pieces, factor)) {
      const auto count = static_cast<double>(run_->graphs.size());
      return {fmt::format("the values are {:.6g} times the reference's", factor),
              std::abs(factor * count - 1) < 1e-6 ? "they are divided by the number of ranks once too often"
              : std::abs(factor - count) < 1e-6   ? "divide what an AllReduce has added up by group_size"
                                                  : "",
              {}};
    }
    return {"the values differ from the reference's", "", {}};
  }

  const std::vector<std::shared_ptr<const Model>>& ranks_;
  const LocalValidationOptions& options_;
  const Model& reference_model_;
  OperatorGraph reference_;
  std::unique_ptr<const RankGraphs> run_;
  std::vector<std::map<TensorId, Counterpart>> counterparts_;  // by rank
  std::vector<Output> outputs_;
  LocalValidation result_;
};

}  // namespace

bool LocalStepComparison::agrees() const {
  return std::all_of(values.begin(), values.end(), [](const Value& value) { return value.is_equal; });
}

LocalValidation validate_against(const std::vector<std::shared_ptr<const Model>>& ranks, const Model& reference,
                                 const LocalValidationOptions& options) {
  return Validation(ranks, reference, options).run();
}

}  // namespace shardplan
