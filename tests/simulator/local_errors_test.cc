// What cannot run in a model written per device gives one named error, and never waits forever.

#include <gtest/gtest.h>

#include "model/local_model.h"
#include "model/planned_model.h"
#include "model/read_model.h"
#include "program/local_program.h"

namespace shardplan {
namespace {

/// The errors of a model on four ranks, or "runs".
std::string outcome_of(const std::string& text) {
  try {
    std::vector<OperatorGraph> graphs;
    for (const auto& model : models_of_ranks(read_model_text(text, "m.yaml"), 4))
      graphs.push_back(planned_graph(*model));
    std::vector<const OperatorGraph*> pointers;
    for (const OperatorGraph& graph : graphs) pointers.push_back(&graph);
    local_program(std::move(pointers));
    return "runs";
  } catch (const InputError& error) {
    return error.what();
  }
}

/// The errors of a model with these operators.
std::string outcome(const std::string& operators, const std::string& parallel = "parallel_mode: hybrid_parallel") {
  return outcome_of(
      "shardplan: 1\n"
      "inputs: {x: [4, 6]}\n"
      "operators:\n" +
      operators + "parallel: {" + parallel + ", device_num: 4}\n");
}

struct ErrorCase {
  const char* name;
  const char* operators;
  const char* fault;  // a part of it
};
const ErrorCase kErrors[] = {
    {"a_rank_leaves_out_a_collective",
     "  y: {op: AllReduce, in: x, ranks: [0, 1, 3]}\n  z: {op: ReLU, in: x, ranks: [2]}\n",
     "m.yaml:4:3: error: y: ranks 0, 1 and 3 wait in y (AllReduce over ranks 0 to 3) for ever: rank 2 ends without "
     "it"},
    {"ranks_in_another_order",
     "  a: {op: AllReduce, in: x, ranks: [0, 1]}\n"
     "  b: {op: AllReduce, in: x, group: [0, 1, 2], ranks: [0, 1]}\n"
     "  c: {op: AllReduce, in: x, group: [0, 1, 2], ranks: [2]}\n"
     "  d: {op: AllReduce, in: x, ranks: [2, 3]}\n",
     "rank 2 waits in c"},
    {"a_group_in_another_order", "  a: {op: AllReduce, in: x, group: [rank, rank//2*4+1-rank]}\n",
     "rank 1 waits in a (AllReduce over ranks 1, 0 in this order)"},
    {"other_operators_meet", "  a: {op: AllReduce, in: x, ranks: [0, 1]}\n  b: {op: AllGather, in: x, ranks: [2, 3]}\n",
     "m.yaml:5:3: error: b: rank 2 is in b (AllGather over ranks 0 to 3) while rank 0 is in a (AllReduce over ranks 0 "
     "to 3)"},
    {"other_shapes_meet", "  s: {op: StridedSlice, in: x, begin: [0], end: [1+rank//2]}\n  a: {op: AllReduce, in: s}\n",
     "a: AllReduce of rank 0 is f32 [1, 6], reduce sum, of rank 2 f32 [2, 6], reduce sum"},
    {"other_reductions_meet",
     "  a: {op: AllReduce, in: x, ranks: [0, 1]}\n  b: {op: AllReduce, in: x, reduce: max, ranks: [2, 3]}\n",
     "reduce max"},
    {"other_roots_meet", "  a: {op: Broadcast, in: x, root_rank: rank}\n", "root_rank 1"},
    {"a_rank_outside_its_group", "  a: {op: AllReduce, in: x, group: [0, 1]}\n",
     "m.yaml:4:36: error: a: rank 2 has AllReduce, but is in none of its groups"},
    {"a_rank_that_does_not_exist", "  a: {op: AllReduce, in: x, group: [0, 1, 2, 4]}\n",
     "a: group: there is no rank 4: they are 0 to 3"},
    {"a_rank_twice", "  a: {op: AllReduce, in: x, group: [0, 1, 2, 3, 3]}\n",
     "m.yaml:4:36: error: a: group: rank 3 stands in it twice"},
    {"a_rank_in_two_groups", "  a: {op: AllReduce, in: x, group: [[0, 1], [1, 2], [3]]}\n",
     "a: group: rank 1 stands in it twice"},
    {"nobody", "  a: {op: AllReduce, in: x, ranks: []}\n", "a: ranks is empty: no rank has it"},
    {"a_root_outside_the_group", "  a: {op: Broadcast, in: x, root_rank: 4}\n", "root_rank 4 is not in the group"},
    {"an_unknown_axis", "  a: {op: AllReduce, in: x, group: tp}\n", "group is 'tp'; expected a list of ranks"},
    {"ranks_beyond_the_last", "  a: {op: AllReduce, in: x, ranks: [0, 7]}\n", "a: ranks: there is no rank 7"},
    {"sent_to_no_receiver",
     "  a: {op: NeighborExchange, in: x, send_rank_ids: [(rank+1)%4], recv_rank_ids: [(rank+1)%4], recv_shapes: [[4, "
     "6]]}\n",
     "a: send_rank_ids: rank 0 sends to rank 1, which receives nothing from it"},
    {"received_from_no_sender",
     "  a: {op: NeighborExchange, in: x, send_rank_ids: [-1], recv_rank_ids: [(rank+1)%4], recv_shapes: [[4, 6]]}\n",
     "a: recv_rank_ids: rank 3 waits for rank 0, which sends nothing to it"},
    {"sent_in_another_shape",
     "  a: {op: NeighborExchange, in: x, send_rank_ids: [(rank+1)%4], recv_rank_ids: [(rank-1)%4], recv_shapes: [[6, "
     "4]]}\n",
     "a: rank 0 sends f32 [4, 6] to rank 1, which expects f32 [6, 4]"},
    {"sent_in_another_type",
     "  a: {op: NeighborExchange, in: x, send_rank_ids: [(rank+1)%4], recv_rank_ids: [(rank-1)%4], recv_shapes: [[4, "
     "6]], "
     "recv_type: f16}\n",
     "which expects f16 [4, 6]"},
    {"sent_to_no_rank",
     "  a: {op: NeighborExchange, in: x, send_rank_ids: [rank+1], recv_rank_ids: [0], recv_shapes: [[4, 6]]}\n",
     "send_rank_ids: there is no rank 4"},
    {"no_list_of_shapes",
     "  a: {op: NeighborExchange, in: x, send_rank_ids: [rank], recv_rank_ids: [rank], recv_shapes: [4, 6]}\n",
     "recv_shapes is"},
    {"indivisible", "  a: {op: ReduceScatter, in: x, group: [0, 1, 2], ranks: [0, 1, 2]}\n",
     "dimension 0 of [4, 6] is not divisible by the 3 ranks"},
    {"split_count_that_is_not_the_group", "  a: {op: AlltoAll, in: x, split_count: 2, split_dim: 0, concat_dim: 1}\n",
     "split_count is 2; expected the 4 ranks of the group"},
    {"what_another_rank_has", "  a: {op: ReLU, in: x, ranks: [0]}\n  b: {op: AllReduce, in: a}\n",
     "as rank 1 of 4 reads the file"},
    {"a_strategy", "  a: {op: AllReduce, in: x, in_strategy: ((4, 1),)}\n",
     "has no meaning in a model written per device"},
};

TEST(LocalErrorsTest, EachIsNamed) {
  for (const ErrorCase& c : kErrors) {
    const std::string found = outcome(c.operators);
    EXPECT_NE(found.find(c.fault), std::string::npos) << c.name << "\n" << found;
  }
}

/// What sums a gradient is in no line of the file: the parameter's line is named.
TEST(LocalErrorsTest, AnExchangeOfGradientsHasThePlaceOfItsParameter) {
  const std::string found = outcome_of(R"(shardplan: 1
inputs: {x: [4, 6]}
parameters: {w: [6, 6]}
operators:
  a:    {op: MatMul, in: [x, w]}
  d:    {op: ReduceScatter, in: x, ranks: [0, 1]}
  loss: {op: ReduceMean, in: a}
outputs: [d]
loss: loss
training: {optimizer: sgd}
parallel: {parallel_mode: hybrid_parallel, device_num: 4}
)");
  EXPECT_NE(found.find("m.yaml:3:14: error: grad.w.AllReduce: rank 2 is in grad.w.AllReduce (AllReduce over ranks 0 to "
                       "3) while rank 0 is in d (ReduceScatter over ranks 0 to 3)"),
            std::string::npos)
      << found;
}

TEST(LocalErrorsTest, OptionsThatLayOutAreRefused) {
  for (const char* option : {"level: 2", "full_batch: true", "comm_fusion: {openstate: true}", "search_mode: ilp",
                             "enable_parallel_optimizer: true", "layers: uniform"}) {
    const std::string found =
        outcome("  a: {op: AllReduce, in: x}\n", std::string("parallel_mode: hybrid_parallel, ") + option);
    EXPECT_NE(found.find("has no meaning in a model written per device"), std::string::npos) << found;
  }
}

/// In the view of all devices there are no ranks.
TEST(LocalErrorsTest, CommunicationNeedsAModelPerDevice) {
  const std::string found = outcome("  a: {op: AllReduce, in: x}\n", "parallel_mode: auto_parallel");
  EXPECT_NE(found.find("m.yaml:4:11: error: a: AllReduce is an operator of models that are written per device"),
            std::string::npos)
      << found;
  EXPECT_NE(outcome("  a: {op: StridedSlice, in: x, begin: [rank], end: [4]}\n", "parallel_mode: auto_parallel")
                .find("rank is known only where"),
            std::string::npos);
  const std::string once =
      outcome("  a: {op: AllGather, in: x, group: [[0, 1], [2, 3]]}\n", "parallel_mode: auto_parallel");
  EXPECT_EQ(once.find("error", once.find("error") + 1), std::string::npos) << "one fault is one error: " << once;
}

TEST(LocalErrorsTest, DevicesMustBeCounted) {
  try {
    read_model_text(
        "shardplan: 1\ninputs: {x: [4]}\noperators:\n  y: {op: AllReduce, in: x}\n"
        "parallel: {parallel_mode: hybrid_parallel}\n",
        "m.yaml");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("device_num is missing"), std::string::npos) << error.what();
  }
}

/// Ranks that are not in a group continue; groups of one operator are independent of each other.
TEST(LocalErrorsTest, RanksMayDoDifferentThings) {
  EXPECT_EQ(outcome("  a: {op: AllReduce, in: x, group: [0, 1], ranks: [0, 1]}\n"
                    "  b: {op: AllReduce, in: x, group: [2, 3], ranks: [2, 3]}\n"
                    "  c: {op: ReLU, in: a, ranks: [0]}\n"),
            "runs");
  EXPECT_EQ(outcome("  a: {op: AllReduce, in: x, group: [[0, 1], [2, 3]]}\n  b: {op: AllReduce, in: a}\n",
                    "parallel_mode: stand_alone"),
            "runs");
}

}  // namespace
}  // namespace shardplan
