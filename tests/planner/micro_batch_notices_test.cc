#include "planner/micro_batch_notices.h"

#include <gtest/gtest.h>

#include "model/planned_model.h"
#include "model/read_model.h"

namespace shardplan {
namespace {

using Notices = std::vector<std::string>;

/// x and y are [B, C], w is [C, C].
Notices notices_of(const std::string& operators, const std::string& micro_batches = "4") {
  const Model model = read_model_text(
      "shardplan: 1\ndims: {B: 64, C: 32}\ninputs: {x: [B, C], y: [B, C]}\nparameters: {w: [C, C]}\noperators:\n"
      "  p: {op: MatMul, in: [x, w]}\n" +
          operators + "loss: loss\ntraining: {optimizer: sgd, micro_batches: " + micro_batches + "}\n",
      "m.yaml");
  return micro_batch_notices(one_micro_batch(model));
}

TEST(MicroBatchNoticesTest, ALossThatIsAMeanOverTheBatchNeedsNone) {
  const std::string error = "  d: {op: Sub, in: [p, y]}\n  q: {op: Square, in: d}\n";
  EXPECT_EQ(notices_of(error + "  loss: {op: ReduceMean, in: q}\n"), Notices());
  EXPECT_EQ(notices_of(error + "  s: {op: ReduceSum, in: q, axis: 1}\n  loss: {op: ReduceMean, in: s}\n"), Notices());
  EXPECT_EQ(notices_of(error + "  s: {op: ReduceSum, in: q}\n  loss: {op: RealDiv, in: [s, 1*B]}\n"), Notices());
}

TEST(MicroBatchNoticesTest, ASumIsNoMean) {
  const std::string sum = "  d: {op: Sub, in: [p, y]}\n  q: {op: Square, in: d}\n  s: {op: ReduceSum, in: q}\n";
  const Notices expected = {
      "micro_batches changes what is trained: a step takes the mean of the losses of 4 micro-batches, but the loss is "
      "not a mean over the batch: s is a ReduceSum; use ReduceMean, or train without micro_batches"};
  EXPECT_EQ(notices_of(sum + "  loss: {op: Mul, in: [s, 0.5]}\n"), expected);
  EXPECT_EQ(notices_of(sum + "  loss: {op: RealDiv, in: [s, 64]}\n"), expected) << "64 is not the micro-batch";
  EXPECT_EQ(notices_of(sum + "  loss: {op: Mul, in: [s, 0.5]}\n", "1"), Notices());
}

TEST(MicroBatchNoticesTest, SamplesThatAreComparedWithEachOtherSeeFewer) {
  EXPECT_EQ(notices_of("  logits: {op: MatMul, in: [p, y], transpose_b: true}\n"
                       "  soft:   {op: LogSoftmax, in: logits}\n"
                       "  loss:   {op: ReduceMean, in: soft}\n"),
            Notices{"micro_batches changes what is trained: logits [64, 64] pairs every sample of the batch with every "
                    "other, but [16, 16] of a micro-batch pairs only its own samples; to keep all pairs, train without "
                    "micro_batches"});
}

}  // namespace
}  // namespace shardplan
