#include "tests/support/cores.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace shardplan {
namespace {

/// The class of each line; equal lines are in one class.
std::vector<std::uint32_t> classes_of(const std::vector<std::vector<double>>& lines) {
  std::map<std::vector<double>, std::uint32_t> known;
  std::vector<std::uint32_t> result;
  for (const auto& line : lines) {
    result.push_back(known.try_emplace(line, static_cast<std::uint32_t>(known.size())).first->second);
  }
  return result;
}

CoreMatrix matrix_of(const std::vector<std::vector<double>>& rows) {
  std::vector<std::vector<double>> columns(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) columns[column].push_back(row[column]);
  }
  CoreMatrix matrix;
  matrix.row_class = classes_of(rows);
  matrix.column_class = classes_of(columns);
  matrix.row_classes = *std::max_element(matrix.row_class.begin(), matrix.row_class.end()) + 1;
  matrix.column_classes = *std::max_element(matrix.column_class.begin(), matrix.column_class.end()) + 1;
  matrix.forward.resize(std::size_t{matrix.row_classes} * matrix.column_classes);
  matrix.backward.resize(matrix.forward.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < columns.size(); ++column) {
      matrix.forward[matrix.row_class[row] * matrix.column_classes + matrix.column_class[column]] = rows[row][column];
      matrix.backward[matrix.column_class[column] * matrix.row_classes + matrix.row_class[row]] = rows[row][column];
      matrix.largest = std::max(matrix.largest, rows[row][column]);
    }
  }
  return matrix;
}

}  // namespace

double CoreSketch::cost(const CoreChoice& choice) const {
  double sum = 0;
  for (std::size_t node = 0; node < costs.size(); ++node) sum += costs[node][choice[node]];
  for (const Edge& edge : edges) sum += edge.costs[choice[edge.from]][choice[edge.to]];
  return sum;
}

std::int64_t CoreSketch::excess(const CoreChoice& choice) const {
  std::int64_t sum = 0;
  for (std::uint32_t time = 0; time < limits.size(); ++time) {
    std::int64_t bytes = 0;
    for (const Segment& segment : segments) {
      if (segment.begin <= time && time < segment.end) bytes += segment.bytes[choice[segment.node]];
    }
    sum += std::max<std::int64_t>(0, bytes - limits[time]);
  }
  return sum;
}

CoreProblem core_of(const CoreSketch& sketch) {
  CoreProblem core;
  core.first_value = core.first_neighbour = core.first_segment = {0};
  auto matrices = std::make_shared<std::vector<CoreMatrix>>();
  for (const CoreSketch::Edge& edge : sketch.edges) matrices->push_back(matrix_of(edge.costs));
  for (std::uint32_t node = 0; node < sketch.costs.size(); ++node) {
    core.costs.insert(core.costs.end(), sketch.costs[node].begin(), sketch.costs[node].end());
    core.first_value.push_back(static_cast<std::uint32_t>(core.costs.size()));
    std::vector<CoreNeighbour> neighbours;
    for (std::uint32_t edge = 0; edge < sketch.edges.size(); ++edge) {
      if (sketch.edges[edge].from == node) neighbours.push_back({sketch.edges[edge].to, edge, true, 0});
      if (sketch.edges[edge].to == node) neighbours.push_back({sketch.edges[edge].from, edge, false, 0});
    }
    std::sort(neighbours.begin(), neighbours.end(), [](const auto& a, const auto& b) { return a.node < b.node; });
    core.neighbours.insert(core.neighbours.end(), neighbours.begin(), neighbours.end());
    core.first_neighbour.push_back(static_cast<std::uint32_t>(core.neighbours.size()));
    for (const CoreSketch::Segment& segment : sketch.segments) {
      if (segment.node != node) continue;
      core.segments.push_back({segment.begin, segment.end, static_cast<std::uint32_t>(core.bytes.size())});
      core.bytes.insert(core.bytes.end(), segment.bytes.begin(), segment.bytes.end());
    }
    core.first_segment.push_back(static_cast<std::uint32_t>(core.segments.size()));
  }
  core.matrices = std::move(matrices);
  core.limits = sketch.limits;
  core.big_m = sketch.big_m;
  finish(core);
  return core;
}

void for_each_choice(const CoreSketch& sketch, const std::function<void(const CoreChoice&)>& visit) {
  CoreChoice choice(sketch.costs.size(), 0);
  for (;;) {
    visit(choice);
    std::size_t node = 0;
    for (; node < choice.size(); ++node) {
      if (++choice[node] < sketch.costs[node].size()) break;
      choice[node] = 0;
    }
    if (node == choice.size()) return;
  }
}

std::optional<CoreChoice> brute_force(const CoreSketch& sketch) {
  std::optional<CoreChoice> best;
  for_each_choice(sketch, [&](const CoreChoice& choice) {
    if (sketch.is_feasible(choice) && (!best || sketch.cost(choice) < sketch.cost(*best))) best = choice;
  });
  return best;
}

CoreSketch random_core(Random& random, const RandomCoreOptions& options) {
  CoreSketch sketch;
  const auto percent = [&](int share) { return static_cast<int>(random.below(100)) < share; };
  const auto cost = [&] {
    return static_cast<double>(random.below(static_cast<std::uint64_t>(options.largest_cost) + 1));
  };
  const std::size_t count = 1 + random.below(options.max_nodes);
  for (std::uint32_t node = 0; node < count; ++node) {
    std::vector<double>& costs = sketch.costs.emplace_back();
    for (std::uint64_t values = 1 + random.below(options.max_values); values > 0; --values) costs.push_back(cost());
    std::uint32_t free = 0;  // segments of a node are disjoint
    for (std::uint64_t uses = random.below(3); uses > 0 && free < options.times; --uses) {
      CoreSketch::Segment segment;
      segment.node = node;
      segment.begin = free + static_cast<std::uint32_t>(random.below(options.times - free));
      segment.end = segment.begin + 1 + static_cast<std::uint32_t>(random.below(options.times - segment.begin));
      free = segment.end;
      for (std::size_t value = 0; value < costs.size(); ++value) {
        segment.bytes.push_back(static_cast<std::int64_t>(random.below(10)));
      }
      const std::int64_t least = *std::min_element(segment.bytes.begin(), segment.bytes.end());
      for (std::int64_t& bytes : segment.bytes) bytes -= least;
      sketch.segments.push_back(segment);
    }
  }
  for (std::uint32_t to = 1; to < count; ++to) {
    const auto parent = static_cast<std::uint32_t>(random.below(to));
    for (std::uint32_t from = 0; from < to; ++from) {
      if (options.is_tree ? from != parent : !percent(options.edge_percent)) continue;
      CoreSketch::Edge edge{from, to, {}};
      const bool repeats = percent(30);  // equal rows
      for (std::size_t row = 0; row < sketch.costs[from].size(); ++row) {
        std::vector<double>& entries = edge.costs.emplace_back();
        for (std::size_t column = 0; column < sketch.costs[to].size(); ++column) {
          entries.push_back(percent(options.forbidden_percent) ? sketch.big_m : cost());
        }
        if (repeats && row > 0) entries = edge.costs[row - 1];
      }
      sketch.edges.push_back(std::move(edge));
    }
  }
  for (std::uint32_t time = 0; time < options.times; ++time) {
    std::int64_t most = 0;
    for (const CoreSketch::Segment& segment : sketch.segments) {
      if (segment.begin > time || time >= segment.end) continue;
      most += *std::max_element(segment.bytes.begin(), segment.bytes.end());
    }
    sketch.limits.push_back(most * options.limit_percent / 100);
  }
  return sketch;
}

CoreChoice random_choice(const CoreSketch& sketch, Random& random) {
  CoreChoice choice;
  for (const auto& costs : sketch.costs) choice.push_back(static_cast<std::uint32_t>(random.below(costs.size())));
  return choice;
}

CoreSketch large_triangle(std::uint64_t seed) {
  constexpr std::uint32_t kValues = 1300;
  constexpr double kUnit = 1'000'000'000;
  Random random(seed);
  CoreSketch sketch;
  sketch.big_m = 0x1p50;
  sketch.costs.assign(3, std::vector<double>(kValues, 0));
  std::uint32_t best[3];
  for (std::uint32_t& value : best) value = static_cast<std::uint32_t>(random.below(kValues));
  for (const auto& [from, to] : {std::pair(0u, 1u), std::pair(0u, 2u), std::pair(1u, 2u)}) {
    CoreSketch::Edge edge{from, to, {}};
    for (std::uint32_t i = 0; i < kValues; ++i) {
      std::vector<double>& row = edge.costs.emplace_back();
      for (std::uint32_t j = 0; j < kValues; ++j)
        row.push_back(kUnit * static_cast<double>(500 + random.below(500)) + 7);
    }
    edge.costs[best[from]][best[to]] = kBestOfLargeTriangle / 3;
    for (int decoys = from == 0 && to == 1 ? 200 : 0; decoys > 0; --decoys) {
      const auto i = random.below(kValues), j = random.below(kValues);
      if (i != best[from] && j != best[to]) edge.costs[i][j] = 300 * kUnit + 3;
    }
    sketch.edges.push_back(std::move(edge));
  }
  return sketch;
}

std::string describe(const CoreSketch& sketch) {
  std::string text = fmt::format("costs {}\n", sketch.costs);
  for (const auto& edge : sketch.edges) text += fmt::format("edge {}-{}: {}\n", edge.from, edge.to, edge.costs);
  for (const auto& segment : sketch.segments) {
    text += fmt::format("node {} holds {} over [{}, {})\n", segment.node, segment.bytes, segment.begin, segment.end);
  }
  return text + fmt::format("limits {}\n", sketch.limits);
}

}  // namespace shardplan
