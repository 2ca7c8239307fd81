// Communication operators of models written per device: each is compared with its definition written out by hand, and
// its derivative with differences of the sum over all ranks.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/random.h"
#include "model/local_model.h"
#include "model/planned_model.h"
#include "model/read_model.h"
#include "program/local_program.h"
#include "simulator/local/local_executor.h"

namespace shardplan {
namespace {

constexpr std::uint64_t kSeed = 71;
constexpr std::size_t kRanks = 4;

/// All ranks' values of one tensor.
using ByRank = std::vector<TensorValues>;
using Definition = std::function<ByRank(const ByRank& x)>;

struct ExchangeCase {
  const char* name;
  const char* x;   // its shape
  const char* y;   // that of the result
  const char* op;  // the line of the operator
  Definition definition;
};

/// A loss that gives every element of y its own weight on each rank.
struct LocalRun {
  explicit LocalRun(const ExchangeCase& c) {
    const std::string text = fmt::format(
        "shardplan: 1\n"
        "parameters: {{x: {}}}\n"
        "inputs: {{v: {}}}\n"
        "operators:\n"
        "  y: {{{}, in: x}}\n"
        "  weighed: {{op: Mul, in: [y, v]}}\n"
        "  loss: {{op: ReduceSum, in: weighed}}\n"
        "outputs: [y]\n"
        "loss: loss\n"
        "training: {{optimizer: sgd}}\n"
        "parallel: {{parallel_mode: stand_alone, device_num: {}, mesh: {{dp: 2, mp: 2}}}}\n",
        c.x, c.y, c.op, kRanks);
    models = models_of_ranks(read_model_text(text, "m.yaml"), kRanks);
    for (const auto& model : models) graphs.push_back(planned_graph(*model));
    std::vector<const OperatorGraph*> pointers;
    for (const OperatorGraph& graph : graphs) pointers.push_back(&graph);
    program = local_program(std::move(pointers));
    Random random(kSeed);
    x = drawn("x", random);
    v = drawn("v", random);
  }

  ByRank drawn(const char* tensor, Random& random) const {
    ByRank values(kRanks);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      const Shape& shape = graphs[rank].tensor(*graphs[rank].find_tensor(tensor)).type.shape;
      values[rank].resize(static_cast<std::size_t>(num_elements(shape)));
      for (double& value : values[rank]) value = 2 * random.unit() - 1;
    }
    return values;
  }

  /// Runs a step and returns the value of `wanted` on each rank.
  ByRank run(const ByRank& of_x, const std::function<TensorId(const OperatorGraph&)>& wanted) const {
    LocalExecutor executor(program, kSeed);
    executor.run(0, [&](std::int64_t rank, TensorId id) {
      const auto r = static_cast<std::size_t>(rank);
      return graphs[r].tensor(id).name == "x" ? of_x[r] : v[r];
    });
    ByRank values;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      values.push_back(executor.value(static_cast<std::int64_t>(rank), wanted(graphs[rank])));
    }
    return values;
  }

  double loss(const ByRank& of_x) const {
    double sum = 0;
    for (const TensorValues& value : run(of_x, [](const OperatorGraph& graph) { return *graph.loss(); })) {
      sum += value[0];
    }
    return sum;
  }

  std::vector<std::shared_ptr<const Model>> models;
  std::vector<OperatorGraph> graphs;
  LocalProgram program;
  ByRank x, v;
};

// ---- definitions

/// Each member of a group of ranks gets `combine` over the members' elements.
Definition reduced(std::vector<std::vector<std::size_t>> groups, double (*combine)(double, double)) {
  return [=](const ByRank& x) {
    ByRank y = x;
    for (const auto& group : groups) {
      for (const std::size_t rank : group) {
        for (std::size_t i = 0; i < x[0].size(); ++i) {
          double all = x[group[0]][i];
          for (std::size_t k = 1; k < group.size(); ++k) all = combine(all, x[group[k]][i]);
          y[rank][i] = all;
        }
      }
    }
    return y;
  };
}

double plus(double a, double b) { return a + b; }
double times(double a, double b) { return a * b; }
double larger(double a, double b) { return a > b ? a : b; }
double smaller(double a, double b) { return a < b ? a : b; }

const std::vector<std::vector<std::size_t>> kAll = {{0, 1, 2, 3}};

/// x of [4, 6] on each rank.
ByRank gathered(const ByRank& x) {
  ByRank y(kRanks);
  for (TensorValues& own : y) {
    for (std::size_t row = 0; row < 16; ++row) {
      for (std::size_t column = 0; column < 6; ++column) own.push_back(x[row / 4][row % 4 * 6 + column]);
    }
  }
  return y;
}

/// In the groups (3, 1) and (2, 0), in that order: the first two rows of the sum, and the last two.
ByRank sums_scattered(const ByRank& x) {
  ByRank y(kRanks);
  const auto rows = [&](std::size_t a, std::size_t b, std::size_t begin) {
    TensorValues part;
    for (std::size_t i = begin * 6; i < begin * 6 + 12; ++i) part.push_back(x[a][i] + x[b][i]);
    return part;
  };
  y[3] = rows(3, 1, 0);
  y[1] = rows(3, 1, 2);
  y[2] = rows(2, 0, 0);
  y[0] = rows(2, 0, 2);
  return y;
}

/// [4, 6] split into four blocks of rows, put together as columns: [1, 24].
ByRank exchanged_all(const ByRank& x) {
  ByRank y(kRanks);
  for (std::size_t to = 0; to < kRanks; ++to) {
    for (std::size_t from = 0; from < kRanks; ++from) {
      for (std::size_t column = 0; column < 6; ++column) y[to].push_back(x[from][to * 6 + column]);
    }
  }
  return y;
}

ByRank from_the_left(const ByRank& x) { return {x[3], x[0], x[1], x[2]}; }
ByRank of_the_root(const ByRank& x) { return {x[2], x[2], x[2], x[2]}; }
/// Rank 1 receives from rank 0, the others receive nothing.
ByRank one_send(const ByRank& x) {
  ByRank y(kRanks, TensorValues(x[0].size(), 0));
  y[1] = x[0];
  return y;
}

/// Ranks in a ring of rows: x of [1, 2, 3, 2] gets two rows from above and one from below.
ByRank rows_around(const ByRank& x) {
  ByRank y(kRanks);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t channel = 0; channel < 2; ++channel) {
      for (int row = -2; row < 4; ++row) {
        const std::size_t owner = row < 0 ? (rank + 3) % 4 : row > 2 ? (rank + 1) % 4 : rank;
        const auto own_row = static_cast<std::size_t>((row + 3) % 3);
        for (std::size_t column = 0; column < 2; ++column) {
          y[rank].push_back(x[owner][channel * 6 + own_row * 2 + column]);
        }
      }
    }
  }
  return y;
}

/// Ranks on a 2 x 2 torus, x of [1, 1, 2, 3]: one row and column of every neighbour, corners too.
ByRank torus(const ByRank& x) {
  ByRank y(kRanks);
  for (int rank = 0; rank < 4; ++rank) {
    for (int row = -1; row < 3; ++row) {
      for (int column = -1; column < 4; ++column) {
        const int i = (rank / 2 * 2 + row + 4) % 4;  // in the whole tensor of [4, 6]
        const int j = (rank % 2 * 3 + column + 6) % 6;
        y[static_cast<std::size_t>(rank)].push_back(
            x[static_cast<std::size_t>(i / 2 * 2 + j / 3)][static_cast<std::size_t>(i % 2 * 3 + j % 3)]);
      }
    }
  }
  return y;
}

const ExchangeCase kCases[] = {
    {"AllReduceSum", "[4, 6]", "[4, 6]", "op: AllReduce", reduced(kAll, plus)},
    {"AllReduceMax", "[4, 6]", "[4, 6]", "op: AllReduce, reduce: max", reduced(kAll, larger)},
    {"AllReduceMin", "[4, 6]", "[4, 6]", "op: AllReduce, reduce: min", reduced(kAll, smaller)},
    {"AllReduceProd", "[4, 6]", "[4, 6]", "op: AllReduce, reduce: prod", reduced(kAll, times)},
    {"AllReduceInGroups", "[4, 6]", "[4, 6]", "op: AllReduce, group: [[0, 3], [1, 2]]",
     reduced({{0, 3}, {1, 2}}, plus)},
    {"AllReduceAlongAnAxis", "[4, 6]", "[4, 6]", "op: AllReduce, group: dp", reduced({{0, 2}, {1, 3}}, plus)},
    {"AllReduceWithExpressions", "[4, 6]", "[4, 6]", "op: AllReduce, group: [rank//2*2, rank//2*2+1]",
     reduced({{0, 1}, {2, 3}}, plus)},
    {"AllGather", "[4, 6]", "[16, 6]", "op: AllGather", gathered},
    {"ReduceScatter", "[4, 6]", "[2, 6]", "op: ReduceScatter, group: [[3, 1], [2, 0]]", sums_scattered},
    {"Broadcast", "[4, 6]", "[4, 6]", "op: Broadcast, root_rank: 2", of_the_root},
    {"AlltoAll", "[4, 6]", "[1, 24]", "op: AlltoAll, split_count: 4, split_dim: 0, concat_dim: 1", exchanged_all},
    {"NeighborExchange", "[4, 6]", "[4, 6]",
     "op: NeighborExchange, send_rank_ids: [(rank+1)%4], recv_rank_ids: [(rank-1)%4], recv_shapes: [[4, 6]]",
     from_the_left},
    {"NeighborExchangeOfOne", "[4, 6]", "[4, 6]",
     "op: NeighborExchange, send_rank_ids: [(3-rank)//3*2-1], recv_rank_ids: "
     "[0-(rank-1)*(rank-1)%2-(rank//2)%2*(rank%2)], "
     "recv_shapes: [[4, 6]]",
     one_send},
    {"NeighborExchangeV2", "[1, 2, 3, 2]", "[1, 2, 6, 2]",
     "op: NeighborExchangeV2, send_rank_ids: [(rank-1)%4, -1, -1, -1, (rank+1)%4, -1, -1, -1], send_lens: [1, 2, 0, "
     "0], "
     "recv_rank_ids: [(rank-1)%4, -1, -1, -1, (rank+1)%4, -1, -1, -1], recv_lens: [2, 1, 0, 0]",
     rows_around},
    {"NeighborExchangeV2OnATorus", "[1, 1, 2, 3]", "[1, 1, 4, 5]",
     "op: NeighborExchangeV2, send_rank_ids: [(rank+2)%4, 3-rank, rank+1-rank%2*2, 3-rank, (rank+2)%4, 3-rank, "
     "rank+1-rank%2*2, 3-rank], send_lens: [1, 1, 1, 1], recv_rank_ids: [(rank+2)%4, 3-rank, rank+1-rank%2*2, 3-rank, "
     "(rank+2)%4, 3-rank, rank+1-rank%2*2, 3-rank], recv_lens: [1, 1, 1, 1]",
     torus},
};

void PrintTo(const ExchangeCase& c, std::ostream* out) { *out << c.name; }

class ExchangeTest : public testing::TestWithParam<ExchangeCase> {};

TEST_P(ExchangeTest, IsItsDefinition) {
  const LocalRun run(GetParam());
  const ByRank found = run.run(run.x, [](const OperatorGraph& graph) { return *graph.find_tensor("y"); });
  const ByRank expected = GetParam().definition(run.x);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(found[rank].size(), expected[rank].size()) << "rank " << rank;
    for (std::size_t i = 0; i < found[rank].size(); ++i) {
      EXPECT_NEAR(found[rank][i], expected[rank][i], 1e-15) << "rank " << rank << " element " << i;
    }
  }
}

TEST_P(ExchangeTest, DerivativeIsThatOfTheSumOverRanks) {
  const LocalRun run(GetParam());
  const ByRank gradients = run.run(run.x, [](const OperatorGraph& graph) {
    std::optional<TensorId> found;
    for (const TensorId id : graph.tensors().ids()) {
      if (graph.tensor(id).gradient_of) found = id;
    }
    return *found;
  });
  constexpr double kStep = 1e-6;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    for (std::size_t i = 0; i < run.x[rank].size(); ++i) {
      ByRank moved = run.x;
      moved[rank][i] += kStep;
      const double up = run.loss(moved);
      moved[rank][i] -= 2 * kStep;
      const double down = run.loss(moved);
      EXPECT_NEAR(gradients[rank][i], (up - down) / (2 * kStep), 1e-8) << "rank " << rank << " element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExchangeTest, testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// Two inputs for one rank arrive in the order in which they are listed.
TEST(ExchangeOrderTest, SendsToOneRankKeepTheirOrder) {
  const std::string text =
      "shardplan: 1\n"
      "inputs: {a: [2], b: [3]}\n"
      "operators:\n"
      "  both: {op: NeighborExchange, in: [a, b], send_rank_ids: [1-rank, 1-rank], recv_rank_ids: [1-rank, 1-rank],\n"
      "         recv_shapes: [[2], [3]], send_shapes: [[2], [3]], out: [c, d]}\n"
      "parallel: {parallel_mode: hybrid_parallel, device_num: 2}\n";
  const auto models = models_of_ranks(read_model_text(text, "m.yaml"), 2);
  const LocalProgram program = local_program({&models[0]->graph, &models[1]->graph});
  LocalExecutor executor(program, 0);
  executor.run(0, [&](std::int64_t rank, TensorId id) {
    const double base = rank == 0 ? 10 : 20;
    return models[0]->graph.tensor(id).name == "a" ? TensorValues{base, base + 1}
                                                   : TensorValues{base + 2, base + 3, base + 4};
  });
  EXPECT_EQ(executor.value(0, *models[0]->graph.find_tensor("c")), (TensorValues{20, 21}));
  EXPECT_EQ(executor.value(0, *models[0]->graph.find_tensor("d")), (TensorValues{22, 23, 24}));
  EXPECT_EQ(executor.value(1, *models[1]->graph.find_tensor("d")), (TensorValues{12, 13, 14}));
}

/// A product with a factor of zero changes with that factor, and only if there is no second one.
TEST(ExchangeZeroTest, ProductsOfZerosHaveDerivatives) {
  LocalRun run({"", "[3]", "[3]", "op: AllReduce, reduce: prod", {}});
  run.x = {{2, 0, 3}, {0, 0, 5}, {4, 7, 1}, {-1, 3, 2}};
  run.v = {{1, 1, 1}, {1, 2, 1}, {1, 1, 3}, {1, 1, 1}};
  const ByRank gradients = run.run(run.x, [](const OperatorGraph& graph) {
    std::optional<TensorId> found;
    for (const TensorId id : graph.tensors().ids()) {
      if (graph.tensor(id).gradient_of) found = id;
    }
    return *found;
  });
  // The sum of the weights v (4, 5, 6) times the product of the others.
  EXPECT_EQ(gradients, (ByRank{{0, 0, 6 * 10}, {4 * -8, 0, 6 * 6}, {0, 0, 6 * 30}, {0, 0, 6 * 15}}));
}

}  // namespace
}  // namespace shardplan
