// parameter_broadcast: devices that start with other numbers train the first device's.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "simulator/execute/simulate.h"
#include "simulator/proof/mutations.h"
#include "tests/simulator/planned_step.h"

namespace shardplan {
namespace {

std::string broadcast_model(const std::string& parallel) {
  return two_products("[3, 4]", parallel + ", parameter_broadcast: true");
}

/// The losses of three steps of training on one batch; `fault` at the start.
std::vector<double> trained_losses(const PlannedStep& planned, const Fault* fault) {
  const StoredValues given = [&](TensorId tensor, std::uint64_t) {
    return draw_tensor(planned.graph(), tensor, 11, 0, States::kFresh);
  };
  Executor executor(planned.plan.program, planned.graph(), {.seed = 11});
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < 3; ++step) {
    if (step == 0) {
      executor.start(step, given, fault);
    } else {
      executor.start_next(step, given);
    }
    while (!executor.is_done()) executor.run_next();
    losses.push_back(executor.value(planned.plan.program.outputs[0].value).data[0][0]);
  }
  return losses;
}

TEST(ParameterBroadcastTest, WithoutTheBroadcastDevicesThatBeginDifferentlyTrainAnotherModel) {
  const PlannedStep planned(broadcast_model("parallel_mode: data_parallel"));
  ASSERT_EQ(planned.plan.program.broadcasts.size(), 2u);
  EXPECT_TRUE(is_equal(planned));
  const std::vector<SimulatedScalar> simulated =
      simulate(planned.plan.program, planned.graph(), {.seed = 11, .steps = 3});
  const std::vector<double> right = trained_losses(planned, nullptr);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(simulated[0].steps[i].one_device, simulated[0].steps[i].mesh, 1e-12);
    EXPECT_EQ(simulated[0].steps[i].mesh, right[i]);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    for (const FaultKind kind : {FaultKind::kRemoved, FaultKind::kSwapped}) {
      const Fault fault{.kind = kind, .broadcast = i};
      EXPECT_GT(std::abs(trained_losses(planned, &fault)[2] - right[2]), 1e-3 * right[2]);
    }
  }
}

TEST(ParameterBroadcastTest, EveryBroadcastLeftOutIsCaughtAndBelongsToTheProof) {
  for (const char* parallel : {"parallel_mode: data_parallel", "mesh: {dp: 2, mp: 2}"}) {
    const PlannedStep planned(broadcast_model(parallel));
    int broadcasts = 0;
    for (const MutationResult& result : test_mutations(planned.plan.program, planned.graph(), {})) {
      EXPECT_NE(result.outcome, MutationOutcome::kUncaught) << result.mutation.description;
      if (!result.mutation.fault.broadcast) continue;
      ++broadcasts;
      EXPECT_EQ(result.outcome, MutationOutcome::kCaught) << result.mutation.description;
    }
    EXPECT_EQ(broadcasts > 0, !planned.plan.program.broadcasts.empty());
  }
}

// A parameter that every device has for itself is not sent (MindSpore: neither broadcast nor averaged).
TEST(ParameterBroadcastTest, OwnParametersAreNotBroadcast) {
  const PlannedStep planned(two_products("{shape: [3, 4], layerwise_parallel: true}",
                                         "parallel_mode: data_parallel, parameter_broadcast: true"));
  ASSERT_EQ(planned.plan.program.broadcasts.size(), 1u);
  EXPECT_EQ(planned.plan.program.given[planned.plan.program.broadcasts[0].given].tensor, planned.id("v"));
  EXPECT_TRUE(is_equal(planned));
  EXPECT_NE(fault_of_model(two_products("[3, 4]", "parallel_mode: stand_alone, parameter_broadcast: true"))
                .find("parameter_broadcast is for several devices"),
            std::string::npos);
}

}  // namespace
}  // namespace shardplan
