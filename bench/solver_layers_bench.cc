// Does planning time grow with the number of layers only? The same block 12, 96 and 960 times, forward and with a
// backward chain, memory not binding; each three times, median and spread. Then with tied layers: no growth allowed.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "solver/searches/search_list.h"
#include "solver/tied_problem.h"
#include "tests/support/problems.h"

int main() {
  using namespace shardplan;
  const auto tied_layers = [](std::size_t layers) {
    Random random(1);
    const RepeatedProblem repeated = random_repeated_problem(random, layers, 20, 64, 60);
    return tied_problem(repeated.problem, repeated.ties).problem;
  };
  for (const char* const kind : {"forward", "training", "tied"}) {
    const bool training = kind == std::string_view("training");
    for (const std::size_t layers : {12u, 96u, 960u}) {
      const StrategyProblem problem =
          kind == std::string_view("tied")
              ? tied_layers(layers)
              : layered_problem(
                    {.layers = layers, .width = 20, .strategies = 64, .training = training, .limit_percent = 200});
      std::vector<double> seconds;
      PlanResult result;
      for (int round = 0; round < 3; ++round) {
        SearchOptions options;
        options.threads = 2;
        options.limits.work = 2'000'000'000;
        const auto begin = std::chrono::steady_clock::now();
        result = make_search("auto")->search(problem, options);
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
      std::sort(seconds.begin(), seconds.end());
      fmt::print("{:8} {:4} layers, {:6} nodes: {:8.3f} s (from {:.3f} to {:.3f}), {}, gap {:.4f} %\n", kind, layers,
                 problem.nodes.size(), seconds[1], seconds[0], seconds[2], to_string(result.status),
                 100.0 * static_cast<double>(result.cost - result.lower_bound) /
                     static_cast<double>(std::max<std::int64_t>(result.lower_bound, 1)));
    }
  }
  return 0;
}
