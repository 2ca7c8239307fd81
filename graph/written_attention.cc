// Searches from a Softmax: backwards through masks, biases and scale to the products, forwards through dropout to the
// last product. BatchMatMul, MatMul and Einsum become letters of operands and result, renamed by their place in the
// scores. A dimension's role follows from the tensors that have it: keys k and v, queries q, heads and batch both.
#include "graph/written_attention.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace shardplan {
namespace {

constexpr char kChannel = '*';
constexpr std::size_t kMostOperators = 32;  // people write attention with about a dozen

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

/// The letters of the operands and the result of a product.
struct Letters {
  std::string a, b, result;
};

/// `letters` renamed by their place in `scores`; a letter that is not in the scores is the channel, of which there must
/// be exactly one.
std::optional<std::string> by_place(const std::string& letters, const std::string& scores) {
  std::string places;
  for (const char letter : letters) {
    const std::size_t at = scores.find(letter);
    places += at == std::string::npos ? kChannel : static_cast<char>('a' + at);
  }
  return std::count(places.begin(), places.end(), kChannel) == 1 ? std::optional(places) : std::nullopt;
}

bool is_decided(const OperatorGraph& graph, OperatorId id) {
  const GraphOperator& op = graph.operators()[id];
  return !op.strategy->in.empty() || !op.strategy->out.empty() || op.recompute_scope == op.name;
}

/// The operator of the whole attention takes these from the last one.
bool are_said_alike(const GraphOperator& a, const GraphOperator& b) {
  return a.level == b.level && a.level_scope == b.level_scope && a.gather_again == b.gather_again &&
         a.is_compiled == b.is_compiled && a.is_data_parallel == b.is_data_parallel;
}

bool is_decided_in(const OperatorGraph& graph, OperatorId id, const WrittenAttention& attention) {
  return is_decided(graph, id) || !are_said_alike(graph.operators()[id], graph.operators()[attention.last]);
}

class Finder {
 public:
  Finder(const OperatorGraph& graph, bool takes_decided) : graph_(graph), takes_decided_(takes_decided) {}

  std::optional<WrittenAttention> around(OperatorId softmax) const {
    const Operation& operation = graph_.operation(softmax);
    WrittenAttention found;
    found.scores = operation.operands[0].shape;
    const auto rank = static_cast<std::int64_t>(found.scores.size());
    const std::int64_t axis = operation.integer("axis");
    if (rank < 2 || rank > 8 || (axis != -1 && axis != rank - 1) || !is_fusible(softmax)) return std::nullopt;
    found.inner.push_back(softmax);
    std::optional<double> scale;
    if (!take_scores(graph_.operators()[softmax].operands[0], 1, scale, found)) return std::nullopt;
    found.scale = *scale;
    if (!take_context(softmax, found) || !are_on_one_worker(found) || !have_one_type(found)) return std::nullopt;
    const auto is_decided_here = [&](OperatorId id) { return is_decided_in(graph_, id, found); };
    if (!takes_decided_ && std::ranges::any_of(found.inner, is_decided_here)) return std::nullopt;
    tell_dims_apart(found);
    return found;
  }

 private:
  std::string_view type_of(OperatorId id) const { return graph_.operation(id).type->name; }
  const ShortVector<TensorId>& operands(OperatorId id) const { return graph_.operators()[id].operands; }
  const TensorType& type(TensorId id) const { return graph_.tensor(id).type; }

  bool is_fusible(OperatorId id) const {
    return graph_.operators()[id].pass == Pass::kForward && (takes_decided_ || !is_decided(graph_, id));
  }

  /// The only reader of an operator's first result, if its further results have no readers.
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

  std::optional<Letters> letters(OperatorId id) const {
    const Operation& operation = graph_.operation(id);
    Letters result;
    if (type_of(id) == "Einsum") {
      std::vector<std::string> terms(1);
      for (const char c : operation.text("equation")) {
        if (c == ',' || c == '>') terms.emplace_back();
        if (std::isalpha(static_cast<unsigned char>(c)) != 0) terms.back() += c;
      }
      if (terms.size() != 3) return std::nullopt;
      return Letters{terms[0], terms[1], terms[2]};
    }
    if (type_of(id) != "BatchMatMul" && type_of(id) != "MatMul") return std::nullopt;
    const Shape& a = operation.operands[0].shape;
    const Shape& b = operation.operands[1].shape;
    if (a.size() != b.size() || !std::equal(a.begin(), a.end() - 2, b.begin())) return std::nullopt;
    for (std::size_t d = 0; d + 2 < a.size(); ++d) result.result += static_cast<char>('A' + d);
    result.a = result.result + (operation.flag("transpose_a") ? "km" : "mk");
    result.b = result.result + (operation.flag("transpose_b") ? "nk" : "kn");
    result.result += "mn";
    return result;
  }

  /// q and k, if the operator computes scores from them.
  std::optional<WrittenAttention::Product> product(OperatorId id, const WrittenAttention& found) const {
    const std::optional<Letters> of = letters(id);
    if (!of || of->result.size() != found.scores.size()) return std::nullopt;
    const auto a = by_place(of->a, of->result);
    const auto b = by_place(of->b, of->result);
    if (!a || !b) return std::nullopt;
    AttentionTensor q{operands(id)[0], *a};
    AttentionTensor k{operands(id)[1], *b};
    if (has(q.dims, found.keys())) std::swap(q, k);
    const bool fits = has(q.dims, found.queries()) && !has(q.dims, found.keys()) && has(k.dims, found.keys()) &&
                      !has(k.dims, found.queries());
    return fits ? std::optional(WrittenAttention::Product{q, k}) : std::nullopt;
  }

  bool has_last_dims(TensorId id, const Shape& scores) const {
    const Shape& shape = type(id).shape;
    return shape.size() >= 2 && std::equal(shape.end() - 2, shape.end(), scores.end() - 2);
  }
  bool is_causal_mask(TensorId id, const Shape& scores) const {
    const GraphTensor& tensor = graph_.tensor(id);
    return tensor.kind == TensorKind::kConstant && tensor.fill.kind == Fill::Kind::kCausal &&
           has_last_dims(id, scores) && num_elements(tensor.type.shape) == scores[scores.size() - 2] * scores.back();
  }
  bool is_zero(TensorId id) const {
    const GraphTensor& tensor = graph_.tensor(id);
    return tensor.kind == TensorKind::kConstant && tensor.fill == Fill{Fill::Kind::kValue, 0};
  }

  /// Adds the terms of the scores and their operators to `found`. `factor` is the product of the scales applied to them
  /// afterwards, `scale` the common scale of all products.
  bool take_scores(TensorId scores, double factor, std::optional<double>& scale, WrittenAttention& found) const {
    const std::optional<OperatorId> maker = graph_.tensor(scores).producer;
    if (found.inner.size() > kMostOperators) return false;
    if (!maker || type(scores).shape != found.scores || !is_fusible(*maker) || !only_reader(*maker)) return false;
    found.inner.push_back(*maker);
    if (const auto of = product(*maker, found)) {
      if (scale && *scale != factor) return false;
      scale = factor;
      found.products.push_back(*of);
      return true;
    }
    const std::string_view name = type_of(*maker);
    const ShortVector<TensorId>& terms = operands(*maker);
    if (name == "Cast") return is_widening(*maker) && take_scores(terms[0], factor, scale, found);
    if (name == "Mul" || name == "RealDiv" || name == "Div") {
      if (const auto value = scalar(terms[1])) {
        return take_scores(terms[0], factor * (name == "Mul" ? *value : 1 / *value), scale, found);
      }
      const auto first = scalar(terms[0]);
      return name == "Mul" && first && take_scores(terms[1], factor * *first, scale, found);
    }
    return name == "Add" && take_sum(terms[0], terms[1], factor, scale, found);
  }

  bool take_sum(TensorId a, TensorId b, double factor, std::optional<double>& scale, WrittenAttention& found) const {
    for (const auto& [scores, term] : {std::pair{a, b}, std::pair{b, a}}) {
      if (is_zero(term)) return take_scores(scores, factor, scale, found);
      if (!is_causal_mask(term, found.scores)) continue;
      // A mask that is scaled later still stays far below every score; two masks are not supported.
      if (std::exchange(found.is_causal, true)) return false;
      return take_scores(scores, factor, scale, found);
    }
    const WrittenAttention before = found;
    const std::optional<double> scale_before = scale;
    if (take_scores(a, factor, scale, found)) {
      const WrittenAttention with_a = found;
      const std::optional<double> scale_of_a = scale;
      if (take_scores(b, factor, scale, found)) return true;
      found = with_a;
      scale = scale_of_a;
      return take_bias(b, factor, found);
    }
    found = before;
    scale = scale_before;
    return take_scores(b, factor, scale, found) && take_bias(a, factor, found);
  }

  /// A term that is scaled after it is added to the scores is not a bias as attention adds it.
  bool take_bias(TensorId bias, double factor, WrittenAttention& found) const {
    if (factor != 1 || type(bias).shape.size() > found.scores.size() || !is_floating(type(bias).dtype)) return false;
    const std::optional<OperatorId> maker = graph_.tensor(bias).producer;
    if (maker && type_of(*maker) == "Add" && is_fusible(*maker) && !found.is_causal && !graph_.tensor(bias).is_output) {
      for (const std::size_t mask : {std::size_t{1}, std::size_t{0}}) {
        if (!is_causal_mask(operands(*maker)[mask], found.scores)) continue;
        found.is_causal = true;
        found.masked_biases.push_back(*maker);
        found.biases.push_back(operands(*maker)[1 - mask]);
        return true;
      }
    }
    found.biases.push_back(bias);
    return true;
  }

  bool is_widening(OperatorId cast) const {
    const Operation& operation = graph_.operation(cast);
    return is_floating(operation.operands[0].dtype) && is_floating(operation.results[0].dtype) &&
           element_bytes(operation.operands[0].dtype) <= element_bytes(operation.results[0].dtype);
  }

  /// Follows Softmax through dropout, and a cast back to the type of v, to the context.
  bool take_context(OperatorId softmax, WrittenAttention& found) const {
    TensorId weights = graph_.operators()[softmax].results[0];
    std::optional<OperatorId> next = only_reader(softmax);
    bool has_dropout = false;
    while (next && is_fusible(*next)) {
      const std::string_view name = type_of(*next);
      if (name == "Dropout" && !std::exchange(has_dropout, true)) {
        found.keep_prob = graph_.operation(*next).number("keep_prob");
      } else if (name != "Cast") {
        break;
      }
      found.inner.push_back(*next);
      weights = graph_.operators()[*next].results[0];
      next = only_reader(*next);
    }
    const std::optional<Letters> of = next && is_fusible(*next) ? letters(*next) : std::nullopt;
    if (!of || (operands(*next)[0] == weights) == (operands(*next)[1] == weights)) return false;
    const bool is_first = operands(*next)[0] == weights;
    const std::string& of_weights = is_first ? of->a : of->b;
    const auto v = by_place(is_first ? of->b : of->a, of_weights);
    const auto context = by_place(of->result, of_weights);
    if (!v || !context || of_weights.size() != found.scores.size()) return false;
    // All of the weights' dims except the keys, which are summed, plus the channels.
    const bool fits = has(*v, found.keys()) && !has(*v, found.queries()) && !has(*context, found.keys()) &&
                      context->size() == found.scores.size();
    if (!fits) return false;
    found.last = *next;
    found.v = {operands(*next)[is_first ? 1 : 0], *v};
    found.context = *context;
    return true;
  }

  bool are_on_one_worker(const WrittenAttention& found) const {  // attention across workers stays as written
    const int worker = graph_.operators()[found.last].worker;
    return std::all_of(found.inner.begin(), found.inner.end(),
                       [&](OperatorId id) { return graph_.operators()[id].worker == worker; });
  }

  bool have_one_type(const WrittenAttention& found) const {
    const DataType of_v = type(found.v.tensor).dtype;
    const bool equal_products = std::all_of(found.products.begin(), found.products.end(), [&](const auto& product) {
      return type(product.q.tensor).dtype == of_v && type(product.k.tensor).dtype == of_v;
    });
    const bool equal_biases = std::all_of(found.biases.begin(), found.biases.end(), [&](TensorId bias) {
      return type(bias).dtype == type(found.biases[0]).dtype;
    });
    return is_floating(of_v) && equal_products && equal_biases &&
           type(graph_.operators()[found.last].results[0]).dtype == of_v;
  }

  static void tell_dims_apart(WrittenAttention& found) {
    std::string of_keys = found.v.dims;
    for (const WrittenAttention::Product& product : found.products) of_keys += product.k.dims;
    for (char letter = 'a'; letter < found.queries(); ++letter) {
      (has(of_keys, letter) ? found.shared : found.of_queries) += letter;
    }
  }

  const OperatorGraph& graph_;
  const bool takes_decided_;
};

}  // namespace

std::optional<WrittenAttention> written_attention(const OperatorGraph& graph, OperatorId softmax) {
  return Finder(graph, false).around(softmax);
}

bool resembles_attention(const OperatorGraph& graph, OperatorId softmax) {
  const auto is_parameter = [&](TensorId id) {
    const GraphTensor& tensor = graph.tensor(id);
    const bool is_cast = tensor.producer && graph.operation(*tensor.producer).type->role == OperatorRole::kConversion;
    const TensorId held = is_cast ? graph.operators()[*tensor.producer].operands[0] : id;
    return graph.tensor(held).kind == TensorKind::kParameter;
  };
  const auto is_product = [&](OperatorId id) {
    return graph.operation(id).type->work == WorkKind::kContraction &&
           std::ranges::none_of(graph.operators()[id].operands, is_parameter);  // a router's scores are of a weight
  };
  const SharedShape& scores = graph.operation(softmax).operands[0].shape;
  const auto keeps_shape = [&](TensorId tensor) { return graph.tensor(tensor).type.shape == scores; };
  std::vector<TensorId> open = {graph.operators()[softmax].operands[0]};
  bool is_scored = false;
  for (std::size_t i = 0; i < open.size() && i < kMostOperators && !is_scored; ++i) {
    const std::optional<OperatorId> maker = graph.tensor(open[i]).producer;
    if (!maker) continue;
    is_scored = is_product(*maker);
    for (const TensorId operand : graph.operators()[*maker].operands) {
      if (keeps_shape(operand)) open.push_back(operand);
    }
  }
  if (!is_scored) return false;
  open = {graph.operators()[softmax].results[0]};
  for (std::size_t i = 0; i < open.size() && i < kMostOperators; ++i) {
    for (const Reader& reader : graph.tensor(open[i]).readers) {
      if (is_product(reader.op)) return scores.size() > 2;
      const TensorId result = graph.operators()[reader.op].results[0];
      if (keeps_shape(result)) open.push_back(result);
    }
  }
  return false;
}

std::optional<OperatorId> decided_in_attention(const OperatorGraph& graph, OperatorId softmax) {
  if (written_attention(graph, softmax)) return std::nullopt;
  const std::optional<WrittenAttention> found = Finder(graph, true).around(softmax);
  if (!found) return std::nullopt;
  const auto inner =
      std::ranges::find_if(found->inner, [&](OperatorId id) { return is_decided_in(graph, id, *found); });
  return inner == found->inner.end() ? found->last : *inner;
}

}  // namespace shardplan
