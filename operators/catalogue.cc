// The catalogue: one line per operator. Families share inference, rules and kernels, which stand in the family's file;
// what gradients and phases are made of stands in derived_operators.cc.
#include <algorithm>
#include <cmath>

#include "operators/building/catalogue_entry.h"
#include "operators/building/phases.h"
#include "operators/families/batch_norm.h"
#include "operators/families/contraction.h"
#include "operators/families/convolution.h"
#include "operators/families/indexing.h"
#include "operators/families/loss.h"
#include "operators/families/normalisation.h"
#include "operators/families/optimizer.h"
#include "operators/families/pooling.h"
#include "operators/families/rearranging.h"
#include "operators/families/reduction.h"
#include "operators/families/reshaping.h"

namespace shardplan {
namespace {

std::vector<std::int64_t> none() { return {}; }

OperatorType matmul(std::string name) {
  return contraction(
      define(std::move(name), "x1, x2 -> y",
             {flag("transpose_a", false, "x1 is [.., k, m]"), flag("transpose_b", false, "x2 is [.., n, k]")},
             infer_matmul, matmul_rule, contract, matmul_gradient, 2, "... m k, k n -> ... m n; k: sum",
             partial_text(Passes::kEach, {"x1", "x2"}),
             "strategy  ((.., a, b), (b, c)), with transpose_b ((.., a, b), (c, b)); b > 1 adds all_reduce,\n"
             "          or reduce_scatter with out_strategy ((.., a*b, c))\n"
             "errors    cuts x1 in A along the summed dimension but x2 in B"));
}

/// A reduction over `axis`.
OperatorType reduce(std::string name, Kernel kernel, Gradient gradient, std::string rule_text,
                    std::string partial = {}) {
  return define(std::move(name), "x -> y",
                {list("axis", none(), "dimensions that are reduced; all if empty"),
                 flag("keep_dims", false, "keep them as size 1")},
                infer_reduce, reduce_rule, kernel, gradient, 1, std::move(rule_text), std::move(partial));
}

/// A view of the same elements in another shape.
OperatorType reshape(std::string name, std::vector<AttributeSpec> attributes, Infer infer) {
  return view(define(std::move(name), "x -> y", std::move(attributes), infer, reshape_rule, copy_kernel,
                     reshape_gradient, 0, "the common factors of both shapes, as in (a b) c -> a (b c)",
                     "linear and monotone in x"));
}

std::vector<AttributeSpec> slice_attributes() {
  return {list("begin", std::nullopt, "first position in each dimension"),
          list("end", std::nullopt, "first position behind; negative: from the end"),
          list("strides", none(), "steps; 1 if empty")};
}

/// An optimizer's update.
OperatorType update(std::string name, std::string_view signature, std::vector<AttributeSpec> attributes, Kernel kernel,
                    double flops_per_point) {
  attributes.insert(attributes.begin(), number("learning_rate", std::nullopt, "factor of each step"));
  attributes.push_back(number("weight_decay", 0, "share of the parameter that is taken off"));
  return define(std::move(name), signature, std::move(attributes), infer_update, update_rule, kernel, nullptr,
                flops_per_point, "..., ..., ... -> ..., ...");
}
std::vector<AttributeSpec> adam_attributes() {
  return {number("beta1", 0.9, "decay of the first moment"), number("beta2", 0.999, "decay of the second moment"),
          number("eps", 1e-8, "added to the root of the second moment")};
}

std::vector<OperatorType> make_catalogue() {
  std::vector<OperatorType> all = derived_operators();
  const std::vector<OperatorType> named = {
      // Contractions.
      matmul("MatMul"),
      matmul("BatchMatMul"),
      contraction(define("Einsum", "x... -> y",
                         {text("equation", std::nullopt, "as in \"bsh,hf->bsf\"; one or two terms")}, infer_einsum,
                         einsum_rule, contract, einsum_gradient, 2, "as the equation says", "linear in each x")),
      contraction(define(
          "Conv2D", "x, weight -> y", convolution_attributes(), infer_conv2d, conv2d_rule, conv2d_kernel,
          conv2d_gradient, 2, "n (g i) s*h+kh s*w+kw, (g o) i kh kw -> n (g o) h w; i: sum; kh, kw: whole",
          "linear in x and in weight",
          "strategy  ((n, i, h, w), (o, i, 1, 1)); h or w cut needs a halo, no wider than the neighbour's piece")),

      // Pooling.
      define("MaxPool", "x -> y", pool_attributes(), infer_pool, pool_rule, max_pool_kernel, max_pool_gradient, 1,
             "n c s*h+kh s*w+kw -> n c h w; kh, kw: whole"),
      define("AvgPool", "x -> y", pool_attributes(), infer_pool, pool_rule, avg_pool_kernel, avg_pool_gradient, 1,
             "n c s*h+kh s*w+kw -> n c h w; kh, kw: whole", "linear in x"),

      // Elementwise, one operand.
      map<[](double x) { return 0 < x ? x : 0; }, Passes::kFirstMonotone>("ReLU", gradient_from_result),
      define("GeLU", "x -> y", {flag("approximate", true, "the tanh form, as MindSpore; false: by erf")}, infer_unary,
             elementwise<Passes::kNothing>, gelu_kernel, gradient_from_operand, 8, "... -> ..."),
      map<[](double x) { return x * sigmoid(x); }>("SiLU", gradient_from_operand),
      map<[](double x) { return sigmoid(x); }, Passes::kFirstMonotone>("Sigmoid", gradient_from_result),
      map<[](double x) { return std::tanh(x); }, Passes::kFirstMonotone>("Tanh", gradient_from_result),
      map<[](double x) { return std::exp(x); }, Passes::kFirstMonotone>("Exp", gradient_from_result),
      map<[](double x) { return std::log(x); }, Passes::kFirstMonotone>("Log", gradient_from_operand),
      map<[](double x) { return std::sqrt(x); }, Passes::kFirstMonotone>("Sqrt", gradient_from_result),
      map<[](double x) { return 1 / std::sqrt(x); }>("Rsqrt", gradient_from_result),
      map<[](double x) { return -x; }, Passes::kFirst>("Neg", neg_gradient),
      map<[](double x) { return std::abs(x); }>("Abs", gradient_from_operand),
      map<[](double x) { return std::erf(x); }, Passes::kFirstMonotone>("Erf", gradient_from_operand),
      map<[](double x) { return x * x; }>("Square", gradient_from_operand),
      define("Cast", "x -> y", {text("dtype", std::nullopt, "the result's type")}, infer_cast, cast_rule, cast_kernel,
             cast_gradient, 1, "... -> ...", "linear and monotone in x; only monotone to or from integers"),
      define("Dropout", "x -> y, mask", {number("keep_prob", 0.5, "probability that an element is kept")},
             infer_dropout, elementwise<Passes::kNothing>, dropout_kernel, dropout_gradient, 1, "... -> ..., ...", "",
             "seed      the mask follows from seed and global position: the same on any mesh"),

      // Elementwise, several operands.
      combine<[](double a, double b) { return a + b; }, Passes::kJointlyAndEachMonotone>("Add", add_gradient),
      combine<[](double a, double b) { return a - b; }, Passes::kJointlyAndFirstMonotone>("Sub", sub_gradient),
      combine<[](double a, double b) { return a * b; }, Passes::kEach>("Mul", mul_gradient),
      combine<[](double a, double b) { return a / b; }, Passes::kFirst>("RealDiv", div_gradient),
      combine<[](double a, double b) { return a / b; }, Passes::kFirst>("Div", div_gradient),
      combine<[](double a, double b) { return std::pow(a, b); }, Passes::kNothing>("Pow", pow_gradient),
      combine<[](double a, double b) { return a < b ? b : a; }, Passes::kEachMonotone>("Maximum", maximum_gradient),
      combine<[](double a, double b) { return a < b ? a : b; }, Passes::kEachMonotone>("Minimum", maximum_gradient),
      compare<[](double a, double b) { return a == b ? 1.0 : 0.0; }>("Equal"),
      compare<[](double a, double b) { return a != b ? 1.0 : 0.0; }>("NotEqual"),
      compare<[](double a, double b) { return a < b ? 1.0 : 0.0; }>("Less"),
      compare<[](double a, double b) { return a <= b ? 1.0 : 0.0; }>("LessEqual"),
      compare<[](double a, double b) { return b < a ? 1.0 : 0.0; }>("Greater"),
      compare<[](double a, double b) { return b <= a ? 1.0 : 0.0; }>("GreaterEqual"),
      compare<[](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }>("LogicalAnd", infer_logical),
      compare<[](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }>("LogicalOr", infer_logical),
      define("LogicalNot", "x -> y", {}, infer_logical, elementwise<Passes::kNothing>,
             unary<[](double x) { return x != 0 ? 0.0 : 1.0; }>, nullptr, 1, "... -> ..."),
      define("Select", "condition, x, y -> z", {}, infer_select, select_rule, select_kernel, select_gradient, 1,
             "..., ..., ... -> ...", "linear in x and y together, monotone in either"),
      define("AddN", "x... -> y", {}, infer_add_n, elementwise<Passes::kJointlyAndEachMonotone>, add_n_kernel,
             add_gradient, 1, "..., ... -> ...", "linear in all x together, monotone in each"),
      define("BiasAdd", "x, bias -> y",
             {text("data_format", "NHWC", "NHWC: the bias is of the last dimension, NCHW: of dimension 1")},
             infer_bias_add, bias_add_rule, bias_add_kernel, bias_add_gradient, 1, "... c, c -> ... c",
             "linear in x and bias together, monotone in either", "strategy  ((.., c), (c))"),

      // Reductions.
      reduce("ReduceSum", reduce_sum_kernel, reduce_sum_gradient, "... k -> ...; k: sum", "linear in x"),
      reduce("ReduceMean", reduce_mean_kernel, reduce_mean_gradient,
             "... k -> ...; k: sum, of shares of the global mean", "linear in x"),
      reduce("ReduceMax", reduce_max_kernel, reduce_extreme_gradient, "... k -> ...; k: max"),
      reduce("ReduceMin", reduce_min_kernel, reduce_extreme_gradient, "... k -> ...; k: min"),
      define("SquareSum", "x -> y", {}, infer_square_sum, square_sum_rule, square_sum_kernel, nullptr, 2,
             "... -> ; all: sum"),
      define("CumSum", "x -> y",
             {integer("axis", std::nullopt, "along which sums run"),
              flag("exclusive", false, "without the element itself"), flag("reverse", false, "from the end")},
             infer_cum_sum, cum_sum_rule, cum_sum_kernel, cum_sum_gradient, 1, "... k -> ... k; k: whole",
             "linear in x"),
      define("TopK", "x -> values, indices", {integer("k", std::nullopt, "how many of the last dimension")},
             infer_top_k, top_k_rule, top_k_kernel, top_k_gradient, 1, "... n -> ... k, ... k; n, k: whole"),

      // Softmax and norms.
      in_phases(softmax_phases, define("Softmax", "x -> y", {softmax_axis()}, infer_softmax, softmax_rule, run_phases,
                                       gradient_from_result, 5, "... k -> ... k; k: normalised")),
      in_phases(log_softmax_phases, define("LogSoftmax", "x -> y", {softmax_axis()}, infer_softmax, softmax_rule,
                                           run_phases, gradient_from_result, 5, "... k -> ... k; k: normalised")),
      in_phases(layer_norm_phases,
                define("LayerNorm", "x, gamma, beta -> y", norm_attributes(), infer_layer_norm, layer_norm_rule,
                       run_phases, norm_gradient, 8, "... k, k, k -> ... k; k: normalised")),
      in_phases(rms_norm_phases, define("RmsNorm", "x, gamma -> y", {epsilon(1e-6)}, infer_rms_norm, rms_norm_rule,
                                        run_phases, norm_gradient, 6, "... k, k -> ... k; k: normalised")),
      in_phases(
          batch_norm_phases,
          define("BatchNorm",
                 "x, gamma, beta, moving_mean, moving_variance -> y, moving_mean, moving_variance, mean, variance",
                 {flag("is_training", false, "normalise by the batch's statistics"), epsilon(1e-5),
                  number("momentum", 0.1, "share of the batch in the moving statistics")},
                 infer_batch_norm, batch_norm_rule, run_phases, batch_norm_gradient, 8,
                 "n c ..., c, c, c, c -> n c ..., c, c, c, c; n, ...: normalised", "",
                 "strategy  ((n, c, h, w), (c), (c), (c), (c)); statistics are of the whole batch, however it is cut;\n"
                 "          in inference y is the only result and nothing is normalised")),

      // Losses.
      in_phases(cross_entropy_phases,
                define("SoftmaxCrossEntropyWithLogits", "logits, labels -> loss", {}, infer_cross_entropy,
                       cross_entropy_rule, run_phases, cross_entropy_gradient, 5, "... c, ... c -> ...; c: normalised",
                       "", "result    one loss per row; labels are probabilities")),
      in_phases(sparse_cross_entropy_phases,
                define("SparseSoftmaxCrossEntropyWithLogits", "logits, labels -> loss", {loss_reduction()},
                       infer_sparse_cross_entropy, sparse_cross_entropy_rule, run_phases, sparse_cross_entropy_gradient,
                       4, "... c, ... -> ; c: normalised; ...: sum", "",
                       "result    a scalar, or one loss per row; labels are integers")),

      // Optimizers.
      update("ApplyGradientDescent", "param, grad -> param", {}, gradient_descent_kernel, 4),
      update("ApplyMomentum", "param, moment, grad -> param, moment", {number("momentum", 0.9, "decay of the moment")},
             momentum_kernel, 6),
      update("ApplyAdam", "param, m, v, step, grad -> param, m, v, step", adam_attributes(), adam_kernel, 14),
      update("ApplyAdamW", "param, m, v, step, grad -> param, m, v, step", adam_attributes(), adam_kernel, 14),
      define("ClipScale", "square_sum -> scale",
             {number("clip_norm", std::nullopt, "largest global norm of all gradients")}, infer_unary,
             elementwise<Passes::kNothing>, clip_scale_kernel, nullptr, 1, " -> "),

      // Views.
      reshape("Reshape", {list("shape", std::nullopt, "of the result; one -1 is solved for")}, infer_reshape),
      reshape("Flatten",
              {integer("start_dim", 1, "first dimension that is joined"), integer("end_dim", -1, "last one")},
              infer_flatten),
      reshape("ExpandDims", {integer("axis", std::nullopt, "where a dimension of size 1 is put in")},
              infer_expand_dims),
      reshape("Squeeze", {list("axis", none(), "dimensions of size 1 that are dropped; all if empty")}, infer_squeeze),
      view(define("Identity", "x -> y", {}, infer_unary, elementwise<Passes::kLinearUnary>, copy_kernel,
                  identity_gradient, 0, "... -> ...", "linear and monotone in x")),

      // Moving elements.
      define("Transpose", "x -> y", {list("perm", std::nullopt, "for each dimension of the result the one of x")},
             infer_transpose, transpose_rule, transpose_kernel, transpose_gradient, 0, "a b ... -> perm",
             "linear and monotone in x"),
      define("Split", "x -> y...",
             {integer("axis", 0, "the dimension that is cut"), integer("output_num", 1, "in how many equal pieces"),
              list("size_splits", none(), "instead: the sizes of the pieces")},
             infer_split, split_rule, split_kernel, split_gradient, 0, "... (piece k) -> ... k, ... k; piece: whole",
             "linear and monotone in x"),
      define("Concat", "x... -> y", {integer("axis", 0, "along which they are joined")}, infer_concat, concat_rule,
             concat_kernel, concat_gradient, 0, "... k, ... k -> ... (piece k); piece: whole",
             "linear in all x together, monotone in each", "strategy  unequal sizes keep the dimension whole"),
      define("Stack", "x... -> y", {integer("axis", 0, "the new dimension")}, infer_stack, stack_rule, stack_kernel,
             stack_gradient, 0, "..., ... -> ... whole", "linear in all x together, monotone in each"),
      define("Slice", "x -> y",
             {list("begin", std::nullopt, "first position in each dimension"),
              list("size", std::nullopt, "how many; -1: to the end")},
             infer_slice, slice_rule, slice_kernel, slice_gradient, 0,
             "dimensions taken whole pass through, others stay whole", "linear and monotone in x"),
      define("StridedSlice", "x -> y", slice_attributes(), infer_slice, slice_rule, slice_kernel, slice_gradient, 0,
             "dimensions taken whole pass through, others stay whole", "linear and monotone in x"),
      define("Tile", "x -> y", {list("multiples", std::nullopt, "how often each dimension is repeated")}, infer_tile,
             tile_rule, tile_kernel, tile_gradient, 0, "a ... -> (copy a) ...", "linear and monotone in x"),
      define("BroadcastTo", "x -> y", {list("shape", std::nullopt, "of the result")}, infer_broadcast_to,
             broadcast_to_rule, broadcast_to_kernel, broadcast_to_gradient, 0, "1 b -> a b",
             "linear and monotone in x"),

      // Indices.
      define("Gather", "params, indices -> y", {integer("axis", 0, "of params, along which indices pick")},
             infer_gather, gather_rule, gather_kernel, gather_gradient, 0, "v h, b -> b h; v: sum, of masked rows",
             "linear in params"),
      define("UnsortedSegmentSum", "x, segment_ids -> y", {integer("num_segments", std::nullopt, "rows of the result")},
             infer_scatter_add, scatter_add_rule, scatter_add_kernel, segment_sum_gradient, 0, "b h, b -> v h; b: sum",
             "linear in x"),
      define("OneHot", "indices -> y",
             {integer("depth", std::nullopt, "size of the new dimension"), number("on_value", 1, "where the index is"),
              number("off_value", 0, "elsewhere"), integer("axis", -1, "the new dimension"),
              text("dtype", "f32", "of the result")},
             infer_one_hot, one_hot_rule, one_hot_kernel, nullptr, 1, "b -> b depth"),
      define("Range", " -> y",
             {number("start", 0, "first value"), number("limit", std::nullopt, "values stay below"),
              number("delta", 1, "step"), text("dtype", "i32", "of the result")},
             infer_range, range_rule, range_kernel, nullptr, 1, " -> a"),
      define("RotaryEmbedding", "x, cos, sin -> y", {}, infer_rotary, rotary_rule, rotary_kernel, rotary_gradient, 3,
             "... s (half d), s (half d), s (half d) -> ... s (half d); half: whole",
             "linear in x, and in cos and sin together"),
  };
  all.insert(all.end(), named.begin(), named.end());
  std::ranges::sort(all, {}, &OperatorType::name);
  return all;
}

}  // namespace

const std::vector<OperatorType>& operator_catalogue() {
  static const std::vector<OperatorType> catalogue = make_catalogue();
  return catalogue;
}

}  // namespace shardplan
