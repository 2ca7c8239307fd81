// Found from Softmax: backwards through mask and scale to the first product, forwards through dropout to the second. Each
// value between must have one reader, so that nothing is lost with it.
#include "graph/fuse_attention.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "operators/catalogue.h"

namespace shardplan {
namespace {

/// Operators of one attention and what the fused one needs to know of them.
struct Attention {
  std::vector<OperatorId> inner;  // all but the last product
  OperatorId last{0};
  TensorId q{0}, k{0}, v{0};
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
    builder_.remove(is_removed);
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
      if (is_product(*maker, true)) {
        attention.q = graph_.operators()[*maker].operands[0];
        attention.k = graph_.operators()[*maker].operands[1];
        break;
      }
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
    if (!next || !is_product(*next, false) || !is_fusible(*next)) return std::nullopt;
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

  void replace(const Attention& attention) {
    const std::vector<TensorId> operands = {attention.q, attention.k, attention.v};
    std::vector<TensorType> types;
    for (const TensorId operand : operands) types.push_back(graph_.tensor(operand).type);
    Operation fused = make_operation(
        *find_operator_type("FlashAttention"),
        {{"scale", attention.scale}, {"causal", attention.is_causal}, {"keep_prob", attention.keep_prob}}, types);
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
};

}  // namespace

OperatorGraph fuse_attention(const OperatorGraph& graph) { return Fusion(graph).run(); }

}  // namespace shardplan
