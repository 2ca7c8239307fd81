#include "solver/searches/subproblems_ahead.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/support/cores.h"

namespace shardplan {
namespace {

/// All that a search comes to, subproblem by subproblem.
struct Record {
  std::vector<std::pair<double, double>> steps;  // the bound and the cost behind each
  std::uint64_t work = 0;
  bool operator==(const Record&) const = default;
};

enum class Expected { kNone, kNext, kWrongCost };

/// Branch and bound to its end, in batches of `count`.
Record searched(const CoreProblem& core, const DualBound& root, std::size_t count, std::size_t threads, Expected what) {
  const Deadline deadline(0, {});
  BranchAndBound search(core, root);
  SubproblemsAhead ahead(search, core, deadline, threads);
  DualBound dual(core);
  Record record;
  double cost = core.big_m;
  while (!search.is_empty()) {
    std::vector<BranchAndBound::Subproblem> batch = search.take(count);
    std::vector<BranchAndBound::Subproblem> next(batch.begin() + 1, batch.end());
    for (const BranchAndBound::Subproblem* open : search.most_promising(4)) next.push_back(*open);
    if (what != Expected::kNone) ahead.expect(std::move(next), what == Expected::kNext ? cost : cost - 1);
    for (BranchAndBound::Subproblem& item : batch) {
      SubproblemsAhead::Processed processed = ahead.process(std::move(item), cost, dual);
      record.work += processed.work;
      cost = std::min(cost, processed.outcome.cost);
      search.put(std::move(processed.outcome));
      record.steps.emplace_back(search.bound(), cost);
    }
  }
  return record;
}

TEST(SubproblemsAheadTest, WhoProcessesASubproblemChangesNothing) {
  std::size_t num_steps = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const CoreProblem core = core_of(random_core(random, {.max_nodes = 16,
                                                          .max_values = 6,
                                                          .edge_percent = 60,
                                                          .forbidden_percent = 0,
                                                          .limit_percent = 60,
                                                          .largest_cost = 1000}));
    DualBound root(core);
    root.pass();
    const std::size_t count = 1 + seed % 3;
    const Record one_by_one = searched(core, root, count, 0, Expected::kNone);
    // Without threads of its own, whoever waits would process the rest: nobody waits.
    EXPECT_EQ(searched(core, root, count, 0, Expected::kNext), one_by_one);
    EXPECT_EQ(searched(core, root, count, 1, Expected::kNext), one_by_one);
    EXPECT_EQ(searched(core, root, count, 3, Expected::kNext), one_by_one);
    EXPECT_EQ(searched(core, root, count, 2, Expected::kWrongCost), one_by_one);
    num_steps += one_by_one.steps.size();
  }
  EXPECT_GT(num_steps, 500u);
}

TEST(SubproblemsAheadTest, EndsWithWhatIsBegun) {
  Random random(1);
  const CoreProblem core = core_of(random_core(random, {.max_nodes = 7, .edge_percent = 90, .limit_percent = 30}));
  DualBound root(core);
  root.pass();
  BranchAndBound search(core, root);
  for (int i = 0; i < 50; ++i) {
    const Deadline deadline(0, {});
    SubproblemsAhead ahead(search, core, deadline, 2);
    ahead.expect({*search.most_promising(1).front()}, core.big_m);
  }
}

}  // namespace
}  // namespace shardplan
