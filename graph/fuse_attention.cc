// Found from Softmax: backwards through mask and scale to the first product, forwards through dropout to the second. Each
// value between must have one reader, so that nothing is lost with it.
#include "graph/fuse_attention.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operators/catalogue.h"

namespace shardplan {
namespace {

/// Operators of one attention and what the fused one needs to know of them.
struct Attention {
  std::vector<OperatorId> inner;  // all but the last product
  OperatorId last{0};
  TensorId q{0}, k{0}, v{0};
  // How dimensions of an operand come to be batch, heads, positions, channels; of `out` back again. Empty: they are.
  std::vector<std::int64_t> of_q, of_k, of_v, of_out;
  double scale = 1;
  bool is_causal = false;
  double keep_prob = 1;
};

class Fusion {
 public:
  explicit Fusion(const OperatorGraph& graph) : graph_(graph), builder_(graph) {}

  OperatorGraph run() {
    IdVector<OperatorId, char> is_removed(graph_.operators().size(), 0);
    for (const OperatorId id : graph_.operators().ids()) {
      if (type_of(id) != "Softmax") continue;
      const std::optional<Attention> found = attention_around(id);
      if (!found) continue;
      for (const OperatorId inner : found->inner) is_removed[inner] = 1;
      replace(*found);
    }
    while (is_removed.size() < builder_.num_operators()) is_removed.push_back(0);
    builder_.remove(is_removed);
    std::vector<OperatorId> behind_removal;  // by operator: what it is then
    std::size_t num_left = 0;
    for (const char removed : is_removed) {
      behind_removal.push_back(OperatorId(num_left));
      num_left += removed == 0 ? 1 : 0;
    }
    for (const auto& [op, last] : added_)
      builder_.place_before(behind_removal[op.value()], behind_removal[last.value()]);
    return builder_.build();
  }

 private:
  std::string_view type_of(OperatorId id) const { return graph_.operation(id).type->name; }

  bool is_fusible(OperatorId id) const {
    const GraphOperator& op = graph_.operators()[id];
    return op.pass == Pass::kForward && op.strategy->in.empty() && op.strategy->out.empty() &&
           op.recompute_scope != op.name;
  }

  /// The only reader of an operator's first result; further results are read by nothing.
  std::optional<OperatorId> only_reader(OperatorId id) const {
    for (const TensorId result : graph_.operators()[id].results) {
      const GraphTensor& tensor = graph_.tensor(result);
      const std::size_t wanted = tensor.result == 0 ? 1 : 0;
      if (tensor.readers.size() != wanted || tensor.is_output || graph_.loss() == result) return std::nullopt;
    }
    return graph_.tensor(graph_.operators()[id].results[0]).readers[0].op;
  }

  /// The value of a constant scalar.
  std::optional<double> scalar(TensorId id) const {
    const GraphTensor& tensor = graph_.tensor(id);
    const bool is_scalar = tensor.kind == TensorKind::kConstant && num_elements(tensor.type.shape) == 1;
    return is_scalar && tensor.fill.kind == Fill::Kind::kValue ? std::optional(tensor.fill.value) : std::nullopt;
  }

  bool is_product(OperatorId id, bool transposes_b) const {
    const Operation& operation = graph_.operation(id);
    if (type_of(id) != "BatchMatMul" || operation.operands[0].shape.size() != 4) return false;
    const Shape& a = operation.operands[0].shape;
    const Shape& b = operation.operands[1].shape;
    return !operation.flag("transpose_a") && operation.flag("transpose_b") == transposes_b && b.size() == 4 &&
           a[0] == b[0] && a[1] == b[1];
  }

  /// The terms of an Einsum of two operands of four dimensions and of its result; nothing of others.
  std::optional<std::array<std::string, 3>> terms(OperatorId id) const {
    if (type_of(id) != "Einsum") return std::nullopt;
    std::array<std::string, 3> terms;
    std::size_t term = 0;
    for (const char c : graph_.operation(id).text("equation")) {
      if (c == ',' || c == '>') ++term;
      if (std::isalpha(static_cast<unsigned char>(c)) != 0 && term < 3) terms[term] += c;
    }
    const bool are_of_four = std::all_of(terms.begin(), terms.end(), [](const auto& one) { return one.size() == 4; });
    return term == 2 && are_of_four ? std::optional(terms) : std::nullopt;
  }

  /// Where each letter of `to` stands in `from`; empty if they are equal, nothing if they are not of the same letters.
  static std::optional<std::vector<std::int64_t>> permutation(const std::string& from, const std::string& to) {
    if (!std::is_permutation(from.begin(), from.end(), to.begin(), to.end())) return std::nullopt;
    std::vector<std::int64_t> places;
    for (const char c : to) {
      if (from != to) places.push_back(static_cast<std::int64_t>(from.find(c)));
    }
    return places;
  }

  /// The letter that both have and `without` lacks, the only one of both that it lacks.
  static std::optional<char> summed(const std::string& a, const std::string& b, const std::string& without) {
    std::string found;
    for (const char c : a) {
      if (b.find(c) != std::string::npos && without.find(c) == std::string::npos) found += c;
    }
    return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
  }

  /// Whether it makes scores [batch, heads, queries, keys], of which operands are then set.
  bool makes_scores(OperatorId id, Attention& attention) const {
    const std::vector<TensorId>& operands = graph_.operators()[id].operands;
    attention.q = operands[0];
    if (operands.size() > 1) attention.k = operands[1];
    if (is_product(id, true)) return true;
    const auto of = terms(id);
    if (!of) return false;
    const auto& [q, k, scores] = *of;
    const auto channel = summed(q, k, scores);
    if (!channel) return false;
    const std::string outer = scores.substr(0, 2);
    const auto of_q = permutation(q, outer + scores[2] + *channel);
    const auto of_k = permutation(k, outer + scores[3] + *channel);
    if (!of_q || !of_k) return false;
    attention.of_q = *of_q;
    attention.of_k = *of_k;
    return true;
  }

  /// Whether it makes the context of weights [batch, heads, queries, keys], its first operand.
  bool makes_context(OperatorId id, Attention& attention) const {
    if (is_product(id, false)) return true;
    const auto of = terms(id);
    if (!of) return false;
    const auto& [weights, v, out] = *of;
    if (out.find(weights[3]) != std::string::npos) return false;
    std::string channel = v;
    std::erase_if(channel, [&, &weights = weights](char c) { return weights.find(c) != std::string::npos; });
    if (channel.size() != 1) return false;
    const std::string outer = weights.substr(0, 2);
    const auto of_v = permutation(v, outer + weights[3] + channel);
    const auto of_out = permutation(outer + weights[2] + channel, out);
    if (!of_v || !of_out) return false;
    attention.of_v = *of_v;
    attention.of_out = *of_out;
    return true;
  }

  /// Takes one step from scores backwards into `attention`; returns the scores before it.
  std::optional<TensorId> before(OperatorId id, Attention& attention) const {
    const std::vector<TensorId>& operands = graph_.operators()[id].operands;
    const std::string_view type = type_of(id);
    if (type == "Mul" || type == "RealDiv" || type == "Div") {
      if (const auto value = scalar(operands[1])) {
        attention.scale *= type == "Mul" ? *value : 1 / *value;
        return operands[0];
      }
      const auto first = scalar(operands[0]);
      if (type != "Mul" || !first) return std::nullopt;
      attention.scale *= *first;
      return operands[1];
    }
    // A mask before a scale is scaled, but stays far below every score; behind dropout or twice it is something else.
    if (type != "Add" || attention.is_causal) return std::nullopt;
    for (const std::size_t mask : {std::size_t{1}, std::size_t{0}}) {
      const GraphTensor& tensor = graph_.tensor(operands[mask]);
      const Shape& scores = graph_.tensor(operands[1 - mask]).type.shape;
      const bool is_causal = tensor.kind == TensorKind::kConstant && tensor.fill.kind == Fill::Kind::kCausal;
      if (!is_causal || scores.size() != 4 || num_elements(tensor.type.shape) != scores[2] * scores[3]) continue;
      attention.is_causal = true;
      return operands[1 - mask];
    }
    return std::nullopt;
  }

  std::optional<Attention> attention_around(OperatorId softmax) const {
    Attention attention;
    const Operation& operation = graph_.operation(softmax);
    const std::int64_t axis = operation.integer("axis");
    if (operation.operands[0].shape.size() != 4 || (axis != -1 && axis != 3) || !is_fusible(softmax))
      return std::nullopt;
    attention.inner.push_back(softmax);
    TensorId scores = graph_.operators()[softmax].operands[0];
    while (true) {
      const std::optional<OperatorId> maker = graph_.tensor(scores).producer;
      if (!maker || !is_fusible(*maker) || !only_reader(*maker)) return std::nullopt;
      attention.inner.push_back(*maker);
      if (makes_scores(*maker, attention)) break;
      const std::optional<TensorId> earlier = before(*maker, attention);
      if (!earlier) return std::nullopt;
      scores = *earlier;
    }
    std::optional<OperatorId> next = only_reader(softmax);
    TensorId weights = graph_.operators()[softmax].results[0];
    if (next && type_of(*next) == "Dropout" && is_fusible(*next)) {
      attention.inner.push_back(*next);
      attention.keep_prob = graph_.operation(*next).number("keep_prob");
      weights = graph_.operators()[*next].results[0];
      next = only_reader(*next);
    }
    if (!next || !makes_context(*next, attention) || !is_fusible(*next)) return std::nullopt;
    const std::vector<TensorId>& operands = graph_.operators()[*next].operands;
    if (operands[0] != weights || operands[1] == weights) return std::nullopt;
    const int worker = graph_.operators()[*next].worker;
    for (const OperatorId inner : attention.inner) {
      if (graph_.operators()[inner].worker != worker) return std::nullopt;  // what crosses workers stays as written
    }
    attention.last = *next;
    attention.v = operands[1];
    return attention;
  }

  /// An operator of the attention's beside its last one, which comes before it.
  TensorId add_before(const Attention& attention, const std::string& suffix, Operation operation,
                      std::vector<TensorId> operands) {
    const GraphOperator& last = graph_.operators()[attention.last];
    GraphOperator op = last;
    op.name = last.name + suffix;
    op.operands = std::move(operands);
    op.results = {};
    std::vector<std::string> results{last.name + suffix};
    if (operation.results.size() > 1) results.push_back(results[0] + ".lse");
    const OperatorId id = builder_.add_operator(std::move(op), std::move(operation), std::move(results));
    added_.emplace_back(id, attention.last);
    return builder_.op(id).results[0];
  }

  TensorId permuted(const Attention& attention, const std::string& suffix, TensorId tensor,
                    const std::vector<std::int64_t>& places) {
    if (places.empty()) return tensor;
    return add_before(attention, suffix, transposition(graph_.tensor(tensor).type, places), {tensor});
  }
  static Operation transposition(const TensorType& type, const std::vector<std::int64_t>& places) {
    return make_operation(*find_operator_type("Transpose"), {{"perm", places}}, {type});
  }

  void replace(const Attention& attention) {
    const std::vector<TensorId> operands = {permuted(attention, ".q", attention.q, attention.of_q),
                                            permuted(attention, ".k", attention.k, attention.of_k),
                                            permuted(attention, ".v", attention.v, attention.of_v)};
    std::vector<TensorType> types;
    for (const TensorId operand : operands) types.push_back(builder_.tensor(operand).type);
    Operation fused = make_operation(
        *find_operator_type("FlashAttention"),
        {{"scale", attention.scale}, {"causal", attention.is_causal}, {"keep_prob", attention.keep_prob}}, types);
    if (!attention.of_out.empty()) {
      const TensorType made = fused.results[0];
      const TensorId context = add_before(attention, ".fused", std::move(fused), operands);
      GraphOperator& last = builder_.op(attention.last);
      last.operation = builder_.intern(transposition(made, attention.of_out));
      last.operands = {context};
      return;
    }
    GraphTensor lse;
    lse.name = graph_.operators()[attention.last].name + ".lse";
    lse.type = fused.results[1];
    lse.producer = attention.last;
    lse.result = 1;
    lse.place = graph_.operators()[attention.last].place;
    const TensorId lse_id = builder_.add_tensor(std::move(lse));
    const OperationId operation = builder_.intern(std::move(fused));
    GraphOperator& op = builder_.op(attention.last);
    op.operation = operation;
    op.operands = operands;
    op.results.push_back(lse_id);
  }

  const OperatorGraph& graph_;
  OperatorGraphBuilder builder_;
  std::vector<std::pair<OperatorId, OperatorId>> added_;  // each with the operator before which it goes
};

}  // namespace

OperatorGraph fuse_attention(const OperatorGraph& graph) { return Fusion(graph).run(); }

}  // namespace shardplan
