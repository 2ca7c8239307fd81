#include "model/blocks/built_in_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/syntax/scalar_values.h"
#include "operators/building/attributes.h"

// Each block is written as a user would write it; only what depends on options or types is put together here. `[...,
// C]` takes inputs of any rank. Sizes that MindSpore asks for (in_channels, num_features, normalized_shape) are
// inferred and, if given, checked.

namespace shardplan {
namespace {

std::int64_t whole(const Attributes& options, const char* name) { return std::get<std::int64_t>(options.at(name)); }
bool is_set(const Attributes& options, const char* name) { return std::get<bool>(options.at(name)); }
/// One of the words that the option knows. No other text of the user gets into a block.
const std::string& one_of(const Attributes& options, const char* name, const std::vector<std::string>& words) {
  const std::string& text = std::get<std::string>(options.at(name));
  if (std::find(words.begin(), words.end(), text) == words.end()) {
    throw InputError({}, "{} is '{}'; expected {}", name, text, either(words));
  }
  return text;
}
const std::vector<std::int64_t>& list_of(const Attributes& options, const char* name) {
  return std::get<std::vector<std::int64_t>>(options.at(name));
}
/// Digits enough to read back as the same double.
std::string real(const Attributes& options, const char* name) {
  return fmt::format("{}", std::get<double>(options.at(name)));
}

std::int64_t positive(const Attributes& options, const char* name) {
  const std::int64_t value = whole(options, name);
  if (value < 1) throw InputError({}, "{} is {}; expected at least 1", name, value);
  return value;
}

/// The dimension `back` places from the right of input 0, which must be as long as the option says, if it says
/// anything.
std::int64_t inferred(const Attributes& options, const char* name, const TensorType& input, std::size_t dimension) {
  if (dimension >= input.shape.size()) {
    throw InputError({}, "the input has {} dimensions; expected at least {}", input.shape.size(), dimension + 1);
  }
  const std::int64_t found = input.shape[dimension];
  const std::int64_t given = whole(options, name);
  if (given != 0 && given != found) {
    throw InputError({}, "{} is {}, but dimension {} of the input has size {}", name, given, dimension, found);
  }
  return found;
}

std::size_t last_dimension(const TensorType& input) {
  if (input.shape.empty()) throw InputError(SourcePlace{}, "the input is a scalar; expected at least 1 dimension");
  return input.shape.size() - 1;
}

std::string dense(const Attributes& options, const std::vector<TensorType>& inputs) {
  inferred(options, "in_channels", inputs[0], last_dimension(inputs[0]));
  std::string text = fmt::format(
      "dims: {{in_channels: inferred, out_channels: {}}}\n"
      "inputs: {{x: [..., in_channels]}}\n",
      positive(options, "out_channels"));
  if (!is_set(options, "has_bias")) {
    return text +
           "parameters: {weight: [out_channels, in_channels]}\n"
           "operators: {matmul: {op: MatMul, in: [x, weight], transpose_b: true}}\n";
  }
  return text +
         "parameters: {weight: [out_channels, in_channels], bias: [out_channels]}\n"
         "operators:\n"
         "  matmul:   {op: MatMul, in: [x, weight], transpose_b: true}\n"
         "  bias_add: {op: BiasAdd, in: [matmul, bias]}\n";
}

std::string numbers(const std::vector<std::int64_t>& values) { return fmt::format("[{}]", fmt::join(values, ", ")); }

std::string conv2d(const Attributes& options, const std::vector<TensorType>& inputs) {
  const std::int64_t in = inferred(options, "in_channels", inputs[0], 1);
  const std::int64_t out = positive(options, "out_channels");
  const std::int64_t group = positive(options, "group");
  if (in % group != 0 || out % group != 0) {
    throw InputError({}, "group is {}; it must divide the {} input and {} output channels", group, in, out);
  }
  std::vector<std::int64_t> kernel = list_of(options, "kernel_size");
  if (kernel.size() == 1) kernel.push_back(kernel[0]);
  if (kernel.size() != 2 || kernel[0] < 1 || kernel[1] < 1) {
    throw InputError({}, "kernel_size is {}; expected one or two numbers, at least 1",
                     numbers(list_of(options, "kernel_size")));
  }
  const bool has_bias = is_set(options, "has_bias");
  std::string text = fmt::format(
      "dims: {{batch: inferred, in_channels: inferred, height: inferred, width: inferred, out_channels: {}}}\n"
      "inputs: {{x: [batch, in_channels, height, width]}}\n"
      "parameters: {{weight: [out_channels, in_channels/{}, {}, {}]{}}}\n"
      "operators:\n"
      "  conv2d: {{op: Conv2D, in: [x, weight], pad_mode: {}, pad: {}, stride: {}, dilation: {}, group: {}}}\n",
      out, group, kernel[0], kernel[1], has_bias ? ", bias: [out_channels]" : "",
      one_of(options, "pad_mode", {"same", "valid", "pad"}), numbers(list_of(options, "padding")),
      numbers(list_of(options, "stride")), numbers(list_of(options, "dilation")), group);
  if (has_bias) text += "  bias_add: {op: BiasAdd, in: [conv2d, bias], data_format: NCHW}\n";
  return text;
}

std::string layer_norm(const Attributes& options, const std::vector<TensorType>& inputs) {
  inferred(options, "normalized_shape", inputs[0], last_dimension(inputs[0]));
  return fmt::format(
      "dims: {{features: inferred}}\n"
      "inputs: {{x: [..., features]}}\n"
      "parameters: {{gamma: [features], beta: [features]}}\n"
      "operators: {{layer_norm: {{op: LayerNorm, in: [x, gamma, beta], epsilon: {}}}}}\n",
      real(options, "epsilon"));
}

std::string rms_norm(const Attributes& options, const std::vector<TensorType>& inputs) {
  inferred(options, "normalized_shape", inputs[0], last_dimension(inputs[0]));
  return fmt::format(
      "dims: {{features: inferred}}\n"
      "inputs: {{x: [..., features]}}\n"
      "parameters: {{gamma: [features]}}\n"
      "operators: {{rms_norm: {{op: RmsNorm, in: [x, gamma], epsilon: {}}}}}\n",
      real(options, "epsilon"));
}

std::string batch_norm(const Attributes& options, const std::vector<TensorType>& inputs) {
  inferred(options, "num_features", inputs[0], 1);
  return fmt::format(
      "dims: {{batch: inferred, features: inferred, height: inferred, width: inferred}}\n"
      "inputs: {{x: [batch, features, height, width]}}\n"
      "parameters:\n"
      "  gamma: [features]\n"
      "  beta: [features]\n"
      "  moving_mean: {{shape: [features], requires_grad: false}}\n"
      "  moving_variance: {{shape: [features], requires_grad: false}}\n"
      "operators:\n"
      "  batch_norm: {{op: BatchNorm, in: [x, gamma, beta, moving_mean, moving_variance], is_training: {}, epsilon: "
      "{}, momentum: {}}}\n",
      is_set(options, "use_batch_statistics"), real(options, "eps"),
      fmt::format("{:.15g}", 1 - std::get<double>(options.at("momentum"))));  // the operator's is the batch's share
}

std::string embedding(const Attributes& options, const std::vector<TensorType>&) {
  std::string dtype;
  if (!std::get<std::string>(options.at("dtype")).empty())
    dtype = ", dtype: " + one_of(options, "dtype", {"f64", "f32", "f16", "bf16"});
  return fmt::format(
      "dims: {{vocab_size: {}, embedding_size: {}}}\n"
      "inputs: {{ids: [...]}}\n"
      "parameters: {{embedding_table: {{shape: [vocab_size, embedding_size]{}}}}}\n"
      "operators: {{gather: {{op: {}, in: [embedding_table, ids], axis: 0}}}}\n",
      positive(options, "vocab_size"), positive(options, "embedding_size"), dtype,
      is_set(options, "sparse") ? "SparseGatherV2" : "Gather");
}

/// How the labels of a cross entropy are read.
enum class Labels { kProbabilities, kOneHot, kNumbers };

/// Logits of two bytes are cast first: losses are computed in f32.
std::string softmax_cross_entropy(const Attributes& options, const std::vector<TensorType>& inputs, Labels kind) {
  last_dimension(inputs[0]);
  const std::string& reduction = one_of(options, "reduction", {"none", "mean", "sum"});
  const DataType dtype = inputs[0].dtype;
  const bool is_cast = dtype == DataType::kF16 || dtype == DataType::kBF16;
  const std::string logits = is_cast ? "cast" : "logits";
  std::string text = fmt::format(
      "dims: {{classes: inferred}}\n"
      "inputs: {{logits: [..., classes], labels: [...]}}\n"
      "operators:\n{}",
      is_cast ? "  cast: {op: Cast, in: logits, dtype: f32}\n" : "");
  if (kind == Labels::kNumbers) {
    return text + fmt::format(
                      "  cross_entropy: {{op: SparseSoftmaxCrossEntropyWithLogits, in: [{}, labels], reduction: {}}}\n",
                      logits, reduction);
  }
  std::string labels = "labels";
  if (kind == Labels::kOneHot) {
    labels = "one_hot";
    text += fmt::format("  one_hot: {{op: OneHot, in: labels, depth: classes, dtype: {}}}\n",
                        is_cast ? "f32" : to_string(dtype));
  } else if (is_cast && inputs[1].dtype != DataType::kF32) {
    labels = "cast_labels";
    text += "  cast_labels: {op: Cast, in: labels, dtype: f32}\n";
  }
  text += fmt::format("  cross_entropy: {{op: SoftmaxCrossEntropyWithLogits, in: [{}, {}]}}\n", logits, labels);
  if (reduction == "mean") text += "  mean: {op: ReduceMean, in: cross_entropy}\n";
  if (reduction == "sum") text += "  sum: {op: ReduceSum, in: cross_entropy}\n";
  return text;
}

/// As MindSpore's, which has an operator for class numbers only with the mean and else makes one-hot labels.
std::string sparse_or_not(const Attributes& options, const std::vector<TensorType>& inputs) {
  if (!is_set(options, "sparse")) return softmax_cross_entropy(options, inputs, Labels::kProbabilities);
  const bool is_mean = one_of(options, "reduction", {"none", "mean", "sum"}) == "mean";
  return softmax_cross_entropy(options, inputs, is_mean ? Labels::kNumbers : Labels::kOneHot);
}

/// Labels are class numbers [N], or probabilities [N, C]. (With more dimensions MindSpore's classes are the second.)
std::string cross_entropy_loss(const Attributes& options, const std::vector<TensorType>& inputs) {
  if (inputs[0].shape.size() != 2) {
    throw InputError({}, "the logits are {}; expected [N, C]", to_string(inputs[0].shape));
  }
  return softmax_cross_entropy(options, inputs,
                               is_floating(inputs[1].dtype) ? Labels::kProbabilities : Labels::kNumbers);
}

std::vector<BuiltInBlock> make_blocks() {
  return {
      {"nn.BatchNorm2d",
       "batch_norm; gamma, beta, moving_mean, moving_variance",
       {integer("num_features", 0, "inferred from the input"), number("eps", 1e-5, "added to the variance"),
        number("momentum", 0.9, "of the moving statistics"),
        flag("use_batch_statistics", true, "false: normalise by the moving statistics")},
       1,
       batch_norm},
      {"nn.Conv2d",
       "conv2d, bias_add; weight [out, in, kh, kw], bias",
       {integer("in_channels", 0, "inferred from the input"),
        integer("out_channels", std::nullopt, "channels of the result"),
        list("kernel_size", std::nullopt, "of the window"),
        list("stride", std::vector<std::int64_t>{1}, "step of the window"),
        text("pad_mode", "same", "same, valid or pad"),
        list("padding", std::vector<std::int64_t>{0}, "of pad_mode pad: top, bottom, left, right"),
        list("dilation", std::vector<std::int64_t>{1}, "step within the window"),
        integer("group", 1, "groups of channels"), flag("has_bias", false, "adds a bias")},
       1,
       conv2d},
      {"nn.CrossEntropyLoss",
       "cross_entropy; with probabilities as labels also mean; logits [N, C]",
       {text("reduction", "mean", "none, mean or sum")},
       2,
       cross_entropy_loss},
      {"nn.Dense",
       "matmul, bias_add; weight [out, in], bias",
       {integer("in_channels", 0, "inferred from the input"),
        integer("out_channels", std::nullopt, "size of the result's last dimension"),
        flag("has_bias", true, "adds a bias")},
       1,
       dense},
      {"nn.Embedding",
       "gather; embedding_table [vocabulary, size]",
       {integer("vocab_size", std::nullopt, "rows of the table"),
        integer("embedding_size", std::nullopt, "columns of the table"),
        flag("sparse", false, "true: only the rows that a step looks up are updated (SparseGatherV2)"),
        text("dtype", "", "of the table and of the result; without it, that of the model")},
       1,
       embedding},
      {"nn.LayerNorm",
       "layer_norm over the last dimension; gamma, beta",
       {integer("normalized_shape", 0, "inferred from the input"), number("epsilon", 1e-7, "added to the variance")},
       1,
       layer_norm},
      {"nn.RMSNorm",
       "rms_norm over the last dimension; gamma",
       {integer("normalized_shape", 0, "inferred from the input"), number("epsilon", 1e-6, "added to the mean square")},
       1,
       rms_norm},
      {"nn.SoftmaxCrossEntropyWithLogits",
       "cross_entropy; also mean if reduction: mean and not sparse, one_hot if sparse without mean; classes are last",
       {flag("sparse", false, "labels are class numbers"), text("reduction", "none", "none, mean or sum")},
       2,
       sparse_or_not},
  };
}

}  // namespace

const std::vector<BuiltInBlock>& built_in_blocks() {
  static const std::vector<BuiltInBlock> blocks = make_blocks();
  return blocks;
}

const BuiltInBlock* find_built_in_block(std::string_view name) {
  for (const BuiltInBlock& block : built_in_blocks()) {
    if (block.name == name) return &block;
  }
  return nullptr;
}

}  // namespace shardplan
