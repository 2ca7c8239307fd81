#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "solver/core/core_problem.h"

namespace shardplan {

/// A core as a test writes it down: plain lists, one matrix per edge. It is also the oracle: the cost and the memory of
/// a choice are summed up from these lists, without any code of the solver.
struct CoreSketch {
  struct Edge {
    std::uint32_t from = 0, to = 0;          // from < to; at most one edge per pair
    std::vector<std::vector<double>> costs;  // by value of `from`, then of `to`
  };
  struct Segment {
    std::uint32_t node = 0, begin = 0, end = 0;
    std::vector<std::int64_t> bytes;  // by value; the least is 0
  };
  std::vector<std::vector<double>> costs;  // by node and value
  std::vector<Edge> edges;
  std::vector<Segment> segments;     // those of one node are disjoint and in order
  std::vector<std::int64_t> limits;  // by time
  double big_m = 1e9;

  double cost(const CoreChoice& choice) const;
  /// Bytes over the limits, summed over the times.
  std::int64_t excess(const CoreChoice& choice) const;
  bool is_feasible(const CoreChoice& choice) const { return cost(choice) < big_m && excess(choice) == 0; }
};

/// The core itself; equal rows and columns of matrices are put into classes, as presolve does.
CoreProblem core_of(const CoreSketch& sketch);

void for_each_choice(const CoreSketch& sketch, const std::function<void(const CoreChoice&)>& visit);
/// The cheapest feasible choice, the first of equal ones, found by trying all.
std::optional<CoreChoice> brute_force(const CoreSketch& sketch);

struct RandomCoreOptions {
  std::size_t max_nodes = 6;
  std::size_t max_values = 4;
  int edge_percent = 50;
  int forbidden_percent = 10;  // of the entries of edges
  int limit_percent = 50;      // of the largest usage at each time; above 100: no limit binds
  std::int64_t largest_cost = 20;
  std::uint32_t times = 5;  // 0: no memory
  bool is_tree = false;     // edges form a tree, whatever `edge_percent` is
};
CoreSketch random_core(Random& random, const RandomCoreOptions& options = {});
CoreChoice random_choice(const CoreSketch& sketch, Random& random);

/// A triangle of nodes with 1300 values each, whose passes are large enough for what searches do only then. Entries
/// are whole numbers that floats do not hold. The best choice, which costs `kBestOfLargeTriangle`, is the only one that takes
/// the cheapest entries of two edges; the third edge has some cheaper ones.
CoreSketch large_triangle(std::uint64_t seed);
inline constexpr double kBestOfLargeTriangle = 3 * 400'000'000'001.0;

/// A text with all numbers, for failure messages.
std::string describe(const CoreSketch& sketch);

}  // namespace shardplan
