#include "model/model_options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/model/read_text.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(ModelOptionsTest, OptionsHaveMindSporesNamesAndOurDefaults) {
  const Model standard = read("shardplan: 1\ninputs: {x: [8]}\noperators: {a: {op: ReLU, in: x}}\n");
  EXPECT_EQ(standard.parallel.parallel_mode, ParallelMode::kAutoParallel);
  EXPECT_EQ(standard.parallel.search, "auto");
  EXPECT_EQ(standard.cluster.value, "ascend-910");
  EXPECT_FALSE(standard.training);
  const Model model = read(R"(shardplan: 1
inputs: {x: [8], y: [8]}
operators: {a: {op: Add, in: [x, y]}, loss: {op: ReduceSum, in: a}}
loss: loss
training: {optimizer: adamw, learning_rate: 6e-4, beta2: 0.95, micro_batches: 4, mixed_precision: bf16}
parallel:
  parallel_mode: auto_parallel
  search_mode: sharding_propagation
  device_num: 8
  mesh: {dp: 2, mp: 4}
  dataset_strategy: ((8,), ())
  level: 2
  device: GPU
)");
  EXPECT_EQ(model.parallel.search, "propagation");
  EXPECT_EQ(model.parallel.mesh, (std::vector<std::pair<std::string, std::int64_t>>{{"dp", 2}, {"mp", 4}}));
  EXPECT_EQ(model.cluster.value, "dgx-a100");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "x").layout), "[8]");
  EXPECT_EQ(to_text(*tensor_of(model.graph, "y").layout), "[]");
  EXPECT_EQ(model.training->learning_rate, 6e-4);
  EXPECT_EQ(model.training->micro_batches, 4);
  EXPECT_EQ(model.training->mixed_precision, DataType::kBF16);
}

std::string faults_of_parallel(const std::string& parallel) {
  return faults_of("shardplan: 1\ninputs: {x: [8]}\noperators: {a: {op: ReLU, in: x}}\nparallel: {" + parallel + "}\n");
}

TEST(ModelOptionsTest, PythonsSpellingsAreTaken) {
  const Model model = read(R"(shardplan: 1
mode: PYNATIVE
inputs: {x: [8, 8]}
parameters: {w: [8, 8]}
operators: {a: {op: MatMul, in: [x, w]}, loss: {op: ReduceSum, in: a}}
loss: loss
training: {optimizer: Momentum}
parallel: {parallel_mode: DATA_PARALLEL, gradients_mean: True, full_batch: False, comm_fusion: {openstate: False}}
)");
  EXPECT_EQ(model.training->optimizer, "momentum");
  EXPECT_EQ(model.parallel.parallel_mode, ParallelMode::kDataParallel);
  EXPECT_TRUE(model.parallel.gradients_mean->value);
  EXPECT_TRUE(model.parallel.is_pynative);
}

/// The spelling of operators and number types in MindSpore's scripts.
TEST(ModelOptionsTest, NamesOfModulesBeforeADotAreTaken) {
  const Model model = read(R"(shardplan: 1
dtype: ms.float16
inputs: {x: [8, 8], ids: {shape: [8], dtype: mindspore.int32}}
parameters: {w: {shape: [8, 8], dtype: bfloat16}}
operators:
  c: {op: ops.Cast, in: w, dtype: mstype.float16}
  a: {op: P.MatMul, in: [x, c]}
  r: {op: nn.ReLU, in: a}
  o: {op: OneHot, in: ids, depth: 8, dtype: np.float16}
  s: {op: Add, in: [r, o]}
  loss: {op: ReduceSum, in: s}
loss: loss
training: {optimizer: nn.SGD, mixed_precision: Float16}
parallel: {parallel_mode: ParallelMode.DATA_PARALLEL}
)");
  const auto dtype = [&](const char* name) { return model.graph.tensor(*model.graph.find_tensor(name)).type.dtype; };
  EXPECT_EQ(dtype("x"), DataType::kF16);
  EXPECT_EQ(dtype("ids"), DataType::kI32);
  EXPECT_EQ(dtype("w"), DataType::kBF16);
  EXPECT_EQ(dtype("o"), DataType::kF16);
  EXPECT_EQ(model.graph.operation(*model.graph.find_operator("c")).text("dtype"), "f16");
  EXPECT_EQ(model.graph.operation(*model.graph.find_operator("r")).type->name, "ReLU");
  EXPECT_EQ(model.training->mixed_precision, DataType::kF16);
}

/// Python's tuples are accepted as lists: shapes, attributes, groups.
TEST(ModelOptionsTest, TuplesAreLists) {
  const auto model = [](bool is_python) {
    const auto list = [&](const std::string& items) { return is_python ? "(" + items + ",)" : "[" + items + "]"; };
    return "shardplan: 1\ndims: {B: 4}\ninputs: {x: " + list("B, 2*B, 3") +
           ", k: {shape: " + list("2*(B - 1), 1, 3, 3") +
           "}}\noperators:\n  t: {op: Transpose, in: x, perm: " + list("1, 0, 2") +
           "}\n  r: {op: Reshape, in: t, shape: " + list("B, 1, 2*B, 3") +
           "}\n  c: {op: Conv2D, in: [r, k], stride: " + list("1, 2") +
           "}\n  m: {op: ReduceMean, in: c, axis: (1 + 1)*1}\n";
  };
  EXPECT_EQ(faults_of(model(true)), "");
  EXPECT_EQ(outline(read(model(true)).graph), outline(read(model(false)).graph));
  const auto ranks = [](const std::string& shapes, const std::string& group) {
    return read(
        "shardplan: 1\ninputs: {x: [2, 3]}\noperators:\n"
        "  y: {op: NeighborExchange, in: x, send_rank_ids: [1-rank], recv_rank_ids: [1-rank], recv_shapes: " +
        shapes + "}\n  z: {op: AllReduce, in: y, group: " + group +
        "}\nparallel: {parallel_mode: stand_alone, device_num: 2}\n");
  };
  EXPECT_EQ(outline(ranks("([2, 3],)", "(0, 1)").graph), outline(ranks("[[2, 3]]", "[0, 1]").graph));
  EXPECT_EQ(outline(ranks("([2, 3],)", "GlobalComm.WORLD_COMM_GROUP").graph), outline(ranks("[[2, 3]]", "[]").graph));
}

/// What a script spells differently is one error that says what to write.
TEST(ModelOptionsTest, OtherWordsOfMindSporesScriptsAreExplained) {
  const auto fault = [](const std::string& line) {
    return faults_of("shardplan: 1\ninputs: {x: [8, 8]}\noperators: {a: {" + line + ", in: x}}\n");
  };
  EXPECT_EQ(fault("block: nn.Dense, out_channels: 8, shard: ((1, 8),)"),
            "m.yaml:3:51: error: a: unknown key 'shard'\n"
            "    shard(((1, 8),), ((8, 1),)) is: in_strategy: ((1, 8),), out_strategy: ((8, 1),)");
  EXPECT_EQ(fault("block: nn.ReLU"), "m.yaml:3:24: error: a: no block 'nn.ReLU'\n    ReLU is an operator: op: ReLU");
  EXPECT_EQ(fault("op: StridedSlice, begin: [get_rank()], end: [8]"),
            "m.yaml:3:43: error: a: begin: rank is known only where a model is written per device: parallel_mode "
            "hybrid_parallel, or stand_alone with communication operators");
}

TEST(ModelOptionsTest, KeysThatTheModeLeavesWithoutEffectAreRefused) {
  EXPECT_EQ(faults_of_parallel("parameter_broadcast: false, batch_norm: global, comm_fusion: {openstate: false}"), "");
  EXPECT_EQ(faults_of_parallel("parameter_broadcast: True"), "");
  EXPECT_EQ(faults_of_parallel("parameter_broadcast: true, parallel_mode: STAND_ALONE").substr(0, 79),
            "m.yaml:4:33: error: parallel: parameter_broadcast is for several devices, not f");
  EXPECT_EQ(faults_of_parallel("gather_again: true, parallel_mode: stand_alone"),
            "m.yaml:4:26: error: parallel: gather_again is for several devices, not for parallel_mode stand_alone");
  EXPECT_EQ(faults_of_parallel("gather_again: again"),
            "m.yaml:4:26: error: parallel: gather_again is 'again'; expected true or false");
  EXPECT_EQ(faults_of_parallel("batch_norm: local").substr(0, 78),
            "m.yaml:4:24: error: parallel: batch_norm local is for parallel_mode data_paral");
  EXPECT_EQ(faults_of_parallel("gradients_mean: false").substr(0, 79),
            "m.yaml:4:28: error: parallel: gradients_mean: false is for parallel_mode data_p");
  EXPECT_EQ(faults_of_parallel("gradients_mean: true"), "");  // the default of every mode
  EXPECT_EQ(faults_of_parallel("full_batch: true, dataset_strategy: data_parallel").substr(0, 86),
            "m.yaml:4:48: error: parallel: dataset_strategy cuts the inputs, but full_batch is true");
  EXPECT_EQ(faults_of_parallel("full_batch: false, dataset_strategy: full_batch"),
            "m.yaml:4:49: error: parallel: dataset_strategy is full_batch, but full_batch is false\n"
            "    keep one of them");
  for (const char* agreeing :
       {"full_batch: true, dataset_strategy: full_batch", "full_batch: true, dataset_strategy: [[1, 1]]",
        "full_batch: false, dataset_strategy: data_parallel"}) {
    EXPECT_EQ(faults_of_parallel(agreeing).find("full_batch"), std::string::npos) << agreeing;
  }
}

TEST(ModelOptionsTest, KeysOfTrainingNeedTraining) {
  const std::string mode = "parallel_mode: data_parallel, ";
  for (const std::string key : {"gradients_mean: false", "gradient_fp32_sync: false", "gradient_fp32_sync: true",
                                "zero: 0", "zero: 3", "enable_parallel_optimizer: true", "gather_again: false",
                                "gradient_accumulation_shard: true", "keep_out_strategy: false"}) {
    EXPECT_EQ(faults_of_parallel(mode + key),
              fmt::format("m.yaml:4:{}: error: parallel: {} is of training, and the file has no training section\n"
                          "    training: {{optimizer: sgd}} trains the model",
                          12 + mode.size() + key.find(':') + 2, key.substr(0, key.find(':'))));
  }
  for (const char* key : {"gradients_mean: true", "enable_parallel_optimizer: false", "keep_out_strategy: true"}) {
    EXPECT_EQ(faults_of_parallel(mode + key), "");  // what holds anyway
  }
}

TEST(ModelOptionsTest, WeightsThatAreWholeAreNotGathered) {
  EXPECT_EQ(faults_of_parallel("parallel_mode: data_parallel, reshard_after_forward: false"),
            "m.yaml:4:65: error: parallel: reshard_after_forward is of weights in pieces, but data_parallel without "
            "zero: 3 leaves them whole");
}

TEST(ModelOptionsTest, OneKeySaysTheTypeOfTheModel) {
  const auto faults = [](const std::string& dtype) {
    return faults_of("shardplan: 1\n" + dtype +
                     "inputs: {x: [8]}\noperators: {a: {op: ReduceSum, in: x}}\nloss: a\n"
                     "training: {optimizer: sgd, mixed_precision: f16}\n");
  };
  EXPECT_EQ(faults("dtype: bf16\n"),
            "m.yaml:6:45: error: training: mixed_precision is f16, but dtype of the file is bf16\n"
            "    keep one of them, or dtype: f32");
  for (const char* dtype : {"", "dtype: f32\n", "dtype: f16\n"}) EXPECT_EQ(faults(dtype), "") << dtype;
}

TEST(ModelOptionsTest, KeysThatTheOptimizerIgnoresAreRefused) {
  const auto faults_of_training = [](const std::string& options) {
    return faults_of("shardplan: 1\ninputs: {x: [8]}\noperators: {a: {op: ReduceSum, in: x}}\nloss: a\ntraining: {" +
                     options + "}\n");
  };
  EXPECT_EQ(faults_of_training("optimizer: momentum, momentum: 0.8"), "");
  EXPECT_EQ(faults_of_training("optimizer: adam, beta1: 0.8, beta2: 0.9, eps: 1e-6"), "");
  EXPECT_EQ(faults_of_training("optimizer: AdamWeightDecay, beta1: 0.8"), "");
  EXPECT_EQ(faults_of_training("optimizer: adamw, momentum: 0.8"),
            "m.yaml:5:40: error: training: momentum is for optimizer momentum; adamw does not use it");
  EXPECT_EQ(faults_of_training("optimizer: adam, beta1: 0"), "");
  EXPECT_EQ(faults_of_training("optimizer: adamw, beta1: 1, beta2: 1"),
            "m.yaml:5:37: error: training: beta1 is '1'; expected a number from 0 to below 1\n"
            "m.yaml:5:47: error: training: beta2 is '1'; expected a number from 0 to below 1");
  for (const char* key : {"beta1", "beta2", "eps"}) {
    for (const char* optimizer : {"sgd", "momentum"}) {
      const std::string found = faults_of_training(std::string("optimizer: ") + optimizer + ", " + key + ": 0.5");
      EXPECT_NE(found.find(std::string(key) + " is for optimizer adam and adamw; " + optimizer), std::string::npos)
          << found;
    }
  }
}

/// What set_auto_parallel_context knows and the section does not: one error that says what to write.
TEST(ModelOptionsTest, OtherWordsOfMindSporesContextAreExplained) {
  const std::pair<const char*, const char*> kWords[] = {
      {"global_rank: 0", "`--rank R`"},
      {"auto_parallel_search_mode: sharding_propagation", "search_mode"},
      {"all_reduce_fusion_config: [20, 35]", "comm_fusion: {allreduce: {mode: index"},
      {"strategy_ckpt_config: {save_file: s.json}", "strategy_ckpt_save_file"},
      {"grad_accumulation_step: 4", "micro_batches"},
      {"pipeline_stages: 2", "place: {rank: W}"},
      {"parallel_optimizer_config: {gradient_accumulation_shard: true}", "gradient_accumulation_shard stands under"},
      {"mode: pynative", "at the top of the file"},
      {"save_graphs: 2", "--out"},
  };
  for (const auto& [option, hint] : kWords) {
    const std::string found = faults_of_parallel(option);
    EXPECT_EQ(found.find("m.yaml:4:12: error: parallel: there is no '"), 0u) << found;
    EXPECT_NE(found.find(hint), std::string::npos) << found;
    EXPECT_EQ(found.find("unknown key"), std::string::npos) << found;
    EXPECT_EQ(found.find("error", found.find("error") + 1), std::string::npos) << "one error: " << found;
  }
}

/// Options of MindSpore's Cell.recompute, wherever they are written.
TEST(ModelOptionsTest, OptionsOfRecomputationAreExplained) {
  expect_has(faults_of_parallel("mp_comm_recompute: true"), "gather_again: true or false says whether");
  expect_has(faults_of("shardplan: 1\ninputs: {x: [8]}\noperators: {a: {op: ReduceSum, in: x}}\nloss: a\n"
                       "training: {optimizer: sgd, parallel_optimizer_comm_recompute: true}\n"),
             "reshard_after_forward: true or false} says whether weights are gathered again");
  expect_has(faults_of("shardplan: 1\ninputs: {x: [8]}\noperators: {a: {op: ReLU, in: x, mp_comm_recompute: true}}\n"),
             "a: unknown key 'mp_comm_recompute'\n    gather_again: true or false says whether");
}

TEST(ModelOptionsTest, CommunicationFusionNeedsGradients) {
  EXPECT_EQ(faults_of_parallel("comm_fusion: {allreduce: {mode: auto}}").substr(0, 75),
            "m.yaml:4:25: error: parallel: comm_fusion joins collectives of gradients an");
  EXPECT_EQ(faults_of_parallel("comm_fusion: {allreduce: {mode: fast}}").substr(0, 99),
            "m.yaml:4:44: error: parallel: comm_fusion: allreduce: mode is 'fast'; expected auto, size, index or");
}

constexpr char kTrained[] = R"(shardplan: 1
inputs: {x: [8, 8]}
parameters: {w: {shape: [8, 8]W}}
operators: {a: {block: nn.Dense, in: x, out_channels: 8A}, b: {op: MatMul, in: [a, w]B}, loss: {op: ReduceSum, in: b}}
loss: loss
training: {optimizer: sgd}
parallel: {P}
)";

std::string trained(const std::string& w, const std::string& a, const std::string& b, const std::string& parallel) {
  std::string text = kTrained;
  text.replace(text.find("W}"), 1, w);
  text.replace(text.find("8A}") + 1, 1, a);
  text.replace(text.find("]B}") + 1, 1, b);
  text.replace(text.find("{P}") + 1, 1, parallel);
  return text;
}

TEST(ModelOptionsTest, FusionIdsOfBlocksAndParameters) {
  const Model model = read(trained(", comm_fusion: 3", ", comm_fusion: 2", "", "level: 0"));
  EXPECT_EQ(tensor_of(model.graph, "w").comm_fusion, 3);
  EXPECT_EQ(tensor_of(model.graph, "a.weight").comm_fusion, 2);
  EXPECT_EQ(tensor_of(model.graph, "a.bias").comm_fusion, 2);
  EXPECT_EQ(tensor_of(read(trained("", "", "", "level: 0")).graph, "w").comm_fusion, std::nullopt);
  EXPECT_EQ(faults_of(trained("", "", ", comm_fusion: 1", "level: 0")),
            "m.yaml:4:100: error: b is an operator and has no parameters of its own; comm_fusion is for a block or a "
            "parameter");
  EXPECT_EQ(faults_of(trained(", comm_fusion: -1", "", "", "level: 0")).substr(0, 61),
            "m.yaml:3:46: error: w: comm_fusion is '-1'; expected a whole ");
  EXPECT_EQ(faults_of(trained(", comm_fusion: 1, requires_grad: false", "", "", "level: 0")),
            "m.yaml:3:46: error: w: comm_fusion is the fusion id of its gradient, but it is not trained");
}

TEST(ModelOptionsTest, KeysOfTrainingAreRefusedWhereNothingOfABlockIsTrained) {
  const auto fault = [](const std::string& a) { return faults_of(trained("", a, "", "level: 0")); };
  for (const std::string key : {"comm_fusion: 1", "state_dtype: bf16", "gradient_dtype: bf16"}) {
    EXPECT_EQ(fault(", " + key).find("nothing of it is trained"), std::string::npos) << key;
    const std::string name = key.substr(0, key.find(':'));
    EXPECT_NE(
        fault(", requires_grad: false, " + key).find("a: " + name + " is of training, but nothing of it is trained"),
        std::string::npos)
        << key;
  }
}

}  // namespace
}  // namespace shardplan
