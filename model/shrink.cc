#include "model/shrink.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>

#include "model/model_source.h"
#include "model/size_function.h"

// Sizes are solved for, not divided. Nearly all sizes of a model are monomials of its free dims: 4*H, H/heads, B*S. How
// each factor depends on each dim is measured once, by asking for the model with that dim doubled: a size that becomes
// 2^e times as large has the exponent e. Then the dims start at 1 and only grow: while a size is not whole, not
// divisible by its pieces, too small or equal to one that it must differ from, a dim in it grows to the next value that
// repairs this. That asks for no model. At the end the model is made at the values found and everything is checked on
// the real sizes; what is wrong there (sizes that are no monomials, as side-4; faults of the model; the caller's own
// check) raises a limit, and the search continues. Since values only grow and full size is legal, it ends.
//
// Of dims that depend on each other without saying so (H: 4096, heads: 32, D: 128), some are doubled with others.
//
// A number that is written in the file, where no dim says it, can be solved for as well: it is a dim that has no name.
// Written 64 in [B, S, 8, 64] and 512 in [B, S, 512], 64 cannot be doubled alone, but it can with its multiples.

namespace shardplan {
namespace {

using Values = std::vector<std::int64_t>;  // by free dim

/// Numbers that are written are tables and channels: with too few rows of a table a step's gradients add up in them.
constexpr std::int64_t kLeastOfLiteral = 8;

/// What may become smaller: a dim of the file, or some of the numbers written in it, the smallest of them in front.
struct Unknown {
  std::string name;
  std::vector<std::int64_t> literals = {};  // empty: a dim
  std::vector<std::string> followers = {};  // dims that change in proportion
};

class Shrinker {
 public:
  Shrinker(const Model& model, const ShrinkRequest& request) : model_(model), request_(request) {}

  ShrunkModel shrink() {
    for (const std::string& name : model_.free_dims) {
      const bool repeats =
          std::find(model_.repeat_dims.begin(), model_.repeat_dims.end(), name) != model_.repeat_dims.end();
      if (repeats || model_.dims.at(name) < 2) continue;
      unknowns_.push_back({name, {}});
      full_.push_back(model_.dims.at(name));
    }
    const OperatorGraph graph = planned(model_);
    full_sizes_ = sizes_of(model_, graph);
    if (request_.shrinks_literals) find_free_expressions();
    measure();
    collect_demands(graph);
    if (request_.keeps_apart) collect_pairs(graph);
    collect_extents(graph);

    reads_ = 0;
    for (std::size_t d = 0; d < unknowns_.size(); ++d)
      values_.push_back(unknowns_[d].literals.empty() ? least_of(unknowns_[d].name) : kLeastOfLiteral);
    while (reads_ < request_.max_reads) {
      grow();
      if (values_ == full_) break;
      std::optional<Model> small = read(values_);
      const std::optional<OperatorGraph> small_graph = small ? planned_if_possible(*small) : std::nullopt;
      if (!small_graph) {
        raise_the_one_to_blame();
        continue;
      }
      if (repair_real_sizes(*small, *small_graph)) continue;
      return finish(std::move(*small), graph);
    }
    values_ = full_;
    return finish(model_, graph);
  }

 private:
  OperatorGraph planned(const Model& model) const {
    return request_.planned_graph ? request_.planned_graph(model) : model.graph;
  }

  /// Nothing where the devices do not divide what each has its own part of.
  std::optional<OperatorGraph> planned_if_possible(const Model& model) const {
    try {
      return planned(model);
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  /// A padded dim keeps the padding's part of it.
  void set_dim(const std::string& name, std::int64_t value, ModelOverrides& overrides) const {
    overrides.dims[name] = value;
    const auto padded = model_.padded_dims.find(name);
    if (padded == model_.padded_dims.end()) return;
    overrides.padded[name] = value;
    overrides.dims[name] = real_part(padded->second, value);
  }

  static std::int64_t real_part(const PaddedDim& dim, std::int64_t value) {
    return std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<Int128>(value) * dim.real / dim.padded), 1);
  }

  /// From which a dim may grow: a padded one has two positions that exist, and padding.
  std::int64_t least_of(const std::string& name) const {
    const auto padded = model_.padded_dims.find(name);
    std::int64_t value = 1;
    const bool is_padded = padded != model_.padded_dims.end();
    while (is_padded && value < padded->second.padded && real_part(padded->second, value) < 2) ++value;
    return value;
  }

  /// The model at these dims; nothing if there is none.
  std::optional<Model> read(const Values& values) {
    ++reads_;
    ModelOverrides overrides = model_.overrides;
    std::map<std::int64_t, Int128> numerators;
    std::map<std::string, std::pair<Int128, Int128>> followers;  // numerator and denominator
    for (std::size_t d = 0; d < values.size(); ++d) {
      if (unknowns_[d].literals.empty()) set_dim(unknowns_[d].name, values[d], overrides);
      for (const std::string& name : unknowns_[d].followers) {
        auto& [above, below] = followers.try_emplace(name, model_.dims.at(name), 1).first->second;
        above *= values[d];
        below *= full_[d];
        if (std::max(above, below) > INT64_MAX) return std::nullopt;  // no size of a real model
      }
      for (const std::int64_t literal : unknowns_[d].literals) {
        Int128& number = numerators.emplace(literal, literal).first->second;
        if (number * values[d] % full_[d] != 0) return std::nullopt;
        number = number * values[d] / full_[d];
      }
    }
    for (const auto& [literal, number] : numerators) overrides.literals[literal] = static_cast<std::int64_t>(number);
    for (const auto& [name, part] : followers) {
      if (part.first % part.second != 0) return std::nullopt;
      set_dim(name, static_cast<std::int64_t>(part.first / part.second), overrides);
    }
    try {
      Model model = model_.source->at(overrides);
      const bool is_same = model.graph.operators().size() == model_.graph.operators().size() &&
                           model.graph.tensors().size() == model_.graph.tensors().size();
      return is_same ? std::optional(std::move(model)) : std::nullopt;
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  // ---- how sizes depend on dims -----------------------------------------------------------------------------------

  void measure() {
    std::vector<SizeFunction> sizes(full_sizes_.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i].full = full_sizes_[i];
      sizes[i].exponents.assign(unknowns_.size(), 0);
    }
    for (std::size_t d = 0; d < unknowns_.size(); ++d) {
      if (!measure(d, sizes)) unmeasured_.insert(d);  // it stays
    }
    measure_together(sizes);
    if (request_.shrinks_literals) {
      for (const std::int64_t literal : model_.literals) measure_literal(literal, sizes);
    }
    for (SizeFunction& size : sizes) size.exponents.resize(unknowns_.size(), 0);
    // Few sizes are different as functions: 96 layers have those of one.
    std::map<SizeFunction, std::size_t> known;
    for (SizeFunction& size : sizes) {
      const auto [at, is_new] = known.emplace(size, functions_.size());
      if (is_new) {
        size.set_scale(full_);
        functions_.push_back(std::move(size));
      }
      function_of_.push_back(at->second);
    }
    demands_.resize(functions_.size());
  }

  /// A dim that is an expression of others (R: H/16) holds them to a ratio that may be large. Where the model exists with
  /// that dim alone doubled it is as free as they are.
  void find_free_expressions() {
    for (const std::string& name : model_.dim_order) {
      const auto is_in = [&](const std::vector<std::string>& names) {
        return std::find(names.begin(), names.end(), name) != names.end();
      };
      const std::int64_t value = model_.dims.at(name);
      const bool is_fixed = is_in(model_.free_dims) || is_in(model_.repeat_dims) || model_.padded_dims.contains(name);
      if (is_fixed || value < 2 * kLeastOfLiteral) continue;
      unknowns_.push_back({name, {}});
      full_.push_back(value);
      if (!sizes_if_doubled(unknowns_.size() - 1)) drop_last_unknown();
    }
  }

  /// All sizes with one of the unknowns doubled; nothing if there is no such model, or no size has changed.
  std::optional<Values> sizes_if_doubled(std::size_t d) {
    Values doubled = full_;
    doubled[d] *= 2;
    const std::optional<Model> model = read(doubled);
    const std::optional<OperatorGraph> graph = model ? planned_if_possible(*model) : std::nullopt;
    Values found = graph ? sizes_of(*model, *graph) : Values();
    return found.size() == full_sizes_.size() && found != full_sizes_ ? std::optional(std::move(found)) : std::nullopt;
  }

  bool measure(std::size_t d, std::vector<SizeFunction>& sizes) {
    const std::optional<Values> found = sizes_if_doubled(d);
    if (!found) return false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i].exponents.resize(unknowns_.size(), 0);
      sizes[i].depend(d, (*found)[i]);
    }
    return true;
  }

  /// Of dims that cannot change alone (H: 4096, heads: 32, D: 128, where [B, S, H] becomes [B, S, heads, D]) some can with
  /// their multiples: heads with H, and D with H. Tries each with one of them, then with all. H then only follows.
  void measure_together(std::vector<SizeFunction>& sizes) {
    const std::set<std::size_t> alone = unmeasured_;
    for (const std::size_t d : alone) {
      if (is_follower(unknowns_[d].name)) continue;
      std::vector<std::vector<std::string>> sets(1);
      for (const std::size_t other : alone) {
        if (other == d || full_[other] % full_[d] != 0) continue;
        sets.push_back({unknowns_[other].name});
        sets[0].push_back(unknowns_[other].name);
      }
      std::rotate(sets.begin(), sets.begin() + 1, sets.end());
      if (sets.size() == 2) sets.pop_back();  // one multiple is all of them
      for (std::vector<std::string>& set : sets) {
        unknowns_[d].followers = std::move(set);
        if (unknowns_[d].followers.empty() || !measure(d, sizes)) continue;
        unmeasured_.erase(d);
        break;
      }
      if (unmeasured_.contains(d)) unknowns_[d].followers.clear();
    }
  }

  bool is_follower(const std::string& name) const {
    return std::ranges::any_of(unknowns_, [&](const Unknown& unknown) {
      return std::ranges::find(unknown.followers, name) != unknown.followers.end();
    });
  }

  /// Tries it alone, then with the numbers that are 2, 4, 8, ... times as large, then with all its multiples.
  void measure_literal(std::int64_t literal, std::vector<SizeFunction>& sizes) {
    std::vector<std::vector<std::int64_t>> sets = {{literal}, {}, {}};
    for (const std::int64_t other : model_.literals) {
      if (other % literal != 0) continue;
      if (std::has_single_bit(static_cast<std::uint64_t>(other / literal))) sets[1].push_back(other);
      sets[2].push_back(other);
    }
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (i > 0 && sets[i] == sets[i - 1]) continue;
      unknowns_.push_back({fmt::format("the number {}", literal), sets[i]});
      full_.push_back(literal);
      if (measure(unknowns_.size() - 1, sizes)) return;
      drop_last_unknown();
    }
  }

  void drop_last_unknown() {
    unknowns_.pop_back();
    full_.pop_back();
  }

  // ---- what sizes must be -----------------------------------------------------------------------------------------

  void demand(std::size_t index, std::int64_t pieces, std::int64_t least) {
    SizeDemand& demand = demands_[function_of_[index]];
    demand.multiple_of = std::lcm(demand.multiple_of, std::max<std::int64_t>(pieces, 1));
    // What is cut unequally elsewhere keeps its residue; all else divides.
    demand.residue = request_.keeps_residues ? full_sizes_[index] % demand.multiple_of : 0;
    demand.least = std::max(demand.least, std::min(least, full_sizes_[index]));
  }

  /// Records that a dimension is cut into unequal pieces.
  void demand_uneven(std::size_t index, std::int64_t pieces) {
    SizeDemand& demand = demands_[function_of_[index]];
    demand.uneven.insert(pieces);
    demand.least = std::max(demand.least, std::min(pieces * request_.least_local, full_sizes_[index]));
    if (!request_.keeps_residues) return;
    demand.multiple_of = std::lcm(demand.multiple_of, pieces);
    demand.residue = full_sizes_[index] % demand.multiple_of;
  }

  template <class Id>
  void demand_uneven(std::size_t index, const IdVector<Id, std::vector<std::vector<std::int64_t>>>& all, Id id,
                     std::size_t dimension) {
    if (id.value() >= all.size() || dimension >= all[id].size()) return;
    for (const std::int64_t pieces : all[id][dimension]) demand_uneven(index, pieces);
  }

  /// The least size of each of `count` factors that are normalised together, so that their product suffices.
  std::int64_t least_of_each(std::ptrdiff_t count) const {
    std::int64_t least = 2;
    const auto product = [&] {
      std::int64_t result = 1;
      for (std::ptrdiff_t i = 0; i < count; ++i) result = std::min(result * least, request_.least_normalised);
      return result;
    };
    while (count > 0 && product() < request_.least_normalised) ++least;
    return least;
  }

  /// Whether no factor of its producer walks a dimension, as with the k of a router. With a single one of the k largest,
  /// its normalised weight would be 1 and its gradient 0, whatever the plan does.
  static bool walks_nothing(const OperatorGraph& graph, TensorId id, std::size_t dimension) {
    const GraphTensor& tensor = graph.tensor(id);
    if (!tensor.producer) return false;
    const DimensionWalk& walk = graph.operation(*tensor.producer).rule.results[tensor.result][dimension];
    return walk.factors.empty() && !walk.window;
  }

  void collect_demands(const OperatorGraph& graph) {
    std::size_t index = 0;
    for (const OperatorId id : graph.operators().ids()) {
      const std::vector<Factor>& factors = graph.operation(id).rule.factors;
      const std::int64_t least_normalised = least_of_each(std::count_if(
          factors.begin(), factors.end(), [](const Factor& f) { return f.kind == FactorKind::kNormalised; }));
      for (std::size_t f = 0; f < factors.size(); ++f, ++index) {
        const bool is_normalised = factors[f].kind == FactorKind::kNormalised;
        demand(index, pieces(id, f),
               std::max(pieces(id, f) * request_.least_local, is_normalised ? least_normalised : 2));
        demand_uneven(index, request_.uneven_operator_pieces, id, f);
      }
    }
    for (const TensorId id : graph.tensors().ids()) {
      const std::size_t rank = graph.tensor(id).type.shape.size();
      for (std::size_t d = 0; d < rank; ++d, ++index) {
        const bool has_pieces = id.value() < request_.tensor_pieces.size() && d < request_.tensor_pieces[id].size();
        const std::int64_t pieces = has_pieces ? request_.tensor_pieces[id][d] : 1;
        demand(index, pieces, pieces > 1 ? pieces * request_.least_local : walks_nothing(graph, id, d) ? 2 : 1);
        demand_uneven(index, request_.uneven_tensor_pieces, id, d);
      }
    }
  }

  /// Sizes that meet in one operator and are different: should one be taken for the other, shapes show it. Not images,
  /// where it would be expensive, nor constants, such as the size of a kernel; there only the numbers show it.
  void collect_pairs(const OperatorGraph& graph) {
    std::set<std::size_t> left_out;
    std::size_t index = 0;
    for (const OperatorId id : graph.operators().ids()) {
      const ShardingRule& rule = graph.operation(id).rule;
      for (const TensorWalk& walk : rule.operands) {
        for (const DimensionWalk& dimension : walk) {
          if (dimension.window) left_out.insert(function_of_[index + dimension.window->output]);
        }
      }
      for (std::size_t f = 0; f < rule.factors.size(); ++f, ++index) {
        if (functions_[function_of_[index]].dims.empty()) left_out.insert(function_of_[index]);
      }
    }
    std::set<std::pair<std::size_t, std::size_t>> pairs;
    index = 0;
    for (const OperatorId id : graph.operators().ids()) {
      const std::size_t count = graph.operation(id).rule.factors.size();
      for (std::size_t a = index; a < index + count; ++a) {
        for (std::size_t b = a + 1; b < index + count; ++b) {
          if (full_sizes_[a] == full_sizes_[b]) continue;
          if (left_out.contains(function_of_[a]) || left_out.contains(function_of_[b])) continue;
          pairs.emplace(std::minmax(function_of_[a], function_of_[b]));
        }
      }
      index += count;
    }
    pairs_.assign(pairs.begin(), pairs.end());
  }

  /// Equal tokens have equal scores, and if the order of scores decides anything (TopK), rounding decides between them.
  /// So where the tokens of a row may all be different, they may in the small model.
  void collect_extents(const OperatorGraph& graph) {
    const auto compares = [](const Operation& operation) { return operation.type->compares_elements; };
    if (std::ranges::none_of(graph.operations(), compares)) return;
    for (const auto& [extent, row] : index_extents(model_, graph)) {
      if (full_sizes_[extent] >= full_sizes_[row]) extents_.emplace(function_of_[extent], function_of_[row]);
    }
  }

  std::int64_t pieces(OperatorId op, std::size_t factor) const {
    const bool is_known = op.value() < request_.operator_pieces.size() && factor < request_.operator_pieces[op].size();
    return is_known ? request_.operator_pieces[op][factor] : 1;
  }

  // ---- growing ----------------------------------------------------------------------------------------------------

  /// Raises dims until all predicted sizes are as they must be. What cannot be repaired goes back to full size.
  void grow() {
    for (const std::size_t d : unmeasured_) values_[d] = full_[d];
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t f = 0; f < functions_.size() && !changed; ++f) {
        if (functions_[f].is_monomial && !is_met(f, values_)) changed = repair(f);
      }
      for (std::size_t p = 0; p < pairs_.size() && !changed; ++p) changed = part(p);
      for (const auto& [extent, row] : extents_) changed = changed || widen(extent, row);
    }
  }

  bool is_met(std::size_t f, const Values& values) const {
    const std::optional<std::int64_t> size = functions_[f].at(values);
    return size && demands_[f].holds(*size);
  }

  /// Raises one of the dims that make this size larger: the one that repairs it with the least growth.
  bool repair(std::size_t f) {
    const SizeFunction& function = functions_[f];
    std::optional<std::pair<std::size_t, std::int64_t>> best;
    for (std::size_t d = 0; d < unknowns_.size(); ++d) {
      if (function.exponents[d] <= 0) continue;
      Values values = values_;
      // A value as far as the pieces' multiple beyond the least suffices if this dim alone can repair it.
      const std::int64_t last = std::min(full_[d], values_[d] + demands_[f].multiple_of * demands_[f].least + 64);
      for (values[d] = values_[d] + 1; values[d] <= last; ++values[d]) {
        if (!is_met(f, values)) continue;
        const bool is_better = !best || values[d] * values_[best->first] < best->second * values_[d];
        if (is_better) best = {d, values[d]};
        break;
      }
    }
    if (best) {
      values_[best->first] = best->second;
      return true;
    }
    return raise_any(function, 1);
  }

  /// One step up for the smallest of its dims that can grow; else its divisors' dims go to full size.
  bool raise_any(const SizeFunction& size, std::int64_t step) {
    std::optional<std::size_t> smallest;
    for (const std::size_t d : size.dims) {
      if (size.exponents[d] < 0 || values_[d] >= full_[d]) continue;
      if (!smallest || values_[d] < values_[*smallest]) smallest = d;
    }
    if (smallest) {
      values_[*smallest] = std::min(full_[*smallest], values_[*smallest] + step);
      return true;
    }
    for (const std::size_t d : size.dims) {
      if (values_[d] == full_[d]) continue;
      values_[d] = full_[d];
      return true;
    }
    return false;
  }

  /// Two sizes that must differ: a dim that only one of them has grows by one; the demands then lift it further.
  bool part(std::size_t p) {
    const SizeFunction& a = functions_[pairs_[p].first];
    const SizeFunction& b = functions_[pairs_[p].second];
    if (!a.is_monomial || !b.is_monomial) return false;
    const std::optional<std::int64_t> size = a.at(values_);
    if (!size || size != b.at(values_)) return false;
    std::optional<std::size_t> best;
    for (std::size_t d = 0; d < unknowns_.size(); ++d) {
      if (a.exponents[d] == b.exponents[d] || values_[d] >= full_[d]) continue;
      if (!best || values_[d] < values_[*best]) best = d;
    }
    if (best) ++values_[*best];
    return best.has_value();
  }

  /// An extent of indices that is not larger than their rows grows, unless it is as large at full size.
  bool widen(std::size_t extent, std::size_t row) {
    if (!functions_[extent].is_monomial || !functions_[row].is_monomial) return false;
    const std::optional<std::int64_t> size = functions_[row].at(values_);
    if (!size) return false;
    const std::int64_t least = *size + (functions_[extent].full > functions_[row].full ? 1 : 0);
    if (demands_[extent].least >= least) return false;
    demands_[extent].least = least;
    return !is_met(extent, values_) && repair(extent);
  }

  // ---- real sizes -------------------------------------------------------------------------------------------------

  /// True if something had to grow.
  bool repair_real_sizes(const Model& small, const OperatorGraph& graph) {
    const Values sizes = sizes_of(small, graph);
    if (sizes.size() != full_sizes_.size()) return raise_the_smallest();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::size_t f = function_of_[i];
      if (!demands_[f].holds(sizes[i])) return raise(f, sizes[i]);
    }
    if (!request_.check) return false;
    const std::optional<TooSmall> fault = request_.check(small, graph);
    if (!fault) return false;
    std::size_t index = fault->factor;
    for (std::size_t op = 0; op < fault->op.value(); ++op) index += graph.operation(OperatorId(op)).rule.factors.size();
    return raise(function_of_[index], sizes[index]);
  }

  bool raise(std::size_t f, std::int64_t size) {
    if (!functions_[f].is_monomial) return raise_any(functions_[f], 1) || raise_the_smallest();
    demands_[f].least = std::max(demands_[f].least, size + 1);
    return raise_any(functions_[f], 0) ? true : raise_the_smallest();
  }

  bool raise_the_smallest() {
    std::optional<std::size_t> best;
    for (std::size_t d = 0; d < unknowns_.size(); ++d) {
      if (values_[d] < full_[d] && (!best || values_[d] < values_[*best])) best = d;
    }
    if (!best) return false;
    ++values_[*best];
    return true;
  }

  /// The model cannot be read at these values: a dim without which it can be read is to blame, and grows.
  void raise_the_one_to_blame() {
    for (std::size_t d = 0; d < unknowns_.size(); ++d) {
      if (values_[d] == full_[d]) continue;
      Values values = values_;
      values[d] = full_[d];
      if (!read(values)) continue;
      // Near the value: one by one; then by growing steps.
      for (std::int64_t step = 1; values_[d] < full_[d] && reads_ < request_.max_reads;
           step = step < 8 ? 1 + step : step * 2) {
        for (std::int64_t i = 0; i < std::min<std::int64_t>(step, 8) && values_[d] < full_[d]; ++i) {
          values_[d] = std::min(full_[d], values_[d] + std::max<std::int64_t>(1, step / 8));
          if (read(values_)) return;
        }
      }
      values_[d] = full_[d];
      return;
    }
    // No single one: all that are still small grow together.
    for (std::size_t d = 0; d < unknowns_.size(); ++d) values_[d] = std::min(full_[d], 2 * values_[d]);
  }

  // ---- the answer -------------------------------------------------------------------------------------------------

  ShrunkModel finish(Model small, const OperatorGraph& graph) {
    ShrunkModel result;
    for (const std::string& name : model_.dim_order) {
      const std::int64_t from = model_.dims.at(name);
      const std::int64_t to = small.dims.at(name);
      if (from != to) result.dims.push_back({name, from, to});
      const auto padded = small.padded_dims.find(name);
      if (padded == small.padded_dims.end()) continue;
      result.notes.push_back(fmt::format("{}: {} of {} are padding", name, to - padded->second.real, to));
    }
    for (const auto& [from, to] : small.overrides.literals) {
      if (from != to) result.dims.push_back({fmt::format("the number {}", from), from, to});
    }
    for (std::size_t d = 0; d < unknowns_.size(); ++d) {
      if (values_[d] != full_[d] || full_[d] <= 16 || is_follower(unknowns_[d].name)) continue;
      result.notes.push_back(!unknowns_[d].literals.empty() ? fmt::format("{} stays", unknowns_[d].name)
                             : !unmeasured_.contains(d)
                                 ? fmt::format("{} stays {}", unknowns_[d].name, full_[d])
                                 : fmt::format("{} stays {}: it cannot change alone", unknowns_[d].name, full_[d]));
    }
    // Large sizes that no dim makes.
    std::set<std::int64_t> named;
    std::size_t index = 0;
    for (const OperatorId id : graph.operators().ids()) {
      for (const Factor& factor : graph.operation(id).rule.factors) {
        const SizeFunction& size = functions_[function_of_[index++]];
        if (!size.dims.empty() || factor.size <= 16 || !named.insert(factor.size).second) continue;
        result.notes.push_back(fmt::format("{} of {} stays {}: no dim of the file says it", factor.name,
                                           graph.operators()[id].name, factor.size));
      }
    }
    for (const SizeFunction& size : functions_) {
      std::vector<std::string>& names = result.origins.emplace_back();
      for (const std::size_t d : size.dims) names.push_back(unknowns_[d].name);
      for (const std::size_t d : unmeasured_) {
        if (names.empty() && size.full == full_[d]) names.push_back(unknowns_[d].name + ", which cannot change alone");
      }
    }
    for (const TensorId id : graph.tensors().ids()) {
      const std::size_t rank = graph.tensor(id).type.shape.size();
      const auto first = function_of_.begin() + static_cast<std::ptrdiff_t>(index);
      result.origin_of.push_back({first, first + static_cast<std::ptrdiff_t>(rank)});
      index += rank;
    }
    result.model = std::move(small);
    return result;
  }

  const Model& model_;
  const ShrinkRequest& request_;
  std::vector<Unknown> unknowns_;  // that may shrink
  Values full_;                    // of them; of literals the smallest
  Values full_sizes_;
  std::set<std::size_t> unmeasured_;
  std::vector<SizeFunction> functions_;
  std::vector<std::size_t> function_of_;  // by position in sizes_of
  std::vector<SizeDemand> demands_;       // by function
  std::vector<std::pair<std::size_t, std::size_t>> pairs_;
  std::set<std::pair<std::size_t, std::size_t>> extents_;  // functions of an extent of indices and of their rows
  Values values_;
  int reads_ = 0;
};

}  // namespace

ShrunkModel shrink(const Model& model, const ShrinkRequest& request) { return Shrinker(model, request).shrink(); }

}  // namespace shardplan
