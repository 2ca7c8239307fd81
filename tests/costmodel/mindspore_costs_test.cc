// Numbers that MindSpore's tests assert, or that follow from its formulas (reference figures K1 to K4), and
// its published choices as the argmin over all combinations of strategies.
#include "costmodel/mindspore/mindspore_costs.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/error.h"

namespace shardplan {
namespace {

// ---- operators

MindSporeTensor tensor(Shape shape, std::vector<std::int64_t> cuts, bool is_parameter = false,
                       Bytes element_bytes = 4) {
  return {std::move(shape), std::move(cuts), element_bytes, is_parameter};
}

/// A [i, k] times B [k, j], sharded into (m, k, n) pieces.
MindSporeOperator matmul(const Shape& a, std::int64_t j, std::int64_t m, std::int64_t k, std::int64_t n,
                         bool is_parameter = false) {
  return {MindSporeFamily::kMatMul,
          {tensor(a, {m, k}), tensor({a[1], j}, {k, n}, is_parameter)},
          tensor({a[0], j}, {m, n}),
          false,
          false};
}

TEST(MindSporeCostsTest, PReLU) {  // K1
  const MindSporeOperator op = {MindSporeFamily::kArithmetic,
                                {tensor({32, 32, 32, 32}, {4, 1, 4, 4}), tensor({32}, {1}, true)},
                                tensor({32, 32, 32, 32}, {4, 1, 4, 4}),
                                false,
                                false};
  EXPECT_EQ(mindspore_figures(op, 1024), (MindSporeFigures{0, 128, 65664, 128}));
}

TEST(MindSporeCostsTest, MatMul) {  // K2
  EXPECT_EQ(mindspore_figures(matmul({200, 300}, 500, 10, 6, 20), 1024), (MindSporeFigures{2000, 0, 11000, 0}));
  EXPECT_EQ(mindspore_figures(matmul({200, 300}, 500, 10, 6, 20, true), 1024),
            (MindSporeFigures{2000, 5000, 11000, 5000}));
}

TEST(MindSporeCostsTest, SelectionTakesTheLeastTime) {  // K3: without partial communication set, computation decides
  std::vector<std::vector<MindSporeCost>> lists(2);
  lists[0] = {{10, 20, 0, 0, 100}, {100, 10, 0, 0, 100}};
  lists[1] = {{1010, 20, 0, 0, 100}, {1050, 20, 0, 0, 100}};
  EXPECT_EQ(least_training_time(lists, 1024), (std::vector<std::size_t>{0, 0}));
  EXPECT_EQ(least_training_time(lists, 199), std::nullopt);
  lists[0][0].memory = 1000;
  EXPECT_EQ(least_training_time(lists, 1024), (std::vector<std::size_t>{1, 0}));
}

TEST(MindSporeCostsTest, SimplificationKeepsWhatCommunicatesLess) {  // K4
  const auto cost = [](double computation, double communication) {
    return MindSporeCost{computation, communication, 0, 0, 0};
  };
  EXPECT_EQ(simplify({cost(100, 20), cost(200, 10), cost(300, 50)}),
            (std::vector<MindSporeCost>{cost(100, 20), cost(200, 10)}));
}

TEST(MindSporeCostsTest, ObjectivesOfAllMatMulStrategies) {
  const struct {
    std::int64_t m, k, n;
    double computation, communication, objective;
  } kPlain[] = {{1, 1, 1, 2560, 0, 2560},      {1, 1, 8, 768, 0, 768},         {1, 2, 4, 768, 256, 1229568},
                {1, 4, 2, 896, 512, 1229696},  {1, 8, 1, 1344, 1024, 1230144}, {2, 1, 4, 768, 0, 768},
                {2, 2, 2, 896, 256, 1229696},  {2, 4, 1, 1088, 512, 1229888},  {4, 1, 2, 1152, 0, 1152},
                {4, 2, 1, 1344, 256, 1230144}, {8, 1, 1, 2111, 0, 2111}};
  for (const auto& test : kPlain) {
    const MindSporeOperator op = matmul({8, 16}, 32, test.m, test.k, test.n);
    EXPECT_EQ(mindspore_figures(op, 8).forward_communication, test.communication);
    EXPECT_EQ(mindspore_operator_cost(op, 8).computation, test.computation);
    EXPECT_EQ(mindspore_operator_cost(op, 8).objective(), test.objective);
  }
  const struct {
    std::int64_t m, k, n;
    double objective;
  } kParameter[] = {{1, 1, 1, 39321.6}, {1, 1, 8, 18432},     {1, 2, 4, 2062336},   {1, 4, 2, 3700736},
                    {1, 8, 1, 6983680}, {2, 1, 4, 13926.4},   {2, 2, 2, 2061926.4}, {2, 4, 1, 3702374.4},
                    {4, 1, 2, 15564.8}, {4, 2, 1, 2065612.8}, {8, 1, 1, 24984.2}};
  for (const auto& test : kParameter) {
    EXPECT_NEAR(mindspore_operator_cost(matmul({64, 64}, 64, test.m, test.k, test.n, true), 8).objective(),
                test.objective, 1e-6);
  }
}

TEST(MindSporeCostsTest, OtherFamilies) {
  const auto x = [](bool is_parameter) { return tensor({64, 32}, {8, 1}, is_parameter); };  // slice 1024 B
  const auto figures = [](MindSporeFamily family, std::vector<MindSporeTensor> operands, const MindSporeTensor& result,
                          bool reduces = false, bool cuts_axis = false) {
    return mindspore_figures({family, std::move(operands), result, reduces, cuts_axis}, 16);
  };
  EXPECT_EQ(figures(MindSporeFamily::kActivation, {x(true)}, x(false)), (MindSporeFigures{0, 1024, 1024, 0}));
  EXPECT_EQ(figures(MindSporeFamily::kSoftmax, {x(false)}, x(false)), (MindSporeFigures{0, 0, 1024, 0}));
  EXPECT_EQ(figures(MindSporeFamily::kReduce, {x(false)}, tensor({32}, {1}), true),
            (MindSporeFigures{128, 0, 1152, 0}));
  EXPECT_EQ(figures(MindSporeFamily::kReduceMean, {x(false)}, tensor({32}, {1}), true),
            (MindSporeFigures{128, 0, 1280, 0}));
  EXPECT_EQ(figures(MindSporeFamily::kReduce, {x(false)}, tensor({64}, {8})), (MindSporeFigures{0, 0, 1024, 0}));
  EXPECT_EQ(figures(MindSporeFamily::kUnlearned, {x(false), x(false)}, x(false)), (MindSporeFigures{0, 0, 2048, 0}));
  EXPECT_EQ(figures(MindSporeFamily::kDropout, {x(false)}, x(false)), (MindSporeFigures{0, 0, 1152, 0}));
  EXPECT_EQ(figures(MindSporeFamily::kBatchParallel, {x(false), tensor({32}, {1}, true)}, x(false)),
            (MindSporeFigures{0, 128, 1152, 0}));
  const MindSporeTensor indices = tensor({10}, {1});  // 40 B
  EXPECT_EQ(figures(MindSporeFamily::kGather, {x(true), indices}, tensor({10, 32}, {1, 1})),
            (MindSporeFigures{0, 1024, 1064, 0}));
  EXPECT_EQ(figures(MindSporeFamily::kGather, {x(true), indices}, tensor({10, 32}, {1, 1}), false, true),
            (MindSporeFigures{40 * 32, 1024, 3 * 1024 + 7 * 40, 2 * 1280 + 6 * 40}));
  EXPECT_EQ(figures(MindSporeFamily::kNothing, {}, tensor({}, {})), MindSporeFigures{});
}

// ------------------------------------------------------------------------------------------------------ published
// choices

/// One strategy of one operator: its cost and the layouts of its tensors.
struct Candidate {
  std::string name;
  double objective = 0;
  std::vector<MindSporeTensorLayout> operands;
  MindSporeTensorLayout result;
};
struct Link {
  std::size_t from = 0;  // operator, or `kDataset` for the data set
  std::size_t to = 0;
  std::size_t operand = 0;
};
constexpr std::size_t kDataset = SIZE_MAX;

/// The smallest and second smallest objective over all combinations, and the names of the best.
struct Best {
  double least = 1e300;
  double second = 1e300;
  std::string names;
};
Best brute_force(const std::vector<std::vector<Candidate>>& operators, const std::vector<Link>& links) {
  Best best;
  std::vector<std::size_t> choice(operators.size(), 0);
  while (true) {
    double sum = 0;
    std::string names;
    for (std::size_t i = 0; i < operators.size(); ++i) {
      sum += operators[i][choice[i]].objective;
      names += operators[i][choice[i]].name + " ";
    }
    for (const Link& link : links) {
      const MindSporeTensorLayout& to = operators[link.to][choice[link.to]].operands[link.operand];
      MindSporeTensorLayout from = to;
      from.layout.tensor_map.assign(to.layout.tensor_map.size(), {});
      if (link.from != kDataset) from = operators[link.from][choice[link.from]].result;
      sum += mindspore_edge_cost(from, to, 4, false, {})->objective();
    }
    if (sum < best.least) {
      best.second = best.least;
      best.least = sum;
      best.names = names;
    } else if (sum < best.second) {
      best.second = sum;
    }
    std::size_t digit = operators.size();
    while (digit > 0 && ++choice[digit - 1] == operators[digit - 1].size()) choice[--digit] = 0;
    if (digit == 0) return best;
  }
}

std::vector<std::int64_t> cuts_of(std::int64_t devices) {
  std::vector<std::int64_t> cuts;
  for (std::int64_t cut = 1; cut <= devices; cut *= 2) cuts.push_back(cut);
  return cuts;
}

/// All strategies that use every device, and one that uses a single device if `with_one`.
std::vector<Candidate> matmul_candidates(const Shape& a, std::int64_t j, std::int64_t devices, bool with_one) {
  std::vector<Candidate> candidates;
  for (const std::int64_t m : cuts_of(devices)) {
    for (const std::int64_t k : cuts_of(devices)) {
      for (const std::int64_t n : cuts_of(devices)) {
        if (m * k * n != devices && !(with_one && m * k * n == 1)) continue;
        if (a[0] % m != 0 || a[1] % k != 0 || j % n != 0) continue;
        std::vector<std::int64_t> matrix = {m, k, n, devices / (m * k * n)};
        candidates.push_back({fmt::format("({},{},{})", m, k, n),
                              mindspore_operator_cost(matmul(a, j, m, k, n), devices).objective(),
                              {{mindspore_layout(matrix, {3, 2}), a}, {mindspore_layout(matrix, {2, 1}), {a[1], j}}},
                              {mindspore_layout(matrix, {3, 1}), {a[0], j}}});
      }
    }
  }
  return candidates;
}

/// Elementwise a and b to the result, with broadcasting; strategies of the result's dimensions.
std::vector<Candidate> arithmetic_candidates(const Shape& a, const Shape& b, const Shape& result, std::int64_t devices,
                                             bool with_one) {
  std::vector<Candidate> candidates;
  std::vector<std::int64_t> cuts(result.size(), 1);
  const std::function<void(std::size_t, std::int64_t)> fill = [&](std::size_t d, std::int64_t left) {
    if (d == result.size()) {
      if (left != 1 && !(with_one && left == devices)) return;
      std::vector<std::int64_t> matrix = cuts;
      matrix.push_back(left);
      MindSporeOperator op{MindSporeFamily::kArithmetic, {}, tensor(result, cuts), false, false};
      Candidate candidate;
      for (const std::int64_t cut : cuts)
        candidate.name += fmt::format("{}{}", candidate.name.empty() ? "(" : ",", cut);
      candidate.name += ")";
      for (const Shape& shape : {a, b}) {
        const std::size_t skipped = result.size() - shape.size();
        std::vector<std::int64_t> own;
        std::vector<std::int64_t> map;
        for (std::size_t i = 0; i < shape.size(); ++i) {
          own.push_back(shape[i] == 1 ? 1 : cuts[skipped + i]);
          map.push_back(shape[i] == 1 ? -1 : static_cast<std::int64_t>(result.size() - skipped - i));
        }
        op.operands.push_back(tensor(shape, own));
        candidate.operands.push_back({mindspore_layout(matrix, map), shape});
      }
      candidate.objective = mindspore_operator_cost(op, devices).objective();
      candidates.push_back(candidate);
      return;
    }
    for (const std::int64_t cut : cuts_of(left)) {
      if (result[d] % cut != 0) continue;
      cuts[d] = cut;
      fill(d + 1, left / cut);
    }
    cuts[d] = 1;
  };
  fill(0, devices);
  return candidates;
}

TEST(MindSporeGoldensTest, TwoMatMulsOn16Devices) {  // G1
  const std::vector<Link> between = {{0, 1, 0}};
  Best best =
      brute_force({matmul_candidates({128, 32}, 64, 16, false), matmul_candidates({128, 64}, 64, 16, false)}, between);
  EXPECT_EQ(best.names, "(16,1,1) (16,1,1) ");
  EXPECT_EQ(best.least, 27646);
  EXPECT_EQ(best.second, 2068480);
  // With the data set as an operator whose output is resharded on the way.
  best = brute_force({matmul_candidates({128, 32}, 64, 16, true), matmul_candidates({128, 64}, 64, 16, true)},
                     {{0, 1, 0}, {kDataset, 0, 0}, {kDataset, 0, 1}, {kDataset, 1, 1}});
  EXPECT_EQ(best.names, "(16,1,1) (16,1,1) ");
  EXPECT_EQ(best.least, 44030);
  EXPECT_EQ(best.second, 73728);
}

TEST(MindSporeGoldensTest, SharedWeightThroughCasts) {  // G3
  // w f16 goes through two Casts; m1 = x w, m2 = z w, m3 = m2 m1. Elementwise operators follow their operand, so both
  // Casts and the weights of m1 and m2 are sharded alike.
  const auto all = matmul_candidates({64, 64}, 64, 8, false);
  Best best;
  for (const std::int64_t k : cuts_of(8)) {
    for (const std::int64_t n : cuts_of(8 / k)) {
      const MindSporeOperator cast = {
          MindSporeFamily::kActivation, {tensor({64, 64}, {k, n}, true, 2)}, tensor({64, 64}, {k, n}), false, false};
      const std::vector<Candidate> casts = {{"cast", mindspore_operator_cost(cast, 8).objective(), {}, {}}};
      std::vector<Candidate> alike;
      for (const Candidate& candidate : all) {
        if (candidate.name == fmt::format("({},{},{})", 8 / (k * n), k, n)) alike.push_back(candidate);
      }
      const Best here = brute_force({casts, casts, alike, alike, all}, {{3, 4, 0}, {2, 4, 1}});
      const double second = std::min(std::max(best.least, here.least), std::min(best.second, here.second));
      if (here.least < best.least) best = here;
      best.second = second;
    }
  }
  EXPECT_EQ(best.names, "cast cast (8,1,1) (8,1,1) (8,1,1) ");
  EXPECT_NEAR(best.least, 4997526.6, 1e-6);
  EXPECT_NEAR(best.second, 5009408, 1e-6);
}

TEST(MindSporeGoldensTest, MatMulAndFloorDivOfAColumn) {  // G5
  Best best = brute_force(
      {matmul_candidates({64, 32}, 1, 8, false), arithmetic_candidates({64, 1}, {1, 64}, {64, 64}, 8, false)},
      {{0, 1, 0}});
  EXPECT_EQ(best.names, "(8,1,1) (8,1) ");
  EXPECT_EQ(best.least, 1438);
  EXPECT_EQ(best.second, 1230144);
  best =
      brute_force({matmul_candidates({64, 32}, 1, 8, true), arithmetic_candidates({64, 1}, {1, 64}, {64, 64}, 8, true)},
                  {{0, 1, 0}, {kDataset, 0, 0}, {kDataset, 0, 1}, {kDataset, 1, 1}});
  EXPECT_EQ(best.names, "(1,1,1) (1,1) ");
  EXPECT_EQ(best.least, 8832);
  EXPECT_EQ(best.second, 8863);
}

TEST(MindSporeGoldensTest, MatMulAndFloorDivOfACube) {  // G7
  Best best = brute_force({matmul_candidates({64, 32}, 32, 8, false),
                           arithmetic_candidates({64, 32}, {128, 64, 32}, {128, 64, 32}, 8, false)},
                          {{0, 1, 0}});
  EXPECT_EQ(best.names, "(4,1,2) (1,4,2) ");
  EXPECT_EQ(best.least, 136192);
  EXPECT_EQ(best.second, 137214);
  best = brute_force({matmul_candidates({64, 32}, 32, 8, true),
                      arithmetic_candidates({64, 32}, {128, 64, 32}, {128, 64, 32}, 8, true)},
                     {{0, 1, 0}, {kDataset, 0, 0}, {kDataset, 0, 1}, {kDataset, 1, 1}});
  EXPECT_EQ(best.names, "(1,1,1) (1,1,1) ");
  EXPECT_EQ(best.least, 1069056);
  EXPECT_EQ(best.second, 1193472);
}

TEST(MindSporeGoldensTest, MulIsDataParallelByTheTieBreakAlone) {  // G9
  const Shape shape = {16, 3, 128, 32};
  const Best best = brute_force({arithmetic_candidates(shape, shape, shape, 16, false)}, {});
  EXPECT_EQ(best.names, "(16,1,1,1) ");
  EXPECT_EQ(best.least, 98303);
  EXPECT_EQ(best.second, 98304);
}

}  // namespace
}  // namespace shardplan
