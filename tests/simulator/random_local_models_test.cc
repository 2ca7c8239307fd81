// Random models written per device: chains of communications over random groups, between operators that differ by rank.
// The expected result of each rank is computed from the definitions alone, and gradients are compared with differences
// of it. If a rank omits a communication, that is an error, whatever the other ranks do.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "base/random.h"
#include "model/local_model.h"
#include "model/planned_model.h"
#include "model/read_model.h"
#include "program/local_program.h"
#include "simulator/local/local_executor.h"

namespace shardplan {
namespace {

using Group = std::vector<std::size_t>;

/// One rank's [rows, columns].
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;

  double& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
  double at(std::size_t i, std::size_t j) const { return values[i * columns + j]; }
};
using Matrices = std::vector<Matrix>;

Matrices matrices(std::size_t ranks, std::size_t rows, std::size_t columns) {
  return Matrices(ranks, Matrix{rows, columns, std::vector<double>(rows * columns, 0)});
}

/// A chain of steps y0 = x, y1, ..., each a line of the file and its definition.
class RandomModel {
 public:
  explicit RandomModel(std::uint64_t seed, bool is_smooth) : random_(seed), is_smooth_(is_smooth) {
    constexpr std::size_t kCounts[] = {1, 2, 3, 4, 6, 8};
    num_ranks = kCounts[random_.below(6)];
    rows_ = num_ranks * (1 + random_.below(2));
    columns_ = num_ranks * (1 + random_.below(2));
    x = drawn();
    const std::size_t length = 2 + random_.below(5);
    for (std::size_t step = 0; step < length; ++step) add_step();
    v = drawn();
  }

  /// `left_out`: a rank that does not take part in a communication over all ranks.
  std::string text(std::optional<std::size_t> left_out = {}) const {
    std::string extra;
    if (left_out) {
      extra = "  side: {op: AllReduce, in: x, ranks: [";
      for (std::size_t rank = 0; rank < num_ranks; ++rank) {
        if (rank != *left_out) extra += fmt::format("{}{}", extra.ends_with('[') ? "" : ", ", rank);
      }
      extra += "]}\n";
    }
    return fmt::format(
        "shardplan: 1\n"
        "parameters: {{x: [{}, {}]}}\n"
        "inputs: {{v: [{}, {}]}}\n"
        "{}"
        "operators:\n{}{}"
        "  weighed: {{op: Mul, in: [y{}, v]}}\n"
        "  loss: {{op: ReduceSum, in: weighed}}\n"
        "outputs: [y{}{}]\n"
        "loss: loss\n"
        "training: {{optimizer: sgd}}\n"
        "parallel: {{parallel_mode: stand_alone, device_num: {}}}\n",
        x[0].rows, x[0].columns, v[0].rows, v[0].columns,
        lines_.find(", k]") == std::string::npos ? "" : "constants: {k: rank+1}\n", lines_, extra, steps_.size(),
        steps_.size(), left_out ? ", side" : "", num_ranks);
  }

  Matrices result(Matrices value) const {
    for (const auto& step : steps_) value = step(value);
    return value;
  }

  /// The sum of all ranks' losses.
  double loss(const Matrices& of_x) const {
    const Matrices y = result(of_x);
    double sum = 0;
    for (std::size_t rank = 0; rank < num_ranks; ++rank) {
      for (std::size_t i = 0; i < y[rank].values.size(); ++i) sum += y[rank].values[i] * v[rank].values[i];
    }
    return sum;
  }

  std::string last() const { return fmt::format("y{}", steps_.size()); }

  std::size_t num_ranks = 0;
  Matrices x, v;

 private:
  Matrices drawn() {
    Matrices all = matrices(num_ranks, rows_, columns_);
    for (Matrix& matrix : all) {
      for (double& value : matrix.values) value = 2 * random_.unit() - 1;
    }
    return all;
  }

  /// All ranks in groups of one size, in random order.
  std::vector<Group> groups() {
    Group ranks(num_ranks);
    std::iota(ranks.begin(), ranks.end(), 0);
    for (std::size_t i = num_ranks; i > 1; --i) std::swap(ranks[i - 1], ranks[random_.below(i)]);
    std::vector<std::size_t> sizes;
    for (std::size_t size = 1; size <= num_ranks; ++size) {
      if (num_ranks % size == 0) sizes.push_back(size);
    }
    const std::size_t size = sizes[random_.below(sizes.size())];
    std::vector<Group> groups;
    for (std::size_t first = 0; first < num_ranks; first += size) {
      groups.emplace_back(ranks.begin() + static_cast<std::ptrdiff_t>(first),
                          ranks.begin() + static_cast<std::ptrdiff_t>(first + size));
    }
    return groups;
  }

  static std::string to_text(const std::vector<Group>& groups) {
    std::string text = "[";
    for (const Group& group : groups) {
      text += text.ends_with(']') ? ", [" : "[";
      for (std::size_t i = 0; i < group.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", group[i]);
      text += "]";
    }
    return text + "]";
  }

  void add(const std::string& op, std::function<Matrices(const Matrices&)> definition, const std::string& beside = "") {
    const std::size_t n = steps_.size();
    lines_ += fmt::format("  y{}: {{{}, in: {}{}}}\n", n + 1, op, beside.empty() ? "" : "[",
                          n == 0 ? "x" : fmt::format("y{}", n));
    if (!beside.empty()) lines_.insert(lines_.size() - 2, ", " + beside + "]");
    steps_.push_back(std::move(definition));
  }

  void add_step() {
    switch (random_.below(8)) {
      case 0:
        return add_reduction();
      case 1:
        return add_gather();
      case 2:
        return add_scatter();
      case 3:
        return add_broadcast();
      case 4:
        return add_transposition();
      case 5:
        return add_ring();
      case 6:
        return add("op: Tanh", [](Matrices value) {
          for (Matrix& matrix : value) {
            for (double& number : matrix.values) number = std::tanh(number);
          }
          return value;
        });
      default:
        return add(
            "op: Mul",
            [](Matrices value) {
              for (std::size_t rank = 0; rank < value.size(); ++rank) {
                for (double& number : value[rank].values) number *= static_cast<double>(rank + 1);
              }
              return value;
            },
            "k");
    }
  }

  void add_reduction() {
    const auto parts = groups();
    const std::size_t kind = random_.below(is_smooth_ ? 2 : 4);  // equal numbers have no derivative of max
    constexpr const char* kNames[] = {"sum", "prod", "max", "min"};
    add(fmt::format("op: AllReduce, reduce: {}, group: {}", kNames[kind], to_text(parts)), [=](const Matrices& before) {
      Matrices value = before;
      for (const Group& group : parts) {
        for (std::size_t i = 0; i < before[0].values.size(); ++i) {
          double all = before[group[0]].values[i];
          for (std::size_t m = 1; m < group.size(); ++m) {
            const double other = before[group[m]].values[i];
            all = kind == 0   ? all + other
                  : kind == 1 ? all * other
                  : kind == 2 ? std::max(all, other)
                              : std::min(all, other);
          }
          for (const std::size_t rank : group) value[rank].values[i] = all;
        }
      }
      return value;
    });
  }

  void add_gather() {
    const auto parts = groups();
    if (rows_ * parts[0].size() > 200) return;
    const std::size_t rows = rows_;
    rows_ *= parts[0].size();
    add(fmt::format("op: AllGather, group: {}", to_text(parts)), [=](const Matrices& before) {
      Matrices value = matrices(before.size(), rows * parts[0].size(), before[0].columns);
      for (const Group& group : parts) {
        for (const std::size_t rank : group) {
          for (std::size_t i = 0; i < value[rank].rows; ++i) {
            for (std::size_t j = 0; j < value[rank].columns; ++j) {
              value[rank].at(i, j) = before[group[i / rows]].at(i % rows, j);
            }
          }
        }
      }
      return value;
    });
  }

  void add_scatter() {
    const auto parts = groups();
    if (rows_ % parts[0].size() != 0) return;
    rows_ /= parts[0].size();
    const std::size_t rows = rows_;
    add(fmt::format("op: ReduceScatter, group: {}", to_text(parts)), [=](const Matrices& before) {
      Matrices value = matrices(before.size(), rows, before[0].columns);
      for (const Group& group : parts) {
        for (std::size_t m = 0; m < group.size(); ++m) {
          for (std::size_t i = 0; i < rows; ++i) {
            for (std::size_t j = 0; j < before[0].columns; ++j) {
              for (const std::size_t from : group) value[group[m]].at(i, j) += before[from].at(m * rows + i, j);
            }
          }
        }
      }
      return value;
    });
  }

  void add_broadcast() {
    const std::size_t root = random_.below(num_ranks);
    add(fmt::format("op: Broadcast, root_rank: {}", root),
        [=](const Matrices& before) { return Matrices(before.size(), before[root]); });
  }

  /// AlltoAll that splits rows and concatenates columns, or the other way round.
  void add_transposition() {
    const auto parts = groups();
    const std::size_t size = parts[0].size();
    const bool cuts_rows = random_.below(2) == 0;
    const std::size_t cut = cuts_rows ? rows_ : columns_;
    if (cut % size != 0) return;
    rows_ = cuts_rows ? rows_ / size : rows_ * size;
    columns_ = cuts_rows ? columns_ * size : columns_ / size;
    const std::size_t rows = rows_;
    const std::size_t columns = columns_;
    add(fmt::format("op: AlltoAll, split_count: {}, split_dim: {}, concat_dim: {}, group: {}", size, cuts_rows ? 0 : 1,
                    cuts_rows ? 1 : 0, to_text(parts)),
        [=](const Matrices& before) {
          Matrices value = matrices(before.size(), rows, columns);
          for (const Group& group : parts) {
            for (std::size_t m = 0; m < size; ++m) {
              for (std::size_t i = 0; i < rows; ++i) {
                for (std::size_t j = 0; j < columns; ++j) {
                  const std::size_t width = before[0].columns;
                  const std::size_t height = before[0].rows;
                  value[group[m]].at(i, j) = cuts_rows ? before[group[j / width]].at(m * rows + i, j % width)
                                                       : before[group[i / height]].at(i % height, m * columns + j);
                }
              }
            }
          }
          return value;
        });
  }

  void add_ring() {
    const std::size_t by = random_.below(num_ranks);
    add(fmt::format("op: NeighborExchange, send_rank_ids: [(rank+{})%{}], recv_rank_ids: [(rank-{})%{}], recv_shapes: "
                    "[[{}, {}]]",
                    by, num_ranks, by, num_ranks, rows_, columns_),
        [=](const Matrices& before) {
          Matrices value = before;
          for (std::size_t rank = 0; rank < before.size(); ++rank) value[(rank + by) % before.size()] = before[rank];
          return value;
        });
  }

  Random random_;
  bool is_smooth_;
  std::size_t rows_ = 0, columns_ = 0;
  std::string lines_;
  std::vector<std::function<Matrices(const Matrices&)>> steps_;
};

struct Graphs {
  explicit Graphs(const std::string& text) {
    const Model model = read_model_text(text, "m.yaml");
    models = models_of_ranks(model, model.local->group_size);
    for (const auto& own : models) graphs.push_back(planned_graph(*own));
  }
  LocalProgram program() const {
    std::vector<const OperatorGraph*> pointers;
    for (const OperatorGraph& graph : graphs) pointers.push_back(&graph);
    return local_program(std::move(pointers));
  }

  std::vector<std::shared_ptr<const Model>> models;
  std::vector<OperatorGraph> graphs;
};

void expect_near(double found, double should_be, double scale, double relative, const std::string& what) {
  EXPECT_LE(std::abs(found - should_be), relative * std::max(1.0, scale)) << what << ": " << found << ", " << should_be;
}

constexpr std::uint64_t kFirstSeed = 1;
constexpr std::uint64_t kNumModels = 60;

TEST(RandomLocalModelsTest, RanksComputeTheDefinitionsAndTheirDerivatives) {
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumModels && !HasFailure(); ++seed) {
    const bool is_smooth = seed % 3 != 0;
    const RandomModel model(seed, is_smooth);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, model.text()));
    const Graphs graphs(model.text());
    const LocalProgram program = graphs.program();
    LocalExecutor executor(program, 0);
    executor.run(0, [&](std::int64_t rank, TensorId id) {
      const auto r = static_cast<std::size_t>(rank);
      return graphs.graphs[r].tensor(id).name == "x" ? model.x[r].values : model.v[r].values;
    });
    const Matrices expected = model.result(model.x);
    for (std::size_t rank = 0; rank < model.num_ranks; ++rank) {
      const OperatorGraph& graph = graphs.graphs[rank];
      const TensorValues& found = executor.value(static_cast<std::int64_t>(rank), *graph.find_tensor(model.last()));
      ASSERT_EQ(found.size(), expected[rank].values.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        const double should_be = expected[rank].values[i];
        expect_near(found[i], should_be, std::abs(should_be), 1e-12, fmt::format("rank {}, element {}", rank, i));
      }
      if (!is_smooth) continue;
      for (const TensorId id : graph.tensors().ids()) {
        if (!graph.tensor(id).gradient_of) continue;
        const TensorValues& gradient = executor.value(static_cast<std::int64_t>(rank), id);
        for (std::size_t i = 0; i < gradient.size(); i += 1 + gradient.size() / 5) {
          constexpr double kStep = 1e-5;
          Matrices moved = model.x;
          moved[rank].values[i] += kStep;
          const double up = model.loss(moved);
          moved[rank].values[i] -= 2 * kStep;
          const double down = model.loss(moved);
          expect_near(gradient[i], (up - down) / (2 * kStep), std::abs(up) + std::abs(gradient[i]), 1e-5,
                      fmt::format("gradient of rank {}, element {}", rank, i));
        }
      }
    }
  }
}

TEST(RandomLocalModelsTest, ARankThatLeavesOutACommunicationIsAnError) {
  std::size_t cases = 0;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kNumModels; ++seed) {
    const RandomModel model(seed, true);
    if (model.num_ranks == 1) continue;
    const std::size_t left_out = seed % model.num_ranks;
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, model.text(left_out)));
    const Graphs graphs(model.text(left_out));
    ++cases;
    try {
      graphs.program();
      FAIL() << "runs";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("m.yaml:"), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(cases, kNumModels / 2);
}

}  // namespace
}  // namespace shardplan
