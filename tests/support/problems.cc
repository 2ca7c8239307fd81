#include "tests/support/problems.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace shardplan {

void for_each_choice(const StrategyProblem& problem, const std::function<void(const Choice&)>& visit) {
  Choice choice;
  choice.strategy.resize(problem.nodes.size(), StrategyId(0));
  for (;;) {
    visit(choice);
    std::size_t node = 0;
    for (; node < problem.nodes.size(); ++node) {
      StrategyId& strategy = choice.strategy[NodeId(node)];
      strategy = StrategyId(strategy.value() + 1);
      if (strategy.value() < problem.num_strategies(NodeId(node))) break;
      strategy = StrategyId(0);
    }
    if (node == problem.nodes.size()) return;
  }
}

std::optional<std::int64_t> brute_force(const StrategyProblem& problem, const Objective& objective) {
  std::optional<std::int64_t> best;
  for_each_choice(problem, [&](const Choice& choice) {
    const Evaluation evaluation = evaluate(problem, choice);
    if (evaluation.feasible && (!best || evaluation.value(objective) < *best)) best = evaluation.value(objective);
  });
  return best;
}

StrategyProblem random_problem(Random& random, const RandomProblemOptions& options) {
  StrategyProblem problem;
  problem.name = "random";
  const std::size_t count = 1 + random.below(options.max_nodes);
  const auto cost = [&] {
    return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(options.largest_cost) + 1));
  };
  std::vector<std::int64_t> least(options.times, 0), most(options.times, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t strategies = random.below(4) == 0 ? 1 : 1 + random.below(options.max_strategies);
    StrategyTable table;
    for (std::size_t s = 0; s < strategies; ++s) {
      table.costs.push_back({cost(), random.below(2) == 0 ? 0 : cost()});
      if (random.below(40) == 0 && strategies > 1) table.costs.back().communication = kForbidden;
    }
    ProblemNode node{problem.strategy_tables.push_back(table), {}};
    for (std::uint64_t uses = random.below(3); uses > 0; --uses) {
      UsageTable usage;
      for (std::size_t s = 0; s < strategies; ++s)
        usage.bytes.push_back(random.below(5) == 0 ? 0 : static_cast<Bytes>(random.below(10)));
      MemoryUse use;
      use.begin = static_cast<std::uint32_t>(random.below(options.times + 1));
      use.end = static_cast<std::uint32_t>(random.below(options.times + 1));
      if (use.begin > use.end && random.below(4) != 0) std::swap(use.begin, use.end);
      for (std::uint32_t time = use.begin; time < use.end; ++time) {
        least[time] += *std::min_element(usage.bytes.begin(), usage.bytes.end());
        most[time] += *std::max_element(usage.bytes.begin(), usage.bytes.end());
      }
      use.usage = problem.usage_tables.push_back(usage);
      node.memory.push_back(use);
    }
    problem.nodes.push_back(node);
  }
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if ((a == b && random.below(20) != 0) || random.below(200) >= static_cast<std::uint64_t>(options.edge_percent))
        continue;
      const NodeId from(a);
      const NodeId to(b);
      CostMatrix matrix{static_cast<std::uint32_t>(problem.num_strategies(from)),
                        static_cast<std::uint32_t>(problem.num_strategies(to)),
                        {}};
      const std::uint64_t kind = random.below(5);
      for (std::uint32_t row = 0; row < matrix.rows; ++row) {
        const std::int64_t row_cost = cost();
        for (std::uint32_t column = 0; column < matrix.columns; ++column) {
          std::int64_t entry = cost();
          if (kind == 0) entry = row_cost + 3 * column;                                   // separable
          if (kind == 1) entry = column == row % matrix.columns ? row_cost : kForbidden;  // a function of the row
          if (kind >= 2 && random.below(100) < static_cast<std::uint64_t>(options.forbidden_percent))
            entry = kForbidden + 5;
          matrix.costs.push_back(entry);
        }
      }
      problem.edges.push_back({from, to, problem.matrices.push_back(matrix)});
    }
  }
  for (std::uint32_t time = 0; time < options.times; ++time) {
    problem.memory_limits.push_back(least[time] + (most[time] - least[time]) * options.limit_percent / 100);
  }
  return problem;
}

RandomProblemOptions random_options(Random& random) {
  RandomProblemOptions options;
  options.max_nodes = 1 + random.below(7);
  options.max_strategies = 1 + random.below(5);
  while (options.max_nodes > 5 && options.max_strategies > 3) --options.max_strategies;
  const int forbidden[] = {0, 10, 30, 60};
  options.forbidden_percent = forbidden[random.below(4)];
  options.edge_percent = 20 + static_cast<int>(random.below(80));
  const int limits[] = {-5, 0, 10, 20, 35, 50, 70, 150};
  options.limit_percent = limits[random.below(8)];
  const std::int64_t costs[] = {1, 3, 20, 1000, 1'000'000'000'000};
  options.largest_cost = costs[random.below(5)];
  options.times = static_cast<std::uint32_t>(random.below(8));
  return options;
}

StrategyProblem layered_problem(const LayeredProblemOptions& options) {
  StrategyProblem problem;
  problem.name = fmt::format("{} layers", options.layers);
  const std::size_t n = options.strategies;
  Random random(7);
  // Strategies have one of a few layouts on either side; the cost between two nodes depends on layouts only, as that of
  // redistributions does.
  const std::size_t layouts = std::max<std::size_t>(2, n / 6);
  const auto layout = [&](std::size_t kind, std::size_t strategy, bool result) {
    return mix(kind * 1000003 + strategy * 2 + (result ? 1 : 0)) % layouts;
  };
  constexpr std::size_t kKinds = 7;
  std::vector<StrategyTableId> tables;
  std::vector<UsageTableId> usages;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    StrategyTable table;
    UsageTable usage;
    for (std::size_t s = 0; s < n; ++s) {
      table.costs.push_back(
          {static_cast<std::int64_t>(1000 + random.below(100000)), static_cast<std::int64_t>(random.below(30000))});
      usage.bytes.push_back(static_cast<Bytes>(1 + random.below(1000)));
    }
    tables.push_back(problem.strategy_tables.push_back(table));
    usages.push_back(problem.usage_tables.push_back(usage));
  }
  std::vector<std::int64_t> move(layouts * layouts);
  for (std::size_t a = 0; a < layouts; ++a) {
    for (std::size_t b = 0; b < layouts; ++b)
      move[a * layouts + b] = a == b ? 0 : static_cast<std::int64_t>(5000 + random.below(60000));
  }
  std::vector<MatrixId> matrices(kKinds * kKinds * 2);
  std::vector<bool> is_made(matrices.size(), false);
  const auto matrix = [&](std::size_t from, std::size_t to, bool tied) {
    const std::size_t at = (from * kKinds + to) * 2 + (tied ? 1 : 0);
    if (!is_made[at]) {
      CostMatrix item{static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(n), {}};
      for (std::size_t a = 0; a < n; ++a) {
        for (std::size_t b = 0; b < n; ++b) {
          item.costs.push_back(tied ? (a == b ? 0 : kForbidden)
                                    : move[layout(from, a, true) * layouts + layout(to, b, false)]);
        }
      }
      matrices[at] = problem.matrices.push_back(std::move(item));
      is_made[at] = true;
    }
    return matrices[at];
  };
  const std::size_t passes = options.training ? 2 : 1;
  const std::size_t forward = options.layers * options.width;
  const auto total = static_cast<std::uint32_t>(passes * forward);
  const auto kind_of = [&](std::size_t node) { return node % options.width % kKinds; };
  for (std::size_t node = 0; node < passes * forward; ++node) {
    const std::size_t kind = kind_of(node);
    const auto begin = static_cast<std::uint32_t>(node);
    const std::uint32_t end = options.training && node < forward ? total - begin : std::min(begin + 3, total);
    problem.nodes.push_back({tables[kind], {{usages[kind], begin, end}}});
    if (node == 0) continue;
    const bool tied = kind == 3 && node % options.width > 0;
    problem.edges.push_back({NodeId(node - 1), NodeId(node), matrix(kind_of(node - 1), kind, tied)});
    if (kind == 5 && node % options.width >= 4)
      problem.edges.push_back({NodeId(node - 4), NodeId(node), matrix(kind_of(node - 4), kind, false)});
    if (node >= forward && kind != 3 && kind != 1) {
      const std::size_t made = 2 * forward - 1 - node;
      problem.edges.push_back({NodeId(made), NodeId(node), matrix(kind_of(made), kind, false)});
    }
  }
  std::vector<Bytes> least(total + 1, 0), most(total + 1, 0);
  for (const ProblemNode& node : problem.nodes) {
    const std::vector<Bytes>& bytes = problem.usage_tables[node.memory[0].usage].bytes;
    for (std::uint32_t time : {node.memory[0].begin, node.memory[0].end}) {
      const Bytes sign = time == node.memory[0].begin ? 1 : -1;
      least[time] += sign * *std::min_element(bytes.begin(), bytes.end());
      most[time] += sign * *std::max_element(bytes.begin(), bytes.end());
    }
  }
  Bytes least_peak = 0, most_peak = 0, l = 0, m = 0;
  for (std::uint32_t time = 0; time < total; ++time) {
    least_peak = std::max(least_peak, l += least[time]);
    most_peak = std::max(most_peak, m += most[time]);
  }
  problem.memory_limits.assign(total, least_peak + (most_peak - least_peak) * options.limit_percent / 100);
  return problem;
}

RepeatedProblem random_repeated_problem(Random& random, std::size_t copies, std::size_t width,
                                        std::size_t max_strategies, int limit_percent) {
  RepeatedProblem result;
  StrategyProblem& problem = result.problem;
  problem.name = "repeated";
  // Node 0, the nodes of the layers, the last node. It runs at time 1 + k*width + i forward, and backward in reverse.
  const std::size_t before = 1, behind = 1;
  const std::size_t forward_end = before + copies * width;
  const std::size_t num_times = 2 * forward_end + behind + 1;
  std::vector<std::size_t> strategies;  // of the node before the layers, those of a layer, of the node after them
  for (std::size_t i = 0; i < width + 2; ++i) strategies.push_back(1 + random.below(max_strategies));
  const auto table = [&](std::size_t size) {
    StrategyTable made;
    for (std::size_t i = 0; i < size; ++i) {
      made.costs.push_back({static_cast<std::int64_t>(random.below(20)), static_cast<std::int64_t>(random.below(20))});
    }
    if (size > 1 && random.below(10) == 0) made.costs.back().communication = kForbidden;
    return problem.strategy_tables.push_back(made);
  };
  const auto usage = [&](std::size_t size) {
    UsageTable made;
    for (std::size_t i = 0; i < size; ++i) made.bytes.push_back(static_cast<Bytes>(random.below(10)));
    return problem.usage_tables.push_back(made);
  };
  const auto matrix = [&](std::size_t rows, std::size_t columns) {
    CostMatrix made{static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(columns), {}};
    for (std::size_t i = 0; i < rows * columns; ++i) {
      made.costs.push_back(random.below(12) == 0 ? kForbidden : static_cast<std::int64_t>(random.below(30)));
    }
    return problem.matrices.push_back(made);
  };
  struct Part {
    StrategyTableId table;
    std::vector<std::pair<UsageTableId, std::uint64_t>> uses;  // and for how long: 0 to 3, as described at the function
  };
  std::vector<Part> parts;
  for (const std::size_t size : strategies) {
    Part part{table(size), {}};
    for (std::uint64_t uses = random.below(4); uses > 0; --uses) part.uses.emplace_back(usage(size), random.below(4));
    parts.push_back(part);
  }
  const auto add = [&](const Part& part, std::size_t time, NodeId tie) {
    ProblemNode node{part.table, {}};
    for (const auto& [bytes, kind] : part.uses) {
      const auto now = static_cast<std::uint32_t>(time), back = static_cast<std::uint32_t>(num_times - 1 - time);
      const auto end = static_cast<std::uint32_t>(num_times);
      node.memory.push_back(kind == 0   ? MemoryUse{bytes, now, now + 1}
                            : kind == 1 ? MemoryUse{bytes, now, back}
                            : kind == 2 ? MemoryUse{bytes, back, end}
                                        : MemoryUse{bytes, 0, end});
    }
    result.ties.push_back(tie);
    return problem.nodes.push_back(node);
  };
  // Edges inside a layer, from one layer to the next, and at both ends.
  struct Edge {
    std::size_t from, to;
    MatrixId matrix;
  };
  std::vector<Edge> inside, onward, into, out_of;
  for (std::size_t i = 0; i < width; ++i) {
    if (i + 1 < width) inside.push_back({i, i + 1, matrix(strategies[i + 1], strategies[i + 2])});
    const std::size_t j = random.below(width);
    onward.push_back({i, j, matrix(strategies[i + 1], strategies[j + 1])});
    if (random.below(2) == 0) into.push_back({0, i, matrix(strategies[0], strategies[i + 1])});
    if (random.below(2) == 0) out_of.push_back({i, 0, matrix(strategies[i + 1], strategies[width + 1])});
  }
  const NodeId first = add(parts[0], 0, NodeId(0));
  std::vector<NodeId> previous;
  for (std::size_t copy = 0; copy < copies; ++copy) {
    std::vector<NodeId> layer;
    for (std::size_t i = 0; i < width; ++i)
      layer.push_back(add(parts[i + 1], before + copy * width + i, NodeId(1 + i)));
    for (const Edge& edge : inside) problem.edges.push_back({layer[edge.from], layer[edge.to], edge.matrix});
    for (const Edge& edge : onward) {
      if (copy > 0) problem.edges.push_back({previous[edge.from], layer[edge.to], edge.matrix});
    }
    for (const Edge& edge : into) {
      if (copy == 0) problem.edges.push_back({first, layer[edge.to], edge.matrix});
    }
    previous = layer;
  }
  const NodeId last = add(parts[width + 1], forward_end, NodeId(1 + width));
  for (const Edge& edge : out_of) problem.edges.push_back({previous[edge.from], last, edge.matrix});
  std::vector<std::int64_t> least(num_times + 1, 0), most(num_times + 1, 0);  // changes, then sums
  for (const ProblemNode& node : problem.nodes) {
    for (const MemoryUse& use : node.memory) {
      if (use.begin >= use.end) continue;
      const auto [low, high] = std::minmax_element(problem.usage_tables[use.usage].bytes.begin(),
                                                   problem.usage_tables[use.usage].bytes.end());
      least[use.begin] += *low;
      least[use.end] -= *low;
      most[use.begin] += *high;
      most[use.end] -= *high;
    }
  }
  std::partial_sum(least.begin(), least.end(), least.begin());
  std::partial_sum(most.begin(), most.end(), most.begin());
  const std::int64_t lowest = *std::max_element(least.begin(), least.end());
  const std::int64_t highest = *std::max_element(most.begin(), most.end());
  problem.memory_limits.assign(num_times, lowest + (highest - lowest) * limit_percent / 100);
  return result;
}

Choice random_choice(const StrategyProblem& problem, Random& random) {
  Choice choice;
  for (const NodeId node : problem.nodes.ids()) {
    choice.strategy.push_back(StrategyId(random.below(problem.num_strategies(node))));
  }
  return choice;
}

std::string describe(const StrategyProblem& problem) {
  std::string text;
  for (const NodeId id : problem.nodes.ids()) {
    text += fmt::format("node {}:", id.value());
    for (const Cost& cost : problem.strategy_tables[problem.nodes[id].strategies].costs)
      text += fmt::format(" {}+{}", cost.computation, cost.communication);
    for (const MemoryUse& use : problem.nodes[id].memory) {
      text += fmt::format(" [{},{}) {}", use.begin, use.end, problem.usage_tables[use.usage].bytes);
    }
    text += "\n";
  }
  for (const ProblemEdge& edge : problem.edges) {
    text += fmt::format("edge {}-{}: {}\n", edge.from.value(), edge.to.value(), problem.matrices[edge.matrix].costs);
  }
  return text + fmt::format("limits {}\n", problem.memory_limits);
}

}  // namespace shardplan
