#include "tests/fuzz/random_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace shardplan {
namespace {

/// A dimension's size as text and as number.
struct Extent {
  std::string text;
  std::int64_t size = 1;
};
using Extents = std::vector<Extent>;

struct Tensor {
  std::string name;
  Extents shape;
  bool is_read = false;
};

std::string text_of(const Extents& shape) {
  std::vector<std::string> texts;
  for (const Extent& extent : shape) texts.push_back(extent.text);
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::int64_t elements(const Extents& shape) {
  std::int64_t count = 1;
  for (const Extent& extent : shape) count *= extent.size;
  return count;
}

Extent product(const Extent& a, const Extent& b) {
  if (a.text == "1") return b;
  if (b.text == "1") return a;
  return {fmt::format("{}*{}", a.text, b.text), a.size * b.size};
}

class Writer {
 public:
  Writer(Random& random, std::size_t most_operators) : random_(random), most_operators_(most_operators) {}

  std::string text() {
    for (const char* name : {"A", "B", "C", "D"}) dims_.push_back({name, pick<std::int64_t>(kSizes)});
    const std::size_t givens = 1 + draw(3);
    for (std::size_t i = 0; i < givens; ++i) give(random_shape(), draw(3) == 0);
    const std::size_t count = 1 + draw(most_operators_);
    for (std::size_t i = 0; i < count; ++i) add_operator();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {  // given tensors must be read
      if (!tensors_[i].is_read && i < num_given_) add("ReLU", i, "", tensors_[i].shape);
    }
    return written();
  }

 private:
  static inline const std::vector<std::int64_t> kSizes = {1, 2, 3, 4, 4, 6, 8, 8, 12, 16};
  static constexpr std::int64_t kMostElements = 800;

  std::size_t draw(std::size_t bound) { return static_cast<std::size_t>(random_.below(bound)); }
  bool chance(std::size_t one_in) { return draw(one_in) == 0; }
  template <class T>
  T pick(const std::vector<T>& items) {
    return items[draw(items.size())];
  }

  Extent random_extent() {
    if (chance(3)) {
      const std::int64_t size = pick<std::int64_t>(kSizes);
      return {std::to_string(size), size};
    }
    return pick(dims_);
  }
  Extents random_shape() {
    Extents shape;
    const std::size_t rank = 1 + draw(4);
    for (std::size_t i = 0; i < rank; ++i) {
      shape.push_back(random_extent());
      if (elements(shape) > kMostElements) shape.back() = {"1", 1};
    }
    return shape;
  }

  std::string fresh(const char* prefix) { return fmt::format("{}{}", prefix, ++counter_); }

  std::size_t give(Extents shape, bool as_parameter) {
    const std::string name = fresh(as_parameter ? "p" : "x");
    (as_parameter ? parameters_ : inputs_) += fmt::format("  {}: {}\n", name, text_of(shape));
    tensors_.insert(tensors_.begin() + static_cast<std::ptrdiff_t>(num_given_), {name, std::move(shape), false});
    return num_given_++;
  }
  /// A new parameter or input of this shape.
  std::string partner(const Extents& shape) {
    const std::size_t at = give(shape, !chance(3));
    tensors_[at].is_read = true;
    return tensors_[at].name;
  }

  void add(const std::string& type, const std::string& in, const std::string& attributes, Extents shape) {
    const std::string name = fresh("o");
    const char* key = type.starts_with("nn.") ? "block" : "op";
    operators_ += fmt::format("  {}: {{{}: {}, in: [{}]{}{}}}\n", name, key, type, in, attributes.empty() ? "" : ", ",
                              attributes);
    tensors_.push_back({name, std::move(shape), false});
  }
  void add(const std::string& type, std::size_t x, const std::string& attributes, Extents shape) {
    tensors_[x].is_read = true;
    add(type, tensors_[x].name, attributes, std::move(shape));
  }

  void add_operator() {
    // Mostly the latest tensors, so that graphs grow deep; any other one now and then.
    std::size_t x = chance(3) ? draw(tensors_.size()) : tensors_.size() - 1;
    tensors_[x].is_read = true;
    const std::string name = tensors_[x].name;
    const Extents shape = tensors_[x].shape;
    const std::size_t rank = shape.size();
    const std::size_t axis = rank == 0 ? 0 : draw(rank);
    const auto simple = [&] {
      add(pick<std::string>({"ReLU", "Tanh", "GeLU", "Sigmoid", "Square", "Neg", "Exp", "SiLU", "Abs", "Softplus"}),
          name, "", shape);
    };
    switch (rank == 0 ? 0 : draw(24)) {
      case 1:
      case 2:
        return add_binary(name, shape);
      case 3:
      case 4:
        return add_product(name, shape);
      case 5:
        return add_reduction(name, shape, axis);
      case 6:
        return add_reshape(name, shape);
      case 7:
        return add_transpose(name, shape);
      case 8:
        return add(pick<std::string>({"Softmax", "LogSoftmax", "CumSum"}), name, fmt::format("axis: {}", axis), shape);
      case 9:
        return add(pick<std::string>({"nn.LayerNorm", "nn.RMSNorm"}), name, "", shape);
      case 10:
        return add_concat(name, shape, axis);
      case 11:
        return add_slice(name, shape, axis);
      case 12:
        return add_pad(name, shape, axis);
      case 13:
        return add_gather(name, shape, axis);
      case 14:
        return add_image(name, shape);
      case 15:
        return add_roll_or_tile(name, shape, axis);
      case 16:
        return add_einsum(name, shape);
      case 17:
        return add_dense(name, shape);
      case 18:
        return add_broadcast(name, shape, axis);
      default:
        return simple();
    }
  }

  void add_binary(const std::string& name, const Extents& shape) {
    Extents other = shape;
    for (Extent& extent : other) {
      if (chance(4)) extent = {"1", 1};
    }
    if (chance(3)) other.erase(other.begin(), other.begin() + static_cast<std::ptrdiff_t>(draw(other.size())));
    std::string second;
    for (Tensor& tensor : tensors_) {  // residual connections
      const bool is_alike = tensor.name != name && text_of(tensor.shape) == text_of(shape);
      if (!second.empty() || !is_alike || !chance(2)) continue;
      tensor.is_read = true;
      second = tensor.name;
    }
    if (second.empty()) second = chance(6) ? name : partner(other);
    const std::string type = pick<std::string>({"Add", "Add", "Mul", "Sub", "Maximum", "Minimum"});
    add(type, chance(2) ? name + ", " + second : second + ", " + name, "", shape);
  }

  void add_product(const std::string& name, const Extents& shape) {
    if (shape.size() < 2) return add_dense(name, shape);
    const bool is_batched = shape.size() > 2;
    const Extent n = random_extent();
    const Extent k = shape.back();
    const bool transposes = chance(2);
    Extents weight = is_batched ? Extents(shape.begin(), shape.end() - 2) : Extents();
    weight.push_back(transposes ? n : k);
    weight.push_back(transposes ? k : n);
    Extents result = shape;
    result.back() = n;
    if (elements(result) > kMostElements || elements(weight) > kMostElements) return add("Tanh", name, "", shape);
    add(is_batched ? "BatchMatMul" : "MatMul", name + ", " + partner(weight), transposes ? "transpose_b: true" : "",
        result);
  }

  void add_dense(const std::string& name, const Extents& shape) {
    const Extent n = random_extent();
    Extents result = shape;
    result.back() = n;
    if (shape.size() < 2 || elements(result) > kMostElements) return add("Sigmoid", name, "", shape);
    add("nn.Dense", name, fmt::format("out_channels: {}{}", n.text, chance(2) ? ", has_bias: false" : ""), result);
  }

  void add_reduction(const std::string& name, const Extents& shape, std::size_t axis) {
    const std::string type = pick<std::string>({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"});
    Extents result = shape;
    const bool keeps = chance(3);
    if (keeps) {
      result[axis] = {"1", 1};
    } else {
      result.erase(result.begin() + static_cast<std::ptrdiff_t>(axis));
    }
    add(type, name, fmt::format("axis: {}{}", axis, keeps ? ", keep_dims: true" : ""), result);
  }

  /// Merges two neighbouring dimensions, splits one, adds or removes one of size 1, or flattens all.
  void add_reshape(const std::string& name, const Extents& shape) {
    Extents result = shape;
    const std::size_t at = draw(shape.size());
    switch (draw(4)) {
      case 0:
        result = {{"1", 1}};
        for (const Extent& extent : shape) result[0] = product(result[0], extent);
        break;
      case 1:
        result.insert(result.begin() + static_cast<std::ptrdiff_t>(at), {"1", 1});
        break;
      case 2:
        for (const std::int64_t factor : {2, 3, 4}) {
          if (shape[at].size % factor != 0 || shape[at].text.find_first_not_of("0123456789") != std::string::npos)
            continue;
          const std::int64_t rest = shape[at].size / factor;
          result[at] = {std::to_string(rest), rest};
          result.insert(result.begin() + static_cast<std::ptrdiff_t>(at + draw(2)), {std::to_string(factor), factor});
          break;
        }
        break;
      default:
        if (at + 1 < shape.size()) {
          result[at] = product(shape[at], shape[at + 1]);
          result.erase(result.begin() + static_cast<std::ptrdiff_t>(at + 1));
        }
    }
    if (result.size() > 5) return add("Tanh", name, "", shape);
    Extents written = result;
    if (chance(4)) written[draw(written.size())].text = "-1";
    add("Reshape", name, "shape: " + text_of(written), result);
  }

  void add_transpose(const std::string& name, const Extents& shape) {
    std::vector<std::size_t> perm;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(draw(perm.size() + 1)), i);
    }
    Extents result;
    for (const std::size_t i : perm) result.push_back(shape[i]);
    add("Transpose", name, fmt::format("perm: [{}]", fmt::join(perm, ", ")), result);
  }

  void add_concat(const std::string& name, const Extents& shape, std::size_t axis) {
    const bool with_itself = chance(2);
    Extents other = shape;
    if (!with_itself) other[axis] = random_extent();
    Extents result = shape;
    const std::int64_t size = shape[axis].size + other[axis].size;
    result[axis] = {fmt::format("({}+{})", shape[axis].text, other[axis].text), size};
    if (elements(result) > kMostElements) return add("Neg", name, "", shape);
    const std::string second = with_itself ? name : partner(other);
    add("Concat", name + ", " + second, fmt::format("axis: {}", axis), result);
  }

  void add_slice(const std::string& name, const Extents& shape, std::size_t axis) {
    Extents result = shape;
    std::vector<std::int64_t> begin(shape.size(), 0);
    std::vector<std::int64_t> size(shape.size(), -1);
    const auto extent = static_cast<std::size_t>(shape[axis].size);
    begin[axis] = static_cast<std::int64_t>(draw(extent));
    size[axis] = static_cast<std::int64_t>(1 + draw(extent - static_cast<std::size_t>(begin[axis])));
    result[axis] = {std::to_string(size[axis]), size[axis]};
    add("Slice", name, fmt::format("begin: [{}], size: [{}]", fmt::join(begin, ", "), fmt::join(size, ", ")), result);
  }

  void add_pad(const std::string& name, const Extents& shape, std::size_t axis) {
    Extents result = shape;
    std::vector<std::int64_t> paddings(2 * shape.size(), 0);
    paddings[2 * axis] = static_cast<std::int64_t>(draw(3));
    paddings[2 * axis + 1] = static_cast<std::int64_t>(draw(3));
    const std::int64_t more = paddings[2 * axis] + paddings[2 * axis + 1];
    result[axis] = {fmt::format("({}+{})", shape[axis].text, more), shape[axis].size + more};
    add("Pad", name, fmt::format("paddings: [{}]", fmt::join(paddings, ", ")), result);
  }

  /// Rows selected by an input of indices.
  void add_gather(const std::string& name, const Extents& shape, std::size_t axis) {
    const Extent count = random_extent();
    Extents result = shape;
    result[axis] = count;
    if (elements(result) > kMostElements) return add("Tanh", name, "", shape);
    const std::string indices = fresh("i");
    inputs_ += fmt::format("  {}: {{shape: [{}], dtype: i32}}\n", indices, count.text);
    add("Gather", name + ", " + indices, fmt::format("axis: {}", axis), result);
  }

  void add_image(const std::string& name, const Extents& shape) {
    if (shape.size() != 4 || shape[2].size < 3 || shape[3].size < 3) return add("GeLU", name, "", shape);
    Extents result = shape;
    if (chance(2)) {
      const Extent channels = random_extent();
      result[1] = channels;
      if (elements(result) > kMostElements) return add("GeLU", name, "", shape);
      return add("nn.Conv2d", name,
                 fmt::format("out_channels: {}, kernel_size: {}, pad_mode: same", channels.text, 1 + draw(3)), result);
    }
    for (const std::size_t i : {2u, 3u}) {
      const std::int64_t size = shape[i].size - 1;  // kernels of 2 with stride 1
      result[i] = {fmt::format("({}-1)", shape[i].text), size};
    }
    add(pick<std::string>({"AvgPool", "MaxPool"}), name, "kernel_size: [2, 2], strides: [1, 1], pad_mode: valid",
        result);
  }

  void add_roll_or_tile(const std::string& name, const Extents& shape, std::size_t axis) {
    if (chance(2)) return add("Roll", name, fmt::format("shifts: [{}], axis: [{}]", 1 + draw(3), axis), shape);
    std::vector<std::int64_t> multiples(shape.size(), 1);
    multiples[axis] = static_cast<std::int64_t>(1 + draw(3));
    Extents result = shape;
    result[axis] = product(shape[axis], {std::to_string(multiples[axis]), multiples[axis]});
    if (elements(result) > kMostElements) return add("Neg", name, "", shape);
    add("Tile", name, fmt::format("multiples: [{}]", fmt::join(multiples, ", ")), result);
  }

  /// Some letters are summed, some are those of both operands, one is new.
  void add_einsum(const std::string& name, const Extents& shape) {
    const std::string letters = "abcdefgh";
    const std::string first = letters.substr(0, shape.size());
    std::string second;
    std::string third;
    Extents other;
    Extents result;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const bool in_second = chance(2);
      if (in_second) {
        second += first[i];
        other.push_back(shape[i]);
      }
      if (!in_second || chance(2)) {
        third += first[i];
        result.push_back(shape[i]);
      }
    }
    const Extent extra = random_extent();
    second += 'z';
    other.push_back(extra);
    third += 'z';
    result.push_back(extra);
    if (elements(result) > kMostElements) return add("Tanh", name, "", shape);
    add("Einsum", name + ", " + partner(other), fmt::format("equation: \"{},{}->{}\"", first, second, third), result);
  }

  void add_broadcast(const std::string& name, const Extents& shape, std::size_t axis) {
    Extents result = shape;
    if (shape[axis].text == "1") result[axis] = random_extent();
    if (elements(result) > kMostElements) result = shape;
    add("BroadcastTo", name, "shape: " + text_of(result), result);
  }

  std::string written() {
    const bool is_trained = !parameters_.empty() && chance(2);
    std::string outputs;
    std::string loss;
    std::string ends;
    for (Tensor& tensor : tensors_) {
      if (tensor.is_read) continue;
      if (!is_trained) {
        outputs += (outputs.empty() ? "" : ", ") + tensor.name;
        continue;
      }
      const std::string mean = fresh("o");
      ends += fmt::format("  {}: {{op: ReduceMean, in: [{}]}}\n", mean, tensor.name);
      if (loss.empty()) {
        loss = mean;
      } else {
        const std::string sum = fresh("o");
        ends += fmt::format("  {}: {{op: Add, in: [{}, {}]}}\n", sum, loss, mean);
        loss = sum;
      }
    }
    std::string text = "shardplan: 1\n";
    std::vector<std::string> sizes;
    for (const Extent& dim : dims_) sizes.push_back(fmt::format("{}: {}", dim.text, dim.size));
    text += fmt::format("dims: {{{}}}\n", fmt::join(sizes, ", "));
    if (!inputs_.empty()) text += "inputs:\n" + inputs_;
    if (!parameters_.empty()) text += "parameters:\n" + parameters_;
    text += "operators:\n" + operators_ + ends;
    if (is_trained) {
      text += fmt::format("loss: {}\ntraining: {{optimizer: {}, learning_rate: 0.01}}\n", loss,
                          pick<std::string>({"sgd", "momentum", "adam", "adamw"}));
    } else {
      text += fmt::format("outputs: [{}]\n", outputs);
    }
    return text;
  }

  Random& random_;
  std::size_t most_operators_;
  std::size_t counter_ = 0;
  Extents dims_;
  std::vector<Tensor> tensors_;  // given ones first
  std::size_t num_given_ = 0;
  std::string inputs_;
  std::string parameters_;
  std::string operators_;
};

}  // namespace

std::string random_model(Random& random, std::size_t most_operators) { return Writer(random, most_operators).text(); }

std::string with_random_padding(const std::string& model, Random& random) {
  const std::size_t begin = model.find("dims: {") + std::string_view("dims: {").size();
  const std::size_t end = model.find('}', begin);
  std::string dims;
  for (std::size_t at = begin; at < end;) {
    const std::size_t stop = std::min(model.find(", ", at), end);
    const std::string dim = model.substr(at, stop - at);  // "A: 6"
    const std::size_t colon = dim.find(": ");
    const bool pads = random.below(2) == 0;
    dims += dims.empty() ? "" : ", ";
    dims +=
        pads ? fmt::format("{}: {{size:{}, pad: {}}}", dim.substr(0, colon), dim.substr(colon + 1), 2 + random.below(7))
             : dim;
    at = stop + 2;
  }
  return model.substr(0, begin) + dims + model.substr(end);
}

}  // namespace shardplan
