// The kernels on one device against formulas written out here, one value at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "cases.h"
#include "operators/catalogue.h"
#include "oracle.h"

namespace shardplan {
namespace {

using Point = std::vector<std::int64_t>;
using List = std::vector<std::int64_t>;

double at(const Values& values, const Point& point) {
  std::size_t offset = 0;
  for (std::size_t d = 0; d < point.size(); ++d) {
    offset = offset * static_cast<std::size_t>(values.shape[d]) + static_cast<std::size_t>(point[d]);
  }
  return values.data[offset];
}

/// A tensor by its formula.
Values tabulate(const Shape& shape, const std::function<double(const Point&)>& formula) {
  Values values = make_values(shape, [] { return 0.0; });
  for (std::size_t i = 0; i < values.data.size(); ++i) {
    Point point(shape.size());
    std::size_t rest = i;
    for (std::size_t d = shape.size(); d-- > 0;) {
      point[d] = static_cast<std::int64_t>(rest % static_cast<std::size_t>(shape[d]));
      rest /= static_cast<std::size_t>(shape[d]);
    }
    values.data[i] = formula(point);
  }
  return values;
}

class Reference : public ::testing::Test {
 protected:
  Values real(const Shape& shape, double low = -1, double high = 1) {
    return make_values(shape, [&] { return low + (high - low) * random_.unit(); });
  }
  Values index(const Shape& shape, std::int64_t extent) {
    return make_values(shape, [&] { return static_cast<double>(random_.below(static_cast<std::uint64_t>(extent))); });
  }
  /// Operands of f64, but for the integers named by position.
  std::vector<Values> run(const std::string& type, const Attributes& attributes, const std::vector<Values>& operands,
                          const std::vector<std::size_t>& integers = {}, DataType integer_type = DataType::kI32) {
    std::vector<TensorType> types;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool is_integer = std::ranges::find(integers, i) != integers.end();
      types.push_back({operands[i].shape, is_integer ? integer_type : DataType::kF64});
    }
    const Operation operation = make_operation(*find_operator_type(type), attributes, types);
    std::vector<Values> results = run_whole(operation, operands);
    for (std::size_t r = 0; r < results.size(); ++r) EXPECT_EQ(results[r].shape, operation.results[r].shape);
    return results;
  }
  void expect(const Values& found, const std::function<double(const Point&)>& formula, const std::string& what = "") {
    EXPECT_LE(relative_difference(tabulate(found.shape, formula), found), 1e-12) << what;
  }

  Random random_{42};
};

TEST_F(Reference, MatMul) {
  const Values a = real({2, 3, 4, 5}), b = real({3, 5, 6}), at_ = real({5, 4}), bt = real({6, 5});
  expect(run("BatchMatMul", {}, {a, b})[0], [&](const Point& p) {
    double sum = 0;
    for (std::int64_t k = 0; k < 5; ++k) sum += at(a, {p[0], p[1], p[2], k}) * at(b, {p[1], k, p[3]});
    return sum;
  });
  expect(run("MatMul", {{"transpose_a", true}, {"transpose_b", true}}, {at_, bt})[0], [&](const Point& p) {
    double sum = 0;
    for (std::int64_t k = 0; k < 5; ++k) sum += at(at_, {k, p[0]}) * at(bt, {p[1], k});
    return sum;
  });
}

TEST_F(Reference, Einsum) {
  const Values a = real({3, 4, 5}), b = real({3, 6, 5});
  expect(run("Einsum", {{"equation", std::string("abc,adc->db")}}, {a, b})[0], [&](const Point& p) {
    double sum = 0;
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t c = 0; c < 5; ++c) sum += at(a, {i, p[1], c}) * at(b, {i, p[0], c});
    }
    return sum;
  });
}

TEST_F(Reference, ElementwiseFunctions) {
  const Values x = real({40}, -3, 3), y = real({40}, 0.2, 3);
  const std::pair<std::string, std::function<double(double)>> kUnary[] = {
      {"ReLU", [](double v) { return std::max(v, 0.0); }},
      {"Tanh", [](double v) { return std::tanh(v); }},
      {"SiLU", [](double v) { return v / (1 + std::exp(-v)); }},
      {"Sigmoid", [](double v) { return std::exp(v) / (1 + std::exp(v)); }},
      {"Exp", [](double v) { return std::exp(v); }},
      {"Neg", [](double v) { return -v; }},
      {"Abs", [](double v) { return std::fabs(v); }},
      {"Erf", [](double v) { return std::erf(v); }},
      {"Square", [](double v) { return v * v; }}};
  for (const auto& [type, function] : kUnary) {
    expect(
        run(type, {}, {x})[0], [&](const Point& p) { return function(at(x, p)); }, type);
  }
  const std::pair<std::string, std::function<double(double)>> kPositive[] = {
      {"Log", [](double v) { return std::log(v); }},
      {"Sqrt", [](double v) { return std::sqrt(v); }},
      {"Rsqrt", [](double v) { return std::pow(v, -0.5); }}};
  for (const auto& [type, function] : kPositive) {
    expect(
        run(type, {}, {y})[0], [&](const Point& p) { return function(at(y, p)); }, type);
  }
  const std::pair<std::string, std::function<double(double, double)>> kBinary[] = {
      {"Add", [](double a, double b) { return a + b; }},
      {"Sub", [](double a, double b) { return a - b; }},
      {"Mul", [](double a, double b) { return a * b; }},
      {"RealDiv", [](double a, double b) { return a / b; }},
      {"Div", [](double a, double b) { return a / b; }},
      {"Maximum", [](double a, double b) { return std::max(a, b); }},
      {"Minimum", [](double a, double b) { return std::min(a, b); }},
      {"Less", [](double a, double b) { return a < b; }},
      {"LessEqual", [](double a, double b) { return a <= b; }},
      {"Greater", [](double a, double b) { return a > b; }},
      {"GreaterEqual", [](double a, double b) { return a >= b; }},
      {"Equal", [](double a, double b) { return a == b; }},
      {"NotEqual", [](double a, double b) { return a != b; }}};
  const Values m = index({3, 1, 4}, 3),
               n = make_values({5, 1}, [&] { return 1.0 + static_cast<double>(random_.below(3)); });
  for (const auto& [type, function] : kBinary) {
    expect(
        run(type, {}, {m, n})[0],
        [&](const Point& p) {
          return function(at(m, {p[0], 0, p[2]}), at(n, {p[1], 0}));
        },
        type);
  }
  expect(run("Pow", {}, {y, x})[0], [&](const Point& p) { return std::exp(at(x, p) * std::log(at(y, p))); });
  // Of the documents: GELU(1) = 0.841192 by tanh and 0.841345 exactly.
  EXPECT_NEAR(run("GeLU", {}, {{{1}, {1.0}}})[0].data[0], 0.841192, 1e-6);
  EXPECT_NEAR(run("GeLU", {{"approximate", false}}, {{{1}, {1.0}}})[0].data[0], 0.841345, 1e-6);
  EXPECT_EQ(run("Cast", {{"dtype", std::string("i32")}}, {{{3}, {1.7, -1.7, 0.2}}})[0].data,
            (std::vector<double>{1, -1, 0}));
  const Values truths = index({4, 5}, 2), others = index({5}, 2), c = real({4, 5}), d = real({5});
  expect(run("LogicalAnd", {}, {truths, others}, {0, 1}, DataType::kBool)[0],
         [&](const Point& p) { return at(truths, p) != 0 && at(others, {p[1]}) != 0; });
  expect(run("LogicalOr", {}, {truths, others}, {0, 1}, DataType::kBool)[0],
         [&](const Point& p) { return at(truths, p) != 0 || at(others, {p[1]}) != 0; });
  expect(run("LogicalNot", {}, {truths}, {0}, DataType::kBool)[0], [&](const Point& p) { return at(truths, p) == 0; });
  expect(run("Select", {}, {truths, c, d}, {0}, DataType::kBool)[0],
         [&](const Point& p) { return at(truths, p) != 0 ? at(c, p) : at(d, {p[1]}); });
  expect(run("AddN", {}, {c, c, c})[0], [&](const Point& p) { return 3 * at(c, p); });
  const Values image = real({2, 3, 4, 5}), bias = real({3}), last = real({5});
  expect(run("BiasAdd", {{"data_format", std::string("NCHW")}}, {image, bias})[0],
         [&](const Point& p) { return at(image, p) + at(bias, {p[1]}); });
  expect(run("BiasAdd", {}, {image, last})[0], [&](const Point& p) { return at(image, p) + at(last, {p[3]}); });
}

TEST_F(Reference, Reductions) {
  const Values x = real({3, 4, 5});
  const auto fold = [&](const std::string& type, double start, const std::function<double(double, double)>& by,
                        double scale) {
    expect(
        run(type, {{"axis", List{0, 2}}, {"keep_dims", true}}, {x})[0],
        [&](const Point& p) {
          double total = start;
          for (std::int64_t i = 0; i < 3; ++i) {
            for (std::int64_t k = 0; k < 5; ++k) total = by(total, at(x, {i, p[1], k}));
          }
          return total * scale;
        },
        type);
  };
  const double infinity = std::numeric_limits<double>::infinity();
  fold(
      "ReduceSum", 0, [](double a, double b) { return a + b; }, 1);
  fold(
      "ReduceMean", 0, [](double a, double b) { return a + b; }, 1.0 / 15);
  fold(
      "ReduceMax", -infinity, [](double a, double b) { return std::max(a, b); }, 1);
  fold(
      "ReduceMin", infinity, [](double a, double b) { return std::min(a, b); }, 1);
  double squares = 0;
  for (const double v : x.data) squares += v * v;
  EXPECT_NEAR(run("SquareSum", {}, {x})[0].data[0], squares, 1e-12);
  for (const bool reverse : {false, true}) {
    for (const bool exclusive : {false, true}) {
      expect(run("CumSum", {{"axis", std::int64_t{1}}, {"reverse", reverse}, {"exclusive", exclusive}}, {x})[0],
             [&](const Point& p) {
               double sum = 0;
               for (std::int64_t j = 0; j < 4; ++j) {
                 const bool is_before = reverse ? j > p[1] : j < p[1];
                 if (is_before || (j == p[1] && !exclusive)) sum += at(x, {p[0], j, p[2]});
               }
               return sum;
             });
    }
  }
  const std::vector<Values> top = run("TopK", {{"k", std::int64_t{2}}}, {{{2, 4}, {1, 7, 3, 7, -1, -2, -3, -4}}});
  EXPECT_EQ(top[0].data, (std::vector<double>{7, 7, -1, -2}));
  EXPECT_EQ(top[1].data, (std::vector<double>{1, 3, 0, 1}));
}

TEST_F(Reference, SoftmaxAndNorms) {
  const Values x = real({3, 4, 5}, -2, 2), gamma = real({4, 5}), beta = real({4, 5}), scale = real({5});
  const auto softmax = [&](const Point& p) {
    double sum = 0;
    for (std::int64_t j = 0; j < 4; ++j) sum += std::exp(at(x, {p[0], j, p[2]}));
    return std::exp(at(x, p)) / sum;
  };
  expect(run("Softmax", {{"axis", std::int64_t{1}}}, {x})[0], softmax);
  expect(run("LogSoftmax", {{"axis", std::int64_t{1}}}, {x})[0], [&](const Point& p) { return std::log(softmax(p)); });
  expect(run("LayerNorm",
             {{"begin_norm_axis", std::int64_t{1}}, {"begin_params_axis", std::int64_t{1}}, {"epsilon", 1e-3}},
             {x, gamma, beta})[0],
         [&](const Point& p) {
           double sum = 0, squares = 0;
           for (std::int64_t j = 0; j < 4; ++j) {
             for (std::int64_t k = 0; k < 5; ++k) {
               sum += at(x, {p[0], j, k});
               squares += at(x, {p[0], j, k}) * at(x, {p[0], j, k});
             }
           }
           const double mean = sum / 20, variance = squares / 20 - mean * mean;
           return (at(x, p) - mean) / std::sqrt(variance + 1e-3) * at(gamma, {p[1], p[2]}) + at(beta, {p[1], p[2]});
         });
  expect(run("RmsNorm", {{"epsilon", 1e-3}}, {x, scale})[0], [&](const Point& p) {
    double squares = 0;
    for (std::int64_t k = 0; k < 5; ++k) squares += at(x, {p[0], p[1], k}) * at(x, {p[0], p[1], k});
    return at(x, p) / std::sqrt(squares / 5 + 1e-3) * at(scale, {p[2]});
  });
}

TEST_F(Reference, BatchNorm) {
  const Values x = real({4, 3, 2, 5}), gamma = real({3}), beta = real({3}), mean = real({3}),
               variance = real({3}, 0.5, 2);
  const auto statistics = [&](std::int64_t c) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 10; ++j) {
        const double v = at(x, {i, c, j / 5, j % 5});
        sum += v;
        squares += v * v;
      }
    }
    return std::pair(sum / 40, squares / 40 - sum / 40 * sum / 40);
  };
  const std::vector<Values> train =
      run("BatchNorm", {{"is_training", true}, {"momentum", 0.1}}, {x, gamma, beta, mean, variance});
  expect(train[0], [&](const Point& p) {
    const auto [m, v] = statistics(p[1]);
    return (at(x, p) - m) / std::sqrt(v + 1e-5) * at(gamma, {p[1]}) + at(beta, {p[1]});
  });
  expect(train[1], [&](const Point& p) { return 0.9 * at(mean, p) + 0.1 * statistics(p[0]).first; });
  expect(train[2], [&](const Point& p) { return 0.9 * at(variance, p) + 0.1 * statistics(p[0]).second * 40 / 39; });
  expect(train[3], [&](const Point& p) { return statistics(p[0]).first; });
  expect(train[4], [&](const Point& p) { return statistics(p[0]).second; });
  expect(run("BatchNorm", {}, {x, gamma, beta, mean, variance})[0], [&](const Point& p) {
    return (at(x, p) - at(mean, {p[1]})) / std::sqrt(at(variance, {p[1]}) + 1e-5) * at(gamma, {p[1]}) +
           at(beta, {p[1]});
  });
}

TEST_F(Reference, Losses) {
  const Values logits = real({6, 5}, -3, 3), labels = index({6}, 5), soft = real({6, 5}, 0, 1);
  const auto log_probability = [&](std::int64_t row, std::int64_t c) {
    double sum = 0;
    for (std::int64_t j = 0; j < 5; ++j) sum += std::exp(at(logits, {row, j}));
    return at(logits, {row, c}) - std::log(sum);
  };
  expect(run("SoftmaxCrossEntropyWithLogits", {}, {logits, soft})[0], [&](const Point& p) {
    double loss = 0;
    for (std::int64_t c = 0; c < 5; ++c) loss -= at(soft, {p[0], c}) * log_probability(p[0], c);
    return loss;
  });
  const auto sparse = [&](const Point& p) { return -log_probability(p[0], static_cast<std::int64_t>(at(labels, p))); };
  expect(run("SparseSoftmaxCrossEntropyWithLogits", {{"reduction", std::string("none")}}, {logits, labels}, {1})[0],
         sparse);
  double total = 0;
  for (std::int64_t row = 0; row < 6; ++row) total += sparse({row});
  EXPECT_NEAR(run("SparseSoftmaxCrossEntropyWithLogits", {}, {logits, labels}, {1})[0].data[0], total / 6, 1e-12);
  EXPECT_NEAR(
      run("SparseSoftmaxCrossEntropyWithLogits", {{"reduction", std::string("sum")}}, {logits, labels}, {1})[0].data[0],
      total, 1e-12);
  // Large logits do not overflow.
  EXPECT_NEAR(run("SparseSoftmaxCrossEntropyWithLogits", {}, {{{1, 2}, {1000, 0}}, {{1}, {0}}}, {1})[0].data[0], 0,
              1e-12);

  // The expanded form of the source documents: max, subtract, exp, sum, divide, log, multiply by the one-hot labels,
  // add up.
  const Attributes last = {{"axis", List{-1}}, {"keep_dims", true}};
  const Values hot = run("OneHot", {{"depth", std::int64_t{5}}, {"dtype", std::string("f64")}}, {labels}, {0})[0];
  const Values exponentials = run("Exp", {}, run("Sub", {}, {logits, run("ReduceMax", last, {logits})[0]}))[0];
  const Values probabilities = run("RealDiv", {}, {exponentials, run("ReduceSum", last, {exponentials})[0]})[0];
  const Values picked = run("Mul", {}, {run("Log", {}, {probabilities})[0], hot})[0];
  const Values expanded = run("Neg", {}, run("ReduceSum", {{"axis", List{-1}}}, {picked}))[0];
  expect(expanded, sparse);
}

TEST_F(Reference, Convolution) {
  struct Case {
    std::int64_t kernel, stride, pad, dilation, group;
  };
  for (const Case& c : {Case{3, 1, 1, 1, 1}, Case{2, 2, 0, 1, 2}, Case{3, 2, 2, 2, 1}, Case{1, 3, 0, 1, 4}}) {
    const Values x = real({2, 4, 9, 8}), w = real({8, 4 / c.group, c.kernel, c.kernel});
    const Attributes attributes = {{"pad_mode", std::string("pad")},
                                   {"pad", List{c.pad}},
                                   {"stride", List{c.stride}},
                                   {"dilation", List{c.dilation}},
                                   {"group", c.group}};
    const Values y = run("Conv2D", attributes, {x, w})[0];
    EXPECT_EQ(y.shape[2], (9 + 2 * c.pad - c.dilation * (c.kernel - 1) - 1) / c.stride + 1);
    expect(y, [&](const Point& p) {
      double sum = 0;
      const std::int64_t out_per_group = 8 / c.group, in_per_group = 4 / c.group;
      for (std::int64_t i = 0; i < in_per_group; ++i) {
        for (std::int64_t r = 0; r < c.kernel; ++r) {
          for (std::int64_t s = 0; s < c.kernel; ++s) {
            const std::int64_t h = p[2] * c.stride + r * c.dilation - c.pad,
                               v = p[3] * c.stride + s * c.dilation - c.pad;
            if (h < 0 || h >= 9 || v < 0 || v >= 8) continue;
            sum += at(x, {p[0], p[1] / out_per_group * in_per_group + i, h, v}) * at(w, {p[1], i, r, s});
          }
        }
      }
      return sum;
    });
  }
}

TEST_F(Reference, Pooling) {
  const Values x = real({2, 3, 9, 8});
  const Attributes attributes = {{"kernel_size", List{3}}, {"strides", List{2}}, {"pad_mode", std::string("same")}};
  // same: 9 -> 5 with padding 1 and 1, 8 -> 4 with 0 and 1.
  for (const std::string type : {"MaxPool", "AvgPool"}) {
    const Values y = run(type, attributes, {x})[0];
    EXPECT_EQ(y.shape, (Shape{2, 3, 5, 4}));
    expect(
        y,
        [&](const Point& p) {
          double sum = 0, most = -1e300, count = 0;
          for (std::int64_t h = std::max<std::int64_t>(0, 2 * p[2] - 1); h < std::min<std::int64_t>(9, 2 * p[2] + 2);
               ++h) {
            for (std::int64_t w = 2 * p[3]; w < std::min<std::int64_t>(8, 2 * p[3] + 3); ++w) {
              sum += at(x, {p[0], p[1], h, w});
              most = std::max(most, at(x, {p[0], p[1], h, w}));
              ++count;
            }
          }
          return type == "MaxPool" ? most : sum / count;
        },
        type);
  }
}

TEST_F(Reference, MovingElements) {
  const Values x = real({4, 6, 5}), y = real({4, 2, 5});
  expect(run("Transpose", {{"perm", List{2, 0, 1}}}, {x})[0], [&](const Point& p) {
    return at(x, {p[1], p[2], p[0]});
  });
  expect(run("Split", {{"axis", std::int64_t{1}}, {"output_num", std::int64_t{3}}}, {x})[1], [&](const Point& p) {
    return at(x, {p[0], p[1] + 2, p[2]});
  });
  expect(run("Split", {{"axis", std::int64_t{1}}, {"size_splits", List{1, 5}}}, {x})[1], [&](const Point& p) {
    return at(x, {p[0], p[1] + 1, p[2]});
  });
  expect(run("Concat", {{"axis", std::int64_t{1}}}, {y, x})[0], [&](const Point& p) {
    return p[1] < 2 ? at(y, p) : at(x, {p[0], p[1] - 2, p[2]});
  });
  expect(run("Stack", {{"axis", std::int64_t{1}}}, {x, x})[0], [&](const Point& p) {
    return at(x, {p[0], p[2], p[3]});
  });
  expect(run("Slice", {{"begin", List{1, 2}}, {"size", List{2, -1}}}, {x})[0], [&](const Point& p) {
    return at(x, {p[0] + 1, p[1] + 2, p[2]});
  });
  expect(run("StridedSlice", {{"begin", List{-3, 0}}, {"end", List{4, -1}}, {"strides", List{2, 3}}}, {x})[0],
         [&](const Point& p) {
           return at(x, {1 + 2 * p[0], 3 * p[1], p[2]});
         });
  expect(run("Tile", {{"multiples", List{2, 1, 3}}}, {x})[0], [&](const Point& p) {
    return at(x, {p[0] % 4, p[1], p[2] % 5});
  });
  expect(run("BroadcastTo", {{"shape", List{3, 4, 6, 5}}}, {x})[0], [&](const Point& p) {
    return at(x, {p[1], p[2], p[3]});
  });
  EXPECT_EQ(run("Reshape", {{"shape", List{-1, 3}}}, {x})[0].data, x.data);
}

TEST_F(Reference, Indices) {
  const Values table = real({7, 3, 4}), rows = index({2, 5}, 7), updates = real({2, 5, 4});
  expect(run("Gather", {}, {table, rows}, {1})[0], [&](const Point& p) {
    return at(table, {static_cast<std::int64_t>(at(rows, {p[0], p[1]})), p[2], p[3]});
  });
  const Values columns = index({5}, 3);
  expect(run("Gather", {{"axis", std::int64_t{1}}}, {table, columns}, {1})[0], [&](const Point& p) {
    return at(table, {p[0], static_cast<std::int64_t>(at(columns, {p[1]})), p[2]});
  });
  expect(run("UnsortedSegmentSum", {{"num_segments", std::int64_t{7}}}, {updates, rows}, {1})[0], [&](const Point& p) {
    double sum = 0;
    for (std::int64_t i = 0; i < 10; ++i) {
      if (at(rows, {i / 5, i % 5}) == static_cast<double>(p[0])) sum += at(updates, {i / 5, i % 5, p[1]});
    }
    return sum;
  });
  EXPECT_EQ(run("Gather", {}, {{{2}, {5, 6}}, {{3}, {-1, 2, 1}}}, {1})[0].data, (std::vector<double>{0, 0, 6}))
      << "outside: 0";
  expect(run("OneHot", {{"depth", std::int64_t{7}}, {"axis", std::int64_t{0}}}, {rows}, {0})[0], [&](const Point& p) {
    return at(rows, {p[1], p[2]}) == static_cast<double>(p[0]) ? 1.0 : 0.0;
  });
  EXPECT_EQ(run("Range", {{"start", 2.0}, {"limit", 8.0}, {"delta", 2.5}}, {})[0].data,
            (std::vector<double>{2, 4.5, 7}));
  const Values x = real({2, 3, 4, 8}), cosine = real({4, 8}), sine = real({4, 8});
  expect(run("RotaryEmbedding", {}, {x, cosine, sine})[0], [&](const Point& p) {
    const double turned = p[3] < 4 ? -at(x, {p[0], p[1], p[2], p[3] + 4}) : at(x, {p[0], p[1], p[2], p[3] - 4});
    return at(x, p) * at(cosine, {p[2], p[3]}) + turned * at(sine, {p[2], p[3]});
  });
}

TEST_F(Reference, Optimizers) {
  const Values p{{1}, {2.0}}, g{{1}, {0.5}}, m{{1}, {0.1}}, v{{1}, {0.04}}, step{{}, {1}};
  EXPECT_NEAR(run("ApplyGradientDescent", {{"learning_rate", 0.1}, {"weight_decay", 0.01}}, {p, g})[0].data[0],
              2 - 0.1 * 0.52, 1e-15);
  const std::vector<Values> momentum = run("ApplyMomentum", {{"learning_rate", 0.1}, {"momentum", 0.9}}, {p, m, g});
  EXPECT_NEAR(momentum[1].data[0], 0.59, 1e-15);
  EXPECT_NEAR(momentum[0].data[0], 2 - 0.059, 1e-15);
  // The second update: m = 0.9 * 0.1 + 0.1 * 0.5 = 0.14, v = 0.999 * 0.04 + 0.001 * 0.25 = 0.04021.
  const std::vector<Values> adam =
      run("ApplyAdamW", {{"learning_rate", 0.1}, {"weight_decay", 0.01}}, {p, m, v, step, g});
  EXPECT_NEAR(adam[1].data[0], 0.14, 1e-15);
  EXPECT_NEAR(adam[2].data[0], 0.04021, 1e-15);
  EXPECT_NEAR(adam[0].data[0], 2 - 0.1 * (0.14 / 0.19 / (std::sqrt(0.04021 / 0.001999) + 1e-8) + 0.02), 1e-14);
  EXPECT_EQ(adam[3].data[0], 2);
  const std::vector<Values> coupled =
      run("ApplyAdam", {{"learning_rate", 0.1}, {"weight_decay", 0.01}}, {p, m, v, step, g});
  EXPECT_NEAR(coupled[1].data[0], 0.9 * 0.1 + 0.1 * 0.52, 1e-15);
  EXPECT_NEAR(run("ClipScale", {{"clip_norm", 1.0}}, {{{}, {16}}})[0].data[0], 0.25, 1e-15);
  EXPECT_EQ(run("ClipScale", {{"clip_norm", 1.0}}, {{{}, {0.5}}})[0].data[0], 1);
}

}  // namespace
}  // namespace shardplan
