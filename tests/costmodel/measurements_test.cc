#include "costmodel/calibration/measurements.h"

#include <gtest/gtest.h>

#include "operators/operator_type.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

TEST(MeasurementsTest, ReadsTheExampleOfTheHeader) {
  const Measurements read = read_measurements_text(R"(shardplan: 1
operators:
  - {op: MatMul, dtype: bf16, operands: [[8192, 4096], [4096, 4096]], time: 1.3 ms}
  - {op: Softmax, dtype: f16, operands: [[64, 1024, 1024]], axis: -2, time: 160 us}
collectives:
  - {collective: all_reduce, level: nvlink, devices: 8, bytes: 256 MiB, time: 2.1 ms}
  - {collective: permute, level: nvlink, devices: 2, bytes: 1 MB, time: 5 us}
)",
                                                   "m.yaml", read_cluster("dgx-a100"));
  ASSERT_EQ(read.operators.size(), 2u);
  const Operation& matmul = read.operators[0].operation;
  EXPECT_EQ(matmul.type->name, "MatMul");
  EXPECT_EQ(matmul.operands,
            (std::vector<TensorType>{{{8192, 4096}, DataType::kBF16}, {{4096, 4096}, DataType::kBF16}}));
  EXPECT_EQ(matmul.results, (std::vector<TensorType>{{{8192, 4096}, DataType::kBF16}}));
  EXPECT_EQ(read.operators[0].time, 1'300'000'000);
  EXPECT_EQ(read.operators[1].operation.integer("axis"), -2);
  EXPECT_EQ(read.operators[1].operation.operands[0].dtype, DataType::kF16);
  ASSERT_EQ(read.collectives.size(), 2u);
  EXPECT_EQ(read.collectives[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(read.collectives[0].level, "nvlink");
  EXPECT_EQ(read.collectives[0].devices, 8);
  EXPECT_EQ(read.collectives[0].bytes, std::int64_t{256} << 20);
  EXPECT_EQ(read.collectives[0].time, 2'100'000'000);
  EXPECT_EQ(read.collectives[1].kind, CollectiveKind::kCollectivePermute);
}

TEST(MeasurementsTest, OperandsMayHaveDifferentTypes) {
  const auto read = [](const std::string& dtype) {
    return read_measurements_text("shardplan: 1\noperators:\n  - {op: Gather, dtype: " + dtype +
                                      ", operands: [[1000, 64], [32]], axis: 0, time: 8 us}\n",
                                  "m.yaml", read_cluster("dgx-a100"));
  };
  EXPECT_EQ(read("[bf16, i32]").operators[0].operation.operands,
            (std::vector<TensorType>{{{1000, 64}, DataType::kBF16}, {{32}, DataType::kI32}}));
  EXPECT_EQ(error_of([&] { read("[bf16]"); }),
            "m.yaml:3:25: error: dtype: a list of 1; expected one type, or one for each of 2 operands");
}

TEST(MeasurementsTest, FaultsNameTheirPlace) {
  const auto fault = [](const char* text) {
    return error_of([&] { read_measurements_text(text, "m.yaml", read_cluster("dgx-a100")); });
  };
  EXPECT_EQ(fault("shardplan: 1\n"), "m.yaml:1:1: error: no measurement; expected operators or collectives");
  EXPECT_EQ(fault("shardplan: 1\nmodel: m\ninputs: {x: [8]}\noperators: {a: {op: ReLU, in: x}}\n"),
            "m.yaml:2:8: error: this file describes a model, not measurements; expected the keys operators and "
            "collectives");
  EXPECT_EQ(fault("shardplan: 1\noperators:\n  - {op: MatMule, dtype: bf16, operands: [[8, 8]], time: 1 us}\n"),
            "m.yaml:3:10: error: op: no operator 'MatMule'; `shardplan operators` lists them");
  EXPECT_EQ(fault("shardplan: 1\noperators:\n  - {op: GeLU, dtype: bf16, operands: [[8, 8]], time: 0 us}\n"),
            "m.yaml:3:55: error: time: '0 us' is nothing; expected more");
  EXPECT_EQ(fault("shardplan: 1\ncollectives:\n  - {collective: all_reduce, level: nvlink, devices: 3, bytes: 1 MiB, "
                  "time: 1 us}\n"),
            "m.yaml:3:54: error: devices: 3 of level nvlink; expected 2 or more that divide 8");
}

TEST(MeasurementsTest, AllFaultsAreFoundAtOnce) {
  EXPECT_EQ(error_of([] {
              read_measurements_text(R"(shardplan: 2
operators:
  - {op: GeLU, dtype: bf61, operands: [[8, 8]], time: 1 us}
  - {op: GeLU, dtype: bf16, operands: [[8, 0]], time: 1 us}
  - {op: GeLU, dtype: bf16, operands: 8, time: 1 us}
  - {op: MatMul, dtype: bf16, operands: [[8, 8], [4, 4]], time: 1 us}
  - 7
collectives:
  - {collective: slice, level: nvlink, devices: 8, bytes: 1 MiB, time: 1 us}
  - {collective: all_reduce, level: nv, devices: 8, bytes: 1 MiB, time: 1 us}
  - {collective: all_reduce, level: nvlink, devices: 8, time: 1 us}
)",
                                     "m.yaml", read_cluster("dgx-a100"));
            }),
            R"(m.yaml:1:12: error: shardplan: expected the version of the format, 1
m.yaml:3:23: error: dtype is 'bf61'; expected f64, f32, f16, bf16, f8e4m3, i64, i32, i8, u8 or bool
m.yaml:4:44: error: operands: a size is 0
m.yaml:5:39: error: operands: expected a list of shapes
m.yaml:6:5: error: MatMul: the summed dimensions of [8, 8] and [4, 4] differ: 8 and 4
m.yaml:7:5: error: operators: expected a map, found '7'
m.yaml:9:18: error: collective: 'slice'; expected all_gather, reduce_scatter, all_reduce, all_to_all or collective_permute
m.yaml:10:37: error: level: dgx-a100 has no level 'nv'
m.yaml:11:5: error: bytes: missing)");
}

}  // namespace
}  // namespace shardplan
