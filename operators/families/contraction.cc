// All contractions are one kernel: the factors of the rule say which indices are in both operands and the result
// (batch), in one operand and the result (m, n) or only in the operands (k). The operands are packed as [batch, m, k]
// and [batch, k, n], multiplied, and the result is unpacked. Packing costs one pass over the data
// and makes every transposition, broadcast and einsum the same case.
#include "operators/families/contraction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "operators/building/attributes.h"
#include "operators/building/gradient_support.h"
#include "operators/building/matrix_product.h"
#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"

namespace shardplan {
namespace {

struct MatMulShapes {
  Shape batch_a, batch_b, batch;
  std::int64_t m = 1, n = 1, k = 1;
};

MatMulShapes matmul_shapes(const Operation& operation) {
  const Shape& a = operation.operands[0].shape;
  const Shape& b = operation.operands[1].shape;
  if (a.size() < 2 || b.size() < 2) {
    operand_error(operation,
                  fmt::format("needs operands of at least 2 dimensions, found {} and {}", to_string(a), to_string(b)));
  }
  MatMulShapes shapes;
  const bool ta = operation.flag("transpose_a");
  const bool tb = operation.flag("transpose_b");
  shapes.m = a[a.size() - (ta ? 1 : 2)];
  shapes.k = a[a.size() - (ta ? 2 : 1)];
  shapes.n = b[b.size() - (tb ? 2 : 1)];
  const std::int64_t k_of_b = b[b.size() - (tb ? 1 : 2)];
  if (shapes.k != k_of_b) {
    operand_error(operation, fmt::format("the summed dimensions of {} and {} differ: {} and {}", to_string(a),
                                         to_string(b), shapes.k, k_of_b));
  }
  shapes.batch_a.assign(a.begin(), a.end() - 2);
  shapes.batch_b.assign(b.begin(), b.end() - 2);
  shapes.batch = broadcast_shapes(operation, shapes.batch_a, shapes.batch_b);
  return shapes;
}

DataType common_type(const Operation& operation) {
  const DataType type = operation.operands[0].dtype;
  for (const TensorType& operand : operation.operands) {
    if (operand.dtype != type) dtype_error(operation, type, operand.dtype);
  }
  return type;
}

/// The type of a product: as `dtype` says, else that of its operands.
DataType product_type(const Operation& operation) {
  const DataType common = common_type(operation);
  const std::string& text = operation.text("dtype");
  if (text.empty()) return common;
  const std::optional<DataType> type = parse_data_type(text);
  if (!type || !is_floating(*type)) {
    operand_error(operation, fmt::format("dtype is '{}'; expected f64, f32, f16, bf16 or f8e4m3", text));
  }
  if (!is_floating(common))
    operand_error(operation, fmt::format("dtype is {}; the operands are {}", text, to_string(common)));
  return *type;
}

AttributeSpec product_type_attribute() { return text("dtype", "", "of y; that of the operands if not given"); }

struct EinsumText {
  std::vector<std::string> operands;
  std::string result;
};

EinsumText parse_einsum(const Operation& operation) {
  const std::string& equation = operation.text("equation");
  EinsumText text;
  std::string current;
  bool behind_arrow = false;
  for (std::size_t i = 0; i < equation.size(); ++i) {
    const char c = equation[i];
    if (c == ' ') continue;
    if (c == ',' && !behind_arrow) {
      text.operands.push_back(std::move(current));
      current.clear();
    } else if (c == '-' && i + 1 < equation.size() && equation[i + 1] == '>' && !behind_arrow) {
      text.operands.push_back(std::move(current));
      current.clear();
      behind_arrow = true;
      ++i;
    } else if (std::isalpha(static_cast<unsigned char>(c))) {
      if (current.find(c) != std::string::npos) {
        operand_error(operation, fmt::format("'{}' stands twice in one term of '{}'", c, equation));
      }
      current += c;
    } else {
      operand_error(operation, fmt::format("'{}' in '{}'; expected letters, ',' and '->'", c, equation));
    }
  }
  if (!behind_arrow) operand_error(operation, fmt::format("'{}' has no '->'", equation));
  text.result = current;
  if (text.operands.size() != operation.operands.size() || text.operands.size() > 2) {
    operand_error(operation, fmt::format("'{}' has {} terms for {} inputs; one or two are possible", equation,
                                         text.operands.size(), operation.operands.size()));
  }
  return text;
}

std::map<char, std::int64_t> einsum_sizes(const Operation& operation, const EinsumText& text) {
  std::map<char, std::int64_t> sizes;
  for (std::size_t i = 0; i < text.operands.size(); ++i) {
    const Shape& shape = operation.operands[i].shape;
    if (text.operands[i].size() != shape.size()) {
      operand_error(operation, fmt::format("term '{}' has {} indices, its input {} dimensions", text.operands[i],
                                           text.operands[i].size(), shape.size()));
    }
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const auto [at, is_new] = sizes.emplace(text.operands[i][d], shape[d]);
      if (!is_new && at->second != shape[d]) {
        operand_error(operation, fmt::format("index {} is {} and {}", text.operands[i][d], at->second, shape[d]));
      }
    }
  }
  for (const char c : text.result) {
    if (!sizes.contains(c)) operand_error(operation, fmt::format("no term has the index {} of the result", c));
  }
  return sizes;
}

/// Strides of a local tensor by factor of the rule; 0 for factors that it does not walk.
Shape strides_by_factor(const ShardingRule& rule, const TensorWalk& walk, const Shape& local) {
  const Shape own = row_major_strides(local);
  Shape strides(rule.factors.size(), 0);
  for (std::size_t d = 0; d < walk.size(); ++d) {
    if (!walk[d].factors.empty()) strides[walk[d].factors[0]] = own[d];
  }
  return strides;
}

/// Extents and strides of some factors, as a loop nest.
struct Loops {
  Shape extents;
  std::array<Shape, 3> strides;  // a, b, result
  std::int64_t size = 1;

  void add(std::int64_t extent, std::int64_t a, std::int64_t b, std::int64_t c) {
    extents.push_back(extent);
    strides[0].push_back(a);
    strides[1].push_back(b);
    strides[2].push_back(c);
    size *= extent;
  }
};

Loops join(const Loops& x, const Loops& y) {
  Loops result = x;
  for (std::size_t i = 0; i < y.extents.size(); ++i) {
    result.add(y.extents[i], y.strides[0][i], y.strides[1][i], y.strides[2][i]);
  }
  return result;
}

/// Copies a strided tensor in the order of `loops`; `summed` indices, which nothing else has, are added up.
std::vector<double> pack(const Loops& loops, const Loops& summed, const double* data, std::size_t which) {
  std::vector<double> packed(static_cast<std::size_t>(loops.size), 0.0);
  std::size_t at = 0;
  for_each_point<1>(loops.extents, {loops.strides[which]}, [&](const std::array<std::int64_t, 1>& base) {
    double sum = 0;
    for_each_point<1>(summed.extents, {summed.strides[which]},
                      [&](const std::array<std::int64_t, 1>& offset) { sum += data[base[0] + offset[0]]; });
    packed[at++] = sum;
  });
  return packed;
}

std::vector<TensorType> infer_matmul(const Operation& operation) {
  MatMulShapes shapes = matmul_shapes(operation);
  Shape result = std::move(shapes.batch);
  result.push_back(shapes.m);
  result.push_back(shapes.n);
  return {{std::move(result), product_type(operation)}};
}

ShardingRule matmul_rule(const Operation& operation) {
  const MatMulShapes shapes = matmul_shapes(operation);
  RuleBuilder builder;
  const TensorWalk batch = builder.add_named("b", shapes.batch);
  const DimensionWalk m = builder.add("m", shapes.m);
  const DimensionWalk k = builder.add("k", shapes.k, FactorKind::kReduction);
  const DimensionWalk n = builder.add("n", shapes.n);
  const bool ta = operation.flag("transpose_a");
  const bool tb = operation.flag("transpose_b");
  builder.operand(
      concatenate(broadcast_walk(batch, shapes.batch, shapes.batch_a), ta ? TensorWalk{k, m} : TensorWalk{m, k}));
  builder.operand(
      concatenate(broadcast_walk(batch, shapes.batch, shapes.batch_b), tb ? TensorWalk{n, k} : TensorWalk{k, n}));
  builder.result(concatenate(batch, {m, n}));
  return builder.build();
}

std::vector<TensorType> infer_einsum(const Operation& operation) {
  const EinsumText text = parse_einsum(operation);
  const std::map<char, std::int64_t> sizes = einsum_sizes(operation, text);
  Shape shape;
  for (const char c : text.result) shape.push_back(sizes.at(c));
  return {{std::move(shape), product_type(operation)}};
}

ShardingRule einsum_rule(const Operation& operation) {
  const EinsumText text = parse_einsum(operation);
  RuleBuilder builder;
  std::map<char, DimensionWalk> by_letter;
  for (const auto& [letter, size] : einsum_sizes(operation, text)) {
    const bool is_summed = text.result.find(letter) == std::string::npos;
    by_letter[letter] =
        builder.add(std::string(1, letter), size, is_summed ? FactorKind::kReduction : FactorKind::kPassThrough);
  }
  const auto walk = [&](const std::string& letters) {
    TensorWalk result;
    for (const char c : letters) result.push_back(by_letter.at(c));
    return result;
  };
  for (std::uint32_t i = 0; i < text.operands.size(); ++i) {
    builder.operand(walk(text.operands[i]));
  }
  builder.result(walk(text.result));
  return builder.build();
}

void contract(const KernelCall& call) {
  const ShardingRule& rule = call.operation.rule;
  const bool has_b = call.operands.size() == 2;
  const Shape a_strides = strides_by_factor(rule, rule.operands[0], call.operands[0].shape);
  const Shape b_strides =
      has_b ? strides_by_factor(rule, rule.operands[1], call.operands[1].shape) : Shape(rule.factors.size(), 0);
  const Shape c_strides = strides_by_factor(rule, rule.results[0], call.results[0].shape);
  Loops batch, m, n, k, only_a, only_b;
  for (std::uint32_t f = 0; f < rule.factors.size(); ++f) {
    const bool in_a = walks(rule.operands[0], f);
    const bool in_b = has_b && walks(rule.operands[1], f);
    const bool in_c = walks(rule.results[0], f);
    Loops& loops = in_a && in_b ? (in_c ? batch : k) : in_a ? (in_c ? m : only_a) : (in_c ? n : only_b);
    loops.add(call.boxes[f].size(), a_strides[f], b_strides[f], c_strides[f]);
  }
  const std::vector<double> a = pack(join(join(batch, m), k), only_a, call.operands[0].data, 0);
  const std::vector<double> b =
      has_b ? pack(join(join(batch, k), n), only_b, call.operands[1].data, 1) : std::vector<double>{1.0};
  std::vector<double> c(static_cast<std::size_t>(batch.size * m.size * n.size), 0.0);
  for (std::int64_t s = 0; s < batch.size; ++s) {
    multiply_add(m.size, n.size, k.size, a.data() + s * m.size * k.size, b.data() + s * k.size * n.size,
                 c.data() + s * m.size * n.size);
  }
  std::size_t at = 0;
  const Loops all = join(join(batch, m), n);
  for_each_point<1>(all.extents, {all.strides[2]},
                    [&](const std::array<std::int64_t, 1>& offset) { call.results[0].data[offset[0]] = c[at++]; });
}

// ---- gradients

/// The types in which a product's gradients are computed. That of its result is read in the operands' type, through a Cast
/// where it has another. Products of that and the other operand have the operands' type; but where those are of one byte,
/// that of the result, as in training with products in f8 (Micikevicius et al., 2022; torchao's Float8Linear).
class ProductGradients {
 public:
  /// Of a product whose result has a gradient.
  ProductGradients(GradientBuilder& builder, const GradientRequest& request)
      : builder_(builder), dy_(*request.result_gradients[0]) {
    const Operation& operation = request.operation;
    const DataType read = operation.operands[0].dtype, made = operation.results[0].dtype;
    if (builder.type(dy_).dtype != read)
      dy_ = add_one(builder, "Cast", {dy_}, {{"dtype", std::string(to_string(read))}});
    if (element_bytes(read) == 1 && made != read) dtype_ = to_string(made);
  }

  TensorId dy() const { return dy_; }

  TensorId matmul(const std::string& type, TensorId left, TensorId right, bool transpose_left, bool transpose_right) {
    return add_one(builder_, type, {left, right},
                   {{"transpose_a", transpose_left}, {"transpose_b", transpose_right}, {"dtype", dtype_}});
  }

  /// An Einsum by letters. Indices of the result that no term has are put in as repetitions.
  TensorId einsum(const std::vector<std::string>& terms, const std::vector<TensorId>& operands,
                  const std::string& result, const Shape& shape) {
    std::string letters;
    Shape with_ones;
    for (std::size_t d = 0; d < result.size(); ++d) {
      const bool is_known = std::ranges::any_of(
          terms, [&](const std::string& term) { return term.find(result[d]) != std::string::npos; });
      if (is_known) letters += result[d];
      with_ones.push_back(is_known ? shape[d] : 1);
    }
    const std::string left = terms.size() == 1 ? terms[0] : terms[0] + "," + terms[1];
    const TensorId sum =
        add_one(builder_, "Einsum", operands, {{"equation", left + "->" + letters}, {"dtype", dtype_}});
    return broadcast_to(builder_, reshape_to(builder_, sum, with_ones), shape);
  }

 private:
  GradientBuilder& builder_;
  TensorId dy_;
  std::string dtype_;  // of products, if it is not that of their operands
};

/// The batch dimensions of an operand as letters, without those of size 1 that are broadcast; the view without them.
struct Lettered {
  std::string letters;
  Shape shape;
};
Lettered letter(const Shape& operand, const Shape& result, char row, char column) {
  Lettered lettered;
  const std::size_t skipped = result.size() - operand.size();
  for (std::size_t d = 0; d < operand.size(); ++d) {
    const bool is_batch = d + 2 < operand.size();
    if (is_batch && operand[d] != result[skipped + d]) continue;
    lettered.letters += is_batch ? static_cast<char>('A' + skipped + d) : d + 2 == operand.size() ? row : column;
    lettered.shape.push_back(operand[d]);
  }
  return lettered;
}

/// A matmul again where no batch dimension has to be added up, else an Einsum, so that no sum over the batch is held
/// unreduced.
Gradients matmul_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  const Operation& operation = request.operation;
  ProductGradients products(builder, request);
  const TensorId dy = products.dy();
  const bool ta = operation.flag("transpose_a");
  const bool tb = operation.flag("transpose_b");
  const Shape& y = operation.results[0].shape;
  const auto matmul = [&](TensorId left, TensorId right, bool transpose_left, bool transpose_right) {
    return products.matmul(operation.type->name, left, right, transpose_left, transpose_right);
  };
  for (std::size_t i = 0; i < 2; ++i) {
    if (!request.needed[i]) continue;
    const Shape& own = operation.operands[i].shape;
    const TensorId other = request.operands[1 - i];
    const bool has_all_batches = own.size() == y.size() && std::equal(own.begin(), own.end() - 2, y.begin());
    if (has_all_batches && i == 0) {
      gradients[0] = ta ? matmul(other, dy, tb, true) : matmul(dy, other, false, !tb);
    } else if (has_all_batches) {
      gradients[1] = tb ? matmul(dy, other, true, ta) : matmul(other, dy, !ta, false);
    } else {
      const auto [row, column] =
          i == 0 ? (ta ? std::pair('k', 'm') : std::pair('m', 'k')) : (tb ? std::pair('n', 'k') : std::pair('k', 'n'));
      const auto [other_row, other_column] =
          i == 1 ? (ta ? std::pair('k', 'm') : std::pair('m', 'k')) : (tb ? std::pair('n', 'k') : std::pair('k', 'n'));
      const Lettered target = letter(own, y, row, column);
      const Lettered partner = letter(operation.operands[1 - i].shape, y, other_row, other_column);
      const Lettered gradient = letter(y, y, 'm', 'n');
      const TensorId sum =
          products.einsum({gradient.letters, partner.letters}, {dy, reshape_to(builder, other, partner.shape)},
                          target.letters, target.shape);
      gradients[i] = reshape_to(builder, sum, own);
    }
  }
  return gradients;
}

Gradients einsum_gradient(GradientBuilder& builder, const GradientRequest& request) {
  Gradients gradients = no_gradients(request);
  if (!request.result_gradients[0]) return gradients;
  ProductGradients products(builder, request);
  std::string equation;
  for (const char c : request.operation.text("equation")) {
    if (c != ' ') equation += c;
  }
  const std::size_t arrow = equation.find("->");
  const std::string result = equation.substr(arrow + 2);
  std::vector<std::string> terms = {equation.substr(0, arrow)};
  if (const std::size_t comma = terms[0].find(','); comma != std::string::npos) {
    terms = {terms[0].substr(0, comma), terms[0].substr(comma + 1)};
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!request.needed[i]) continue;
    std::vector<std::string> factors = {result};
    std::vector<TensorId> operands = {products.dy()};
    if (terms.size() == 2) {
      factors.push_back(terms[1 - i]);
      operands.push_back(request.operands[1 - i]);
    }
    gradients[i] = products.einsum(factors, operands, terms[i], request.operation.operands[i].shape);
  }
  return gradients;
}

/// [batch, heads, m, n] of two operands that both have heads.
std::optional<std::size_t> product_head_dimension(const Operation& operation) {
  if (operation.results[0].shape.size() < 4 || operation.operands[1].shape.size() < 4) return std::nullopt;
  return 1;
}

OperatorType matmul(const std::string& name, std::string rule_text) {
  return {.name = name,
          .signature = "x1, x2 -> y",
          .attributes = {flag("transpose_a", false, "x1 is [.., k, m]"), flag("transpose_b", false, "x2 is [.., n, k]"),
                         product_type_attribute()},
          .infer = infer_matmul,
          .rule_text = std::move(rule_text),
          .rule = matmul_rule,
          .linear = {{"x1"}, {"x2"}},
          .kernel = contract,
          .gradient = matmul_gradient,
          .work = WorkKind::kContraction,
          .flops_per_point = 2,
          .flops_text = "2 m k n",
          .head_dimension = name == "BatchMatMul" ? product_head_dimension : nullptr,
          .notes =
              "strategy  ((.., a, b), (b, c)), with transpose_b ((.., a, b), (c, b)); b > 1 adds all_reduce,\n"
              "          or reduce_scatter with out_strategy ((.., a*b, c))\n"
              "errors    cuts x1 in A along the summed dimension but x2 in B"};
}

}  // namespace

std::vector<OperatorType> contraction_operators() {
  return {
      matmul("MatMul", "... m k, k n -> ... m n; k: sum"),
      matmul("BatchMatMul", "... m k, ... k n -> ... m n; k: sum"),
      {.name = "Einsum",
       .signature = "x... -> y",
       .attributes = {text("equation", std::nullopt, "as in \"bsh,hf->bsf\"; one or two terms"),
                      product_type_attribute()},
       .infer = infer_einsum,
       .rule_text = "as the equation says",
       .rule = einsum_rule,
       .linear = {{"x"}},
       .kernel = contract,
       .gradient = einsum_gradient,
       .work = WorkKind::kContraction,
       .flops_per_point = 2},
  };
}

}  // namespace shardplan
