#include "cases.h"

#include <cmath>

#include "operators/catalogue.h"

namespace shardplan {
namespace {

using List = std::vector<std::int64_t>;

std::int64_t any_of(Random& random, const List& sizes) { return sizes[random.below(sizes.size())]; }
/// A size that two, four or eight devices can cut, or three cannot.
std::int64_t some(Random& random) { return any_of(random, {2, 4, 4, 6, 8, 8}); }
Shape shape(Random& random, std::size_t rank) {
  Shape result;
  for (std::size_t d = 0; d < rank; ++d) result.push_back(some(random));
  return result;
}
Shape images(Random& random) {
  return {any_of(random, {2, 4}), any_of(random, {2, 4}), any_of(random, {6, 8}), any_of(random, {4, 8})};
}
std::int64_t whole_number(std::size_t value) { return static_cast<std::int64_t>(value); }

std::vector<CaseMaker> make_all() {
  std::vector<CaseMaker> all;
  const auto add = [&](std::string name, std::function<OperatorCase(Random&)> make) {
    all.push_back({std::move(name), std::move(make)});
  };

  for (const std::string name : {"MatMul", "BatchMatMul"}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        add(name + (ta ? "_ta" : "") + (tb ? "_tb" : ""), [=](Random& r) -> OperatorCase {
          const std::int64_t m = some(r), k = some(r), n = some(r);
          Shape a = ta ? Shape{k, m} : Shape{m, k};
          Shape b = tb ? Shape{n, k} : Shape{k, n};
          const std::int64_t batch = any_of(r, {2, 4}), second = any_of(r, {2, 3});
          const std::uint64_t form = name == "MatMul" ? r.below(2) : 2 + r.below(3);
          if (form >= 1 && form != 4) a.insert(a.begin(), {batch, second});
          if (form == 2) b.insert(b.begin(), {batch, second});
          if (form == 3) b.insert(b.begin(), {1, second});
          if (form == 4) b.insert(b.begin(), {batch, second});
          return {name, {{"transpose_a", ta}, {"transpose_b", tb}}, {real(a), real(b)}};
        });
      }
    }
  }
  add("Einsum", [](Random& r) -> OperatorCase {
    const std::int64_t a = some(r), b = some(r), c = some(r), d = some(r);
    switch (r.below(4)) {
      case 0:
        return {"Einsum", {{"equation", std::string("abc,cd->bda")}}, {real({a, b, c}), real({c, d})}};
      case 1:
        return {"Einsum", {{"equation", std::string("abc, abd -> dc")}}, {real({a, b, c}), real({a, b, d})}};
      case 2:
        return {"Einsum", {{"equation", std::string("abc->ca")}}, {real({a, b, c})}};
      default:
        return {"Einsum", {{"equation", std::string("ab,c->bc")}}, {real({a, b}), real({c})}};
    }
  });

  // Elementwise.
  for (const std::string name :
       {"ReLU", "SiLU", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Erf", "Square", "Identity", "GeLU"}) {
    add(name, [=](Random& r) -> OperatorCase { return {name, {}, {real(shape(r, 1 + r.below(3)))}}; });
  }
  add("GeLU_erf", [](Random& r) -> OperatorCase { return {"GeLU", {{"approximate", false}}, {real(shape(r, 2))}}; });
  for (const std::string name : {"Log", "Sqrt", "Rsqrt"}) {
    add(name, [=](Random& r) -> OperatorCase { return {name, {}, {positive(shape(r, 2))}}; });
  }
  add("Accumulate", [](Random& r) -> OperatorCase {
    return {"Accumulate", {{"dtype", std::string("f32")}, {"count", std::int64_t{3}}}, {real(shape(r, 2))}};
  });
  for (const std::string name : {"ReLUGrad", "SiLUGrad", "SigmoidGrad", "TanhGrad", "ExpGrad", "LogGrad", "SqrtGrad",
                                 "RsqrtGrad", "AbsGrad", "ErfGrad", "SquareGrad", "GeLUGrad"}) {
    add(name, [=](Random& r) -> OperatorCase {
      const Shape s = shape(r, 2);
      return {name, {}, {real(s), positive(s)}};
    });
  }
  add("Cast", [](Random& r) -> OperatorCase { return {"Cast", {{"dtype", std::string("f32")}}, {real(shape(r, 2))}}; });
  add("Cast_int", [](Random& r) -> OperatorCase {
    return {"Cast", {{"dtype", std::string("i32")}}, {{shape(r, 2), -9, 9}}};
  });
  add("Dropout", [](Random& r) -> OperatorCase {
    return {"Dropout", {{"keep_prob", 0.7}}, {real(shape(r, 1 + r.below(3)))}};
  });
  add("DropoutGrad", [](Random& r) -> OperatorCase {
    const Shape s = shape(r, 2);
    return {"DropoutGrad", {{"keep_prob", 0.7}}, {real(s), truth(s)}};
  });
  for (const std::string name : {"Add", "Sub", "Mul", "RealDiv", "Div", "Pow", "Maximum", "Minimum", "Equal",
                                 "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"}) {
    add(name, [=](Random& r) -> OperatorCase {
      Shape a = shape(r, 3);
      Shape b = a;
      switch (r.below(5)) {
        case 0:
          break;
        case 1:
          b = {a[1], a[2]};
          break;
        case 2:
          b = {a[0], 1, a[2]};
          break;
        case 3:
          b = {};
          break;
        default:
          a[0] = 1;
          break;
      }
      if (name == "Equal" || name == "NotEqual") return {name, {}, {{a, 0, 3, true}, {b, 0, 3, true}}};
      return {name, {}, {name == "Pow" ? positive(a) : real(a), positive(b)}};
    });
  }
  for (const std::string name : {"LogicalAnd", "LogicalOr"}) {
    add(name, [=](Random& r) -> OperatorCase {
      const Shape s = shape(r, 2);
      return {name, {}, {truth(s), truth({s[1]})}};
    });
  }
  add("LogicalNot", [](Random& r) -> OperatorCase { return {"LogicalNot", {}, {truth(shape(r, 2))}}; });
  add("Select", [](Random& r) -> OperatorCase {
    const Shape s = shape(r, 2);
    return {"Select", {}, {truth(s), real(s), real({s[1]})}};
  });
  add("AddN", [](Random& r) -> OperatorCase {
    const Shape s = shape(r, 2);
    return {"AddN", {}, {real(s), real(s), real(s)}};
  });
  add("BiasAdd", [](Random& r) -> OperatorCase {
    const Shape s = shape(r, 3);
    return {"BiasAdd", {}, {real(s), real({s[2]})}};
  });
  add("BiasAdd_nchw", [](Random& r) -> OperatorCase {
    const Shape s = images(r);
    return {"BiasAdd", {{"data_format", std::string("NCHW")}}, {real(s), real({s[1]})}};
  });

  // Reductions.
  for (const std::string name : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"}) {
    add(name, [=](Random& r) -> OperatorCase {
      static const std::vector<List> kAxes = {{}, {0}, {-1}, {0, 2}, {1}};
      return {name, {{"axis", kAxes[r.below(5)]}, {"keep_dims", r.below(2) == 0}}, {real(shape(r, 3))}};
    });
  }
  add("SquareSum", [](Random& r) -> OperatorCase { return {"SquareSum", {}, {real(shape(r, 2))}}; });
  add("CumSum", [](Random& r) -> OperatorCase {
    return {"CumSum",
            {{"axis", whole_number(r.below(3))}, {"exclusive", r.below(2) == 0}, {"reverse", r.below(2) == 0}},
            {real(shape(r, 3))}};
  });
  add("TopK", [](Random& r) -> OperatorCase { return {"TopK", {{"k", whole_number(2)}}, {real(shape(r, 3))}}; });
  add("TopKGrad", [](Random& r) -> OperatorCase {
    const Shape s = shape(r, 3);
    return {"TopKGrad", {{"size", whole_number(9)}}, {real(s), index(s, 9)}};
  });

  // Softmax, norms, losses.
  for (const std::string name : {"Softmax", "LogSoftmax"}) {
    add(name, [=](Random& r) -> OperatorCase {
      return {name, {{"axis", whole_number(r.below(3))}}, {{shape(r, 3), -4, 4}}};
    });
    add(name + "Grad", [=](Random& r) -> OperatorCase {
      const Shape s = shape(r, 3);
      return {name + "Grad", {{"axis", whole_number(r.below(3))}}, {real(s), real(s)}};
    });
  }
  for (const bool is_gradient : {false, true}) {
    add(is_gradient ? "LayerNormGrad" : "LayerNorm", [=](Random& r) -> OperatorCase {
      const Shape s = shape(r, 3);
      const std::int64_t norm = whole_number(1 + r.below(2));
      const std::int64_t params = norm == 2 ? 1 + whole_number(r.below(2)) : 1;
      const Shape p(s.begin() + params, s.end());
      const Attributes attributes = {{"begin_norm_axis", norm}, {"begin_params_axis", params}};
      if (is_gradient) return {"LayerNormGrad", attributes, {real(s), {s, 3, 5}, positive(p)}};
      return {"LayerNorm", attributes, {{s, 3, 5}, positive(p), real(p)}};
    });
    add(is_gradient ? "RmsNormGrad" : "RmsNorm", [=](Random& r) -> OperatorCase {
      const Shape s = shape(r, 3);
      const Shape p(s.begin() + 1 + static_cast<std::ptrdiff_t>(r.below(2)), s.end());
      if (is_gradient) return {"RmsNormGrad", {}, {real(s), real(s), positive(p)}};
      return {"RmsNorm", {}, {real(s), positive(p)}};
    });
    add(is_gradient ? "BatchNormGrad" : "BatchNorm", [=](Random& r) -> OperatorCase {
      const Shape s = r.below(2) == 0 ? images(r) : shape(r, 2);
      const Shape c = {s[1]};
      if (is_gradient) return {"BatchNormGrad", {}, {real(s), {s, 3, 5}, positive(c), {c, 3, 5}, positive(c)}};
      return {"BatchNorm", {{"is_training", true}}, {{s, 3, 5}, positive(c), real(c), real(c), positive(c)}};
    });
  }
  add("BatchNorm_inference", [](Random& r) -> OperatorCase {
    const Shape s = images(r);
    const Shape c = {s[1]};
    return {"BatchNorm", {}, {{s, 3, 5}, positive(c), real(c), real(c), positive(c)}};
  });
  add("SoftmaxCrossEntropyWithLogits", [](Random& r) -> OperatorCase {
    const Shape s = shape(r, 1 + r.below(3));
    return {"SoftmaxCrossEntropyWithLogits", {}, {{s, -4, 4}, positive(s)}};
  });
  add("SoftmaxCrossEntropyGrad", [](Random& r) -> OperatorCase {
    const Shape s = shape(r, 2);
    return {"SoftmaxCrossEntropyGrad", {}, {real({s[0]}), {s, -4, 4}, positive(s)}};
  });
  for (const std::string reduction : {"mean", "sum", "none"}) {
    add("SparseSoftmaxCrossEntropyWithLogits_" + reduction, [=](Random& r) -> OperatorCase {
      const Shape s = shape(r, 3);
      return {
          "SparseSoftmaxCrossEntropyWithLogits", {{"reduction", reduction}}, {{s, -4, 4}, index({s[0], s[1]}, s[2])}};
    });
    add("SparseSoftmaxCrossEntropyGrad_" + reduction, [=](Random& r) -> OperatorCase {
      const Shape s = shape(r, 2);
      return {"SparseSoftmaxCrossEntropyGrad",
              {{"reduction", reduction}},
              {real(reduction == "none" ? Shape{s[0]} : Shape{}), {s, -4, 4}, index({s[0]}, s[1])}};
    });
  }

  // Views and moves.
  add("Reshape", [](Random& r) -> OperatorCase {
    switch (r.below(6)) {
      case 0:
        return {"Reshape", {{"shape", List{-1, 8}}}, {real({2, 4, 8})}};
      case 1:
        return {"Reshape", {{"shape", List{4, 4, 12}}}, {real({4, 48})}};
      case 2:
        return {"Reshape", {{"shape", List{8, 6, 2}}}, {real({4, 24})}};
      case 3:
        return {"Reshape", {{"shape", List{4, 5, 3, 2}}}, {real({4, 3, 5, 2})}};
      case 4:
        return {"Reshape", {{"shape", List{8, 12}}}, {real({12, 8})}};
      default:
        return {"Reshape", {{"shape", List{2, 1, 24}}}, {real({6, 8})}};
    }
  });
  add("Flatten", [](Random& r) -> OperatorCase { return {"Flatten", {}, {real(shape(r, 3))}}; });
  add("ExpandDims", [](Random& r) -> OperatorCase {
    return {"ExpandDims", {{"axis", whole_number(r.below(3))}}, {real(shape(r, 2))}};
  });
  add("Squeeze", [](Random& r) -> OperatorCase { return {"Squeeze", {}, {real({some(r), 1, some(r)})}}; });
  add("Transpose", [](Random& r) -> OperatorCase {
    return {"Transpose", {{"perm", r.below(2) == 0 ? List{2, 0, 1} : List{0, 2, 1}}}, {real(shape(r, 3))}};
  });
  add("Split", [](Random& r) -> OperatorCase {
    return {"Split", {{"axis", whole_number(1)}, {"output_num", whole_number(3)}}, {real({some(r), 12, some(r)})}};
  });
  add("Split_sizes", [](Random& r) -> OperatorCase {
    return {"Split", {{"axis", whole_number(-1)}, {"size_splits", List{2, 5, 1}}}, {real({some(r), 8})}};
  });
  add("Concat", [](Random& r) -> OperatorCase {
    const Shape s = shape(r, 3);
    return {"Concat", {{"axis", whole_number(r.below(3))}}, {real(s), real(s)}};
  });
  add("Concat_unequal", [](Random& r) -> OperatorCase {
    const std::int64_t a = some(r);
    return {"Concat", {{"axis", whole_number(1)}}, {real({a, 2}), real({a, 4}), real({a, 1})}};
  });
  add("Stack", [](Random& r) -> OperatorCase {
    const Shape s = shape(r, 2);
    return {"Stack", {{"axis", whole_number(r.below(3))}}, {real(s), real(s), real(s)}};
  });
  add("Slice", [](Random& r) -> OperatorCase {
    return {"Slice", {{"begin", List{0, 3}}, {"size", List{-1, 4}}}, {real({some(r), 8, some(r)})}};
  });
  add("StridedSlice", [](Random& r) -> OperatorCase {
    return {"StridedSlice",
            {{"begin", List{0, 1}}, {"end", List{99, -1}}, {"strides", List{1, 2}}},
            {real({some(r), 8, some(r)})}};
  });
  add("SliceGrad", [](Random& r) -> OperatorCase {
    const std::int64_t a = some(r);
    return {"SliceGrad",
            {{"shape", List{a, 8}}, {"begin", List{0, 1}}, {"end", List{a, 7}}, {"strides", List{1, 2}}},
            {real({a, 3})}};
  });
  add("Tile", [](Random& r) -> OperatorCase { return {"Tile", {{"multiples", List{2, 1, 4}}}, {real(shape(r, 2))}}; });
  add("BroadcastTo", [](Random& r) -> OperatorCase {
    const Shape s = shape(r, 3);
    return {"BroadcastTo", {{"shape", s}}, {real({1, s[2]})}};
  });

  // Indices.
  add("Gather", [](Random& r) -> OperatorCase {
    const std::int64_t v = any_of(r, {8, 16});
    if (r.below(2) == 0) return {"Gather", {}, {real({v, some(r)}), index({some(r), some(r)}, v + 2)}};
    return {"Gather", {{"axis", whole_number(1)}}, {real({some(r), v, some(r)}), index({some(r)}, v)}};
  });
  add("GatherGrad", [](Random& r) -> OperatorCase {
    const std::int64_t a = some(r), b = some(r), p = some(r);
    if (r.below(2) == 0) return {"GatherGrad", {{"size", whole_number(8)}}, {real({a, b, some(r)}), index({a, b}, 8)}};
    return {
        "GatherGrad", {{"size", whole_number(8)}, {"axis", whole_number(1)}}, {real({p, a, some(r)}), index({a}, 8)}};
  });
  add("UnsortedSegmentSum", [](Random& r) -> OperatorCase {
    const std::int64_t a = some(r);
    return {"UnsortedSegmentSum", {{"num_segments", whole_number(8)}}, {real({a, some(r)}), index({a}, 8)}};
  });
  add("OneHot", [](Random& r) -> OperatorCase {
    return {
        "OneHot",
        {{"depth", whole_number(8)}, {"axis", whole_number(r.below(2)) - 1}, {"on_value", 2.0}, {"off_value", -1.0}},
        {index({some(r), some(r)}, 9)}};
  });
  add("Range", [](Random& r) -> OperatorCase {
    return {"Range",
            {{"start", 3.0},
             {"limit", 3.0 + 0.5 * static_cast<double>(some(r)) - 0.1},
             {"delta", 0.5},
             {"dtype", std::string("f32")}},
            {}};
  });
  for (const std::string name : {"RotaryEmbedding", "RotaryEmbeddingGrad"}) {
    add(name, [=](Random& r) -> OperatorCase {
      const Shape s = {some(r), some(r), some(r), any_of(r, {4, 8, 16})};
      return {name, {}, {real(s), real({s[2], s[3]}), real({s[2], s[3]})}};
    });
  }

  // Windows.
  struct Geometry {
    std::int64_t kernel, stride;
    std::string mode;
    std::int64_t pad, dilation;
  };
  static const std::vector<Geometry> kGeometries = {{3, 1, "same", 0, 1},  {2, 2, "valid", 0, 1}, {3, 2, "same", 0, 1},
                                                    {1, 1, "valid", 0, 1}, {3, 1, "valid", 0, 1}, {1, 2, "valid", 0, 1},
                                                    {3, 1, "pad", 1, 1},   {2, 1, "same", 0, 1},  {3, 1, "pad", 2, 2},
                                                    {3, 2, "pad", 1, 1},   {5, 2, "pad", 2, 1}};
  const auto convolution = [](Random& r) {
    const Geometry g = kGeometries[r.below(kGeometries.size())];
    const std::int64_t group = any_of(r, {1, 1, 2, 4});
    const Shape x = {any_of(r, {2, 4}), group * any_of(r, {1, 2}), any_of(r, {8, 8, 9}), any_of(r, {4, 8})};
    const Shape w = {group * any_of(r, {1, 2}), x[1] / group, g.kernel, std::min<std::int64_t>(g.kernel, 3)};
    OperatorCase example{"Conv2D",
                         {{"pad_mode", g.mode},
                          {"pad", List{g.pad}},
                          {"stride", List{g.stride}},
                          {"dilation", List{g.dilation}},
                          {"group", group}},
                         {real(x), real(w)}};
    return example;
  };
  add("Conv2D", convolution);
  add("Conv2DBackpropInput", [=](Random& r) -> OperatorCase {
    OperatorCase example = convolution(r);
    const Shape x = example.operands[0].shape, w = example.operands[1].shape;
    const Shape y = operation_of(example).results[0].shape;
    example.attributes["input_size"] = List{x[2], x[3]};
    return {"Conv2DBackpropInput", example.attributes, {real(y), real(w)}};
  });
  add("Conv2DBackpropFilter", [=](Random& r) -> OperatorCase {
    OperatorCase example = convolution(r);
    const Shape x = example.operands[0].shape, w = example.operands[1].shape;
    const Shape y = operation_of(example).results[0].shape;
    example.attributes["kernel_size"] = List{w[2], w[3]};
    return {"Conv2DBackpropFilter", example.attributes, {real(y), real(x)}};
  });
  const auto pooling = [](Random& r, const std::string& name) {
    static const std::vector<Geometry> kPools = {{2, 2, "valid", 0, 1}, {3, 2, "same", 0, 1},  {3, 1, "same", 0, 1},
                                                 {3, 2, "pad", 1, 1},   {2, 1, "valid", 0, 1}, {3, 3, "same", 0, 1}};
    const Geometry g = kPools[r.below(kPools.size())];
    const Shape x = {2, any_of(r, {2, 4}), any_of(r, {8, 8, 9}), any_of(r, {4, 8})};
    return OperatorCase{
        name,
        {{"pad_mode", g.mode}, {"pad", List{g.pad}}, {"strides", List{g.stride}}, {"kernel_size", List{g.kernel}}},
        {real(x)}};
  };
  for (const std::string name : {"MaxPool", "AvgPool"}) add(name, [=](Random& r) { return pooling(r, name); });
  add("MaxPoolGrad", [=](Random& r) -> OperatorCase {
    const OperatorCase example = pooling(r, "MaxPool");
    return {"MaxPoolGrad", example.attributes, {real(operation_of(example).results[0].shape), example.operands[0]}};
  });
  add("AvgPoolGrad", [=](Random& r) -> OperatorCase {
    OperatorCase example = pooling(r, "AvgPool");
    const Shape y = operation_of(example).results[0].shape;
    example.attributes["input_size"] = List{example.operands[0].shape[2], example.operands[0].shape[3]};
    return {"AvgPoolGrad", example.attributes, {real(y)}};
  });

  // Optimizers.
  const Attributes rate = {{"learning_rate", 0.1}, {"weight_decay", 0.01}};
  add("ApplyGradientDescent", [=](Random& r) -> OperatorCase {
    const Shape s = shape(r, 2);
    return {"ApplyGradientDescent", rate, {real(s), real(s)}};
  });
  add("ApplyMomentum", [=](Random& r) -> OperatorCase {
    const Shape s = shape(r, 2);
    return {"ApplyMomentum", rate, {real(s), real(s), real(s)}};
  });
  for (const std::string name : {"ApplyAdam", "ApplyAdamW"}) {
    add(name, [=](Random& r) -> OperatorCase {
      const Shape s = shape(r, 2);
      return {name, rate, {real(s), real(s), positive(s), index({}, 5), real(s)}};
    });
  }
  add("ClipScale", [](Random&) -> OperatorCase { return {"ClipScale", {{"clip_norm", 1.0}}, {positive({})}}; });
  return all;
}

}  // namespace

const std::vector<CaseMaker>& case_makers() {
  static const std::vector<CaseMaker> makers = make_all();
  return makers;
}

Operation operation_of(const OperatorCase& example, DataType dtype) {
  std::vector<TensorType> types;
  for (const OperandSpec& operand : example.operands) {
    types.push_back({operand.shape, operand.is_index ? DataType::kI32 : operand.is_flag ? DataType::kBool : dtype});
  }
  return make_operation(*find_operator_type(example.type), example.attributes, types);
}

std::vector<Values> draw_operands(const OperatorCase& example, Random& random) {
  std::vector<Values> values;
  for (const OperandSpec& operand : example.operands) {
    values.push_back(make_values(operand.shape, [&] {
      const double value = operand.low + (operand.high - operand.low) * random.unit();
      return operand.is_index || operand.is_flag ? std::floor(value) : value;
    }));
  }
  return values;
}

}  // namespace shardplan
