// What gradients and phases are made of: operators of the catalogue like any other, but not for model files.
#include <cmath>
#include <numbers>

#include "operators/building/catalogue_entry.h"
#include "operators/building/phases.h"
#include "operators/families/batch_norm.h"
#include "operators/families/convolution.h"
#include "operators/families/indexing.h"
#include "operators/families/loss.h"
#include "operators/families/normalisation.h"
#include "operators/families/pooling.h"
#include "operators/families/rearranging.h"
#include "operators/families/reduction.h"

namespace shardplan {
namespace {

/// A phase: a statistic over `axis` of the first operand's shape.
OperatorType statistic(std::string name, std::string_view signature, Kernel kernel) {
  return define(std::move(name), signature, {list("axis", std::nullopt, "dimensions that are reduced")},
                infer_statistic, statistic_rule, kernel, nullptr, 2, "... k, ... -> ... 1; k: sum");
}

/// A phase that ends a norm or softmax: shaped as the first operand, the others broadcast to it.
OperatorType apply(std::string name, std::string_view signature, std::vector<AttributeSpec> attributes, Kernel kernel) {
  return define(std::move(name), signature, std::move(attributes), infer_like_first, elementwise<Passes::kNothing>,
                kernel, nullptr, 4, "..., ... -> ...");
}

/// Phases of BatchNorm, with channel vectors.
OperatorType channel_statistic(std::string name, std::string_view signature, std::vector<AttributeSpec> attributes,
                               Kernel kernel) {
  OperatorType type = define(std::move(name), signature, std::move(attributes), infer_channel_statistic,
                             channel_statistic_rule, kernel, nullptr, 4, "n c ..., c -> c; n, ...: sum");
  if (type.result_names.size() == 2) type.infer = infer_two_channel_statistics;
  return type;
}
OperatorType channel_apply(std::string name, std::string_view signature, std::vector<AttributeSpec> attributes,
                           Kernel kernel) {
  return define(std::move(name), signature, std::move(attributes), infer_channel_apply, channel_apply_rule, kernel,
                nullptr, 4, "n c ..., c -> n c ...");
}

}  // namespace

std::vector<OperatorType> derived_operators() {
  std::vector<OperatorType> all = {
      // Contractions.
      contraction(define("Conv2DBackpropInput", "dy, weight -> dx", convolution_attributes("input_size"),
                         infer_conv2d_backprop_input, conv2d_backprop_input_rule, conv2d_backprop_input_kernel, nullptr,
                         1, "n (g o) h+kh w+kw, (g o) i kh kw -> n (g i) (h th) (w tw); o: sum; kh, kw, th, tw: whole",
                         "linear in dy and in weight"),
                  conv2d_backprop_input_flops),
      contraction(define("Conv2DBackpropFilter", "dy, x -> dweight", convolution_attributes("kernel_size"),
                         infer_conv2d_backprop_filter, conv2d_backprop_filter_rule, conv2d_backprop_filter_kernel,
                         nullptr, 2, "n (g o) h w, n (g i) s*h+kh s*w+kw -> (g o) i kh kw; n, h, w: sum; kh, kw: whole",
                         "linear in dy and in x")),

      // Pooling.
      define("MaxPoolGrad", "dy, x -> dx", pool_attributes(), infer_max_pool_grad, max_pool_grad_rule,
             max_pool_grad_kernel, nullptr, 1,
             "n c h+kh w+kw, n c s*h+rh s*w+rw -> n c (h th) (w tw); only n, c, h, w are cut", "linear in dy"),
      define("AvgPoolGrad", "dy -> dx", pool_attributes("input_size"), infer_avg_pool_grad, avg_pool_grad_rule,
             avg_pool_grad_kernel, nullptr, 1, "n c h+kh w+kw -> n c (h th) (w tw); only n, c, h, w are cut",
             "linear in dy"),

      // Elementwise, one operand.
      slope<[](double dy, double y) { return 0 < y ? dy : 0; }>("ReLUGrad", "y"),
      define("GeLUGrad", "dy, x -> dx", {flag("approximate", true, "as the forward operator's")}, infer_unary,
             elementwise<Passes::kFirst>, gelu_grad_kernel, nullptr, 16, "..., ... -> ...", "linear in dy"),
      slope<[](double dy, double x) { return dy * sigmoid(x) * (1 + x * (1 - sigmoid(x))); }>("SiLUGrad", "x"),
      slope<[](double dy, double y) { return dy * y * (1 - y); }>("SigmoidGrad", "y"),
      slope<[](double dy, double y) { return dy * (1 - y * y); }>("TanhGrad", "y"),
      slope<[](double dy, double y) { return dy * y; }>("ExpGrad", "y"),
      slope<[](double dy, double x) { return dy / x; }>("LogGrad", "x"),
      slope<[](double dy, double y) { return dy / (2 * y); }>("SqrtGrad", "y"),
      slope<[](double dy, double y) { return -0.5 * dy * y * y * y; }>("RsqrtGrad", "y"),
      slope<[](double dy, double x) { return 0 < x   ? dy
                                             : x < 0 ? -dy
                                                     : 0; }>("AbsGrad", "x"),
      slope<[](double dy, double x) { return dy * 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); }>("ErfGrad", "x"),
      slope<[](double dy, double x) { return 2 * dy * x; }>("SquareGrad", "x"),
      define("DropoutGrad", "dy, mask -> dx", {number("keep_prob", 0.5, "as the forward operator's")}, infer_unary,
             elementwise<Passes::kFirst>, dropout_grad_kernel, nullptr, 1, "..., ... -> ...", "linear in dy"),

      // Reductions.
      define("TopKGrad", "dvalues, indices -> dx", {integer("size", std::nullopt, "of the last dimension of x")},
             infer_top_k_grad, top_k_grad_rule, top_k_grad_kernel, nullptr, 1, "... k, ... k -> ... n; n, k: whole",
             "linear in dvalues"),

      // Softmax and norms.
      in_phases(softmax_grad_phases, define("SoftmaxGrad", "dy, y -> dx", {softmax_axis()}, infer_softmax, softmax_rule,
                                            run_phases, nullptr, 4, "... k, ... k -> ... k; k: normalised")),
      in_phases(log_softmax_grad_phases,
                define("LogSoftmaxGrad", "dy, y -> dx", {softmax_axis()}, infer_softmax, softmax_rule, run_phases,
                       nullptr, 4, "... k, ... k -> ... k; k: normalised")),
      in_phases(layer_norm_grad_phases, define("LayerNormGrad", "dy, x, gamma -> dx, dgamma, dbeta", norm_attributes(),
                                               infer_layer_norm_grad, layer_norm_grad_rule, run_phases, nullptr, 16,
                                               "... k, ... k, k -> ... k, k, k; k: normalised; ...: sum")),
      in_phases(rms_norm_grad_phases, define("RmsNormGrad", "dy, x, gamma -> dx, dgamma", {epsilon(1e-6)},
                                             infer_rms_norm_grad, rms_norm_grad_rule, run_phases, nullptr, 12,
                                             "... k, ... k, k -> ... k, k; k: normalised; ...: sum")),
      statistic("ExpSum", "x, max -> sum", exp_sum_kernel),
      define("SoftmaxExp", "x, max -> exp, sum", {list("axis", std::nullopt, "the normalised dimension")},
             infer_exp_and_sum, statistic_rule, exp_and_sum_kernel, nullptr, 3, "... k, ... 1 -> ... k, ... 1; k: sum"),
      statistic("ProductSum", "x1, x2 -> sum", product_sum_kernel),
      statistic("CentredSquareMean", "x, mean -> variance", centred_square_mean_kernel),
      statistic("SquareMean", "x -> mean", square_mean_kernel),
      apply("SoftmaxGradApply", "dy, y, sum -> y", {}, softmax_grad_apply_kernel),
      apply("LogSoftmaxApply", "x, max, sum -> y", {}, log_softmax_apply_kernel),
      apply("LogSoftmaxGradApply", "dy, y, sum -> y", {}, log_softmax_grad_apply_kernel),
      apply("LayerNormApply", "x, gamma, beta, mean, variance -> y", {epsilon(1e-5)}, layer_norm_apply_kernel),
      define("LayerNormGradMeans", "dy, x, gamma, mean, variance -> m1, m2",
             {list("axis", std::nullopt, "the normalised dimensions"), epsilon(1e-5)}, infer_two_statistics,
             statistic_rule, layer_norm_grad_means_kernel, nullptr, 6,
             "... k, ... k, k, ... 1, ... 1 -> ... 1, ... 1; k: sum"),
      define("LayerNormGradApply", "dy, x, gamma, mean, variance, m1, m2 -> dx, dgamma, dbeta", {epsilon(1e-5)},
             infer_norm_grad_apply, norm_grad_apply_rule, layer_norm_grad_apply_kernel, nullptr, 10,
             "... k, ... k, k, ... 1 (4 times) -> ... k, k, k; ...: sum"),
      apply("RmsNormApply", "x, gamma, square_mean -> y", {epsilon(1e-6)}, rms_norm_apply_kernel),
      statistic("RmsNormGradMean", "dy, x, gamma -> mean", rms_norm_grad_mean_kernel),
      define("RmsNormGradApply", "dy, x, gamma, square_mean, mean -> dx, dgamma", {epsilon(1e-6)},
             infer_norm_grad_apply, norm_grad_apply_rule, rms_norm_grad_apply_kernel, nullptr, 8,
             "... k, ... k, k, ... 1, ... 1 -> ... k, k; ...: sum"),
      in_phases(batch_norm_grad_phases,
                define("BatchNormGrad", "dy, x, gamma, mean, variance -> dx, dgamma, dbeta", {epsilon(1e-5)},
                       infer_batch_norm_grad, batch_norm_grad_rule, run_phases, nullptr, 12,
                       "n c ..., n c ..., c, c, c -> n c ..., c, c; n, ...: normalised")),
      channel_statistic("ChannelMean", "x -> mean", {}, channel_mean_kernel),
      channel_statistic("ChannelVariance", "x, mean -> variance", {}, channel_variance_kernel),
      channel_apply("BatchNormApply", "x, gamma, beta, mean, variance -> y", {epsilon(1e-5)}, batch_norm_apply_kernel),
      define("MovingAverage", "moving, value -> moving",
             {number("momentum", std::nullopt, "share of the new value"),
              number("scale", std::nullopt, "of the new value")},
             infer_moving_average, moving_average_rule, moving_average_kernel, nullptr, 1, "c, c -> c"),
      channel_statistic("BatchNormGradSums", "dy, x, mean, variance -> dgamma, dbeta", {epsilon(1e-5)},
                        batch_norm_grad_sums_kernel),
      channel_apply("BatchNormGradApply", "dy, x, gamma, mean, variance, dgamma, dbeta -> dx", {epsilon(1e-5)},
                    batch_norm_grad_apply_kernel),

      // Losses.
      in_phases(cross_entropy_grad_phases,
                define("SoftmaxCrossEntropyGrad", "dloss, logits, labels -> dlogits", {}, infer_cross_entropy_grad,
                       cross_entropy_grad_rule, run_phases, nullptr, 6, "..., ... c, ... c -> ... c; c: normalised")),
      in_phases(sparse_cross_entropy_grad_phases,
                define("SparseSoftmaxCrossEntropyGrad", "dloss, logits, labels -> dlogits", {loss_reduction()},
                       infer_sparse_cross_entropy_grad, sparse_cross_entropy_grad_rule, run_phases, nullptr, 5,
                       ", ... c, ... -> ... c; c: normalised")),
      define("CrossEntropyTerms", "logits, labels, max, sum -> loss", {}, infer_loss_terms, loss_terms_rule,
             cross_entropy_terms_kernel, nullptr, 2, "... c, ... c, ... 1, ... 1 -> ...; c: sum"),
      define("CrossEntropyGradApply", "dloss, logits, labels, max, sum, label_sum -> dlogits", {}, infer_like_second,
             loss_grad_apply_rule, cross_entropy_grad_apply_kernel, nullptr, 5,
             "..., ... c, ... c, ... 1 (3 times) -> ... c"),
      define("SparsePick", "logits, labels -> picked", {}, infer_loss_terms, loss_terms_rule, sparse_pick_kernel,
             nullptr, 0, "... c, ... -> ...; c: sum"),
      define("SparseCrossEntropyApply", "max, sum, picked -> loss", {loss_reduction()}, infer_reduced_loss,
             reduced_loss_rule, sparse_cross_entropy_apply_kernel, nullptr, 3, "... 1, ... 1, ... -> ; ...: sum"),
      define("SparseCrossEntropyGradApply", "dloss, logits, labels, max, sum -> dlogits", {loss_reduction()},
             infer_like_second, loss_grad_apply_rule, sparse_cross_entropy_grad_apply_kernel, nullptr, 4,
             ", ... c, ..., ... 1, ... 1 -> ... c"),

      // Micro-batches.
      define("Accumulate", "x -> sum",
             {text("dtype", std::nullopt, "the sum's type"),
              integer("count", std::nullopt, "of runs: each adds x / count")},
             infer_cast, elementwise<Passes::kFirst>, accumulate_kernel, nullptr, 2, "... -> ...", "linear in x"),

      // Moving elements.
      define("SliceGrad", "dy -> dx",
             {list("shape", std::nullopt, "of x"), list("begin", std::nullopt, "as StridedSlice"),
              list("end", std::nullopt, "as StridedSlice"),
              list("strides", std::vector<std::int64_t>{}, "as StridedSlice")},
             infer_slice_grad, slice_rule, slice_grad_kernel, nullptr, 0,
             "dimensions taken whole pass through, others stay whole", "linear in dy"),

      // Indices.
      define("GatherGrad", "dy, indices -> dparams",
             {integer("axis", 0, "as the forward operator's"), integer("size", std::nullopt, "of params along it")},
             infer_scatter_add, scatter_add_rule, scatter_add_kernel, nullptr, 0, "b h, b -> v h; b: sum",
             "linear in dy"),
      define("RotaryEmbeddingGrad", "dy, cos, sin -> dx", {}, infer_rotary, rotary_rule, rotary_grad_kernel, nullptr, 3,
             "... s (half d), s (half d), s (half d) -> ... s (half d); half: whole",
             "linear in dy, and in cos and sin together"),
  };
  for (OperatorType& type : all) {
    type.is_internal = true;
    type.accumulates = type.name == "Accumulate";
  }
  return all;
}

}  // namespace shardplan
