// The worked examples of the documentation, and the roofline.
#include "costmodel/roofline_costs.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "base/error.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

RooflineCosts model_of(const char* cluster) {
  const Cluster read = read_cluster(cluster);
  return RooflineCosts(read, make_mesh(read));
}

TEST(RooflineCostsTest, WorkedExamplesOfTheDocumentation) {
  const RooflineCosts ascend = model_of("ascend-910");
  const std::vector<AxisRef> all = {ascend.mesh().whole(0), ascend.mesh().whole(1)};
  // hccs: 3 x 5 us + 3/4 x 28.4 MB / 72 GB/s; pcie on a quarter: 10 us + 1/2 x 7.1 MB / 6.4 GB/s; both twice.
  EXPECT_EQ(format_time(ascend.collectives()->time(CollectiveKind::kAllReduce, all, 28'400'000)), "1.75 ms");
  EXPECT_EQ(ascend.collectives()->time(CollectiveKind::kAllReduce, all, 28'800'000),
            2 * (15'000'000 + 300'000'000 + 10'000'000 + 562'500'000));
  EXPECT_EQ(format_time(ascend.collectives()->time(CollectiveKind::kReduceScatter, all, 2048)), "25.1 us");
  // Redistribution of f32 [16, 8] on x=2, y=4: all_to_all over y:(2)2, 64 B a device; permute over x, y, 64 B a device.
  EXPECT_EQ(format_time(ascend.collectives()->time(CollectiveKind::kAllToAll, {{1, 2, 2}}, 128)), "5.00 us");
  EXPECT_EQ(format_time(ascend.collectives()->time(CollectiveKind::kCollectivePermute, all, 512)), "10.0 us");

  const RooflineCosts a100 = model_of("dgx-a100x8");
  EXPECT_EQ(format_time(a100.collectives()->time(CollectiveKind::kAllReduce, {a100.mesh().whole(0)}, 1'000'000'000)),
            "81.6 ms");
  EXPECT_EQ(format_time(a100.collectives()->time(CollectiveKind::kAllReduce, {a100.mesh().whole(1)}, 1'000'000'000)),
            "7.58 ms");
}

TEST(RooflineCostsTest, PublishedCollectivesAreNear) {
  Cluster four_ports = read_cluster("dgx-a100x2");  // 4 ports of 200 Gb/s for 8 devices
  four_ports.levels[0].bandwidth /= 2;
  const struct {
    const char* what;
    Cluster cluster;
    CollectiveKind kind;
    Bytes bytes;
    double published_us;
    double least, most;  // of predicted over published
  } kCases[] = {
      {"AutoParallel's table, 8 H100: all_gather at 394 GB/s and 30 us", read_cluster("dgx-h100"),
       CollectiveKind::kAllGather, 1'000'000'000, 1e9 / 394e3 + 30, 0.92, 1.02},
      {"the same, reduce_scatter of 1 GiB", read_cluster("dgx-h100"), CollectiveKind::kReduceScatter, 1 << 30, 2642,
       0.95, 1.02},
      {"the same, all_reduce of 1 MiB", read_cluster("dgx-h100"), CollectiveKind::kAllReduce, 1 << 20, 28, 0.9, 1.0},
      {"NCCL issue 1048, 8 A100: bus bandwidth 232.54 GB/s", read_cluster("dgx-a100"), CollectiveKind::kAllReduce,
       4'000'000'000, 1.75 * 4e9 / 232.54e3, 0.99, 1.01},
      {"the same, 2 nodes with 4 ports each: 86 GB/s", four_ports, CollectiveKind::kAllReduce, 4'000'000'000,
       2 * 15.0 / 16 * 4e9 / 86e3, 0.85, 1.0},
      {"NCCL issue 1218, 32 x 8 H100: 340 GB/s", read_cluster("dgx-h100x32"), CollectiveKind::kAllReduce,
       std::int64_t{1} << 31, 2 * 255.0 / 256 * 2147483648.0 / 340e3, 1.0, 1.05},
  };
  for (const auto& test : kCases) {
    const RooflineCosts model(test.cluster, make_mesh(test.cluster));
    std::vector<AxisRef> all;
    for (std::size_t axis = 0; axis < model.mesh().axes().size(); ++axis) all.push_back(model.mesh().whole(axis));
    const double predicted = static_cast<double>(model.collectives()->time(test.kind, all, test.bytes)) / 1e6;
    std::printf("  %-66s predicted %8.0f us, published %8.0f us\n", test.what, predicted, test.published_us);
    EXPECT_GE(predicted / test.published_us, test.least) << test.what;
    EXPECT_LE(predicted / test.published_us, test.most) << test.what;
  }
}

Operation typed_operation(const char* type, std::vector<TensorType> operands, const Attributes& attributes = {}) {
  return make_operation(*find_operator_type(type), attributes, std::move(operands));
}

Picoseconds computation(const RooflineCosts& model, const Operation& operation, Bytes bytes) {
  std::vector<std::int64_t> extents;
  for (const Factor& factor : operation.rule.factors) extents.push_back(factor.size);
  return model.computation(operation, extents, bytes);
}

TEST(RooflineCostsTest, ComputationIsTheLargerOfOperationsAndBytes) {
  Cluster cluster = read_cluster("ascend-910");  // f16 256 TFLOP/s, 1.2 TB/s x 0.8, start 5 us
  cluster.device.matmul_efficiency_ppm = 500'000;
  cluster.device.matrix_units = {};  // all shapes alike
  const RooflineCosts ascend(cluster, make_mesh(cluster));
  const auto f16 = DataType::kF16;
  const Operation matmul = typed_operation("MatMul", {{{1024, 1024}, f16}, {{1024, 1000}, f16}});
  EXPECT_EQ(computation(ascend, matmul, 0), 5'000'000 + 16'384'000);  // 2 x 1024 x 1024 x 1000 / 128 TFLOP/s
  EXPECT_EQ(computation(ascend, matmul, 96'000'000), 5'000'000 + 100'000'000);
  const std::vector<std::int64_t> half = {512, 1024, 1000};
  ASSERT_EQ(matmul.rule.factors.size(), 3u);
  EXPECT_EQ(ascend.computation(matmul, half, 0), 5'000'000 + 8'192'000);

  const Operation relu = typed_operation("ReLU", {{{1'000'000}, f16}});
  EXPECT_EQ(computation(ascend, relu, 4'000'000), 5'000'000 + 4'166'667);  // by bytes, rounded up
  EXPECT_EQ(
      computation(ascend, typed_operation("Reshape", {{{8, 2}, f16}}, {{"shape", std::vector<std::int64_t>{16}}}), 64),
      0);
}

TEST(RooflineCostsTest, FusedAttentionHasAnEfficiencyOfItsOwn) {
  Cluster cluster = read_cluster("dgx-a100");
  const TensorType x = {{1, 8, 4096, 128}, DataType::kBF16};
  const Operation attention = make_operation(*find_operator_type("FlashAttention"), {}, {x, x, x});
  std::vector<std::int64_t> extents;
  for (const Factor& factor : attention.rule.factors) extents.push_back(factor.size);
  const auto time = [&] {
    return RooflineCosts(cluster, make_mesh(cluster)).computation(attention, extents, 3 * x.bytes());
  };
  cluster.device.attention_efficiency_ppm.reset();
  const Picoseconds as_matmul = time() - cluster.device.start;
  cluster.device.attention_efficiency_ppm = cluster.device.matmul_efficiency_ppm / 2;
  EXPECT_NEAR(static_cast<double>(time() - cluster.device.start), 2.0 * static_cast<double>(as_matmul), 4);
  // Starting a row takes as long as a fixed number of keys: an eighth of 4096.
  cluster.device.attention_fill = 0;
  const Picoseconds without = time() - cluster.device.start;
  cluster.device.attention_fill = 512;
  EXPECT_NEAR(static_cast<double>(time() - cluster.device.start), 1.125 * static_cast<double>(without), 4);
  // In a phase over the 512 keys of one device it takes as long as the keys do.
  const Operation part = make_operation(*find_operator_type("AttentionPart"), {{"pieces", std::int64_t{8}}}, {x, x, x});
  std::vector<std::int64_t> of_one;
  for (const Factor& factor : part.rule.factors) of_one.push_back(factor.name == "t" ? 1 : factor.size);
  const auto part_time = [&] { return RooflineCosts(cluster, make_mesh(cluster)).computation(part, of_one, 0); };
  cluster.device.start = 0;
  const Picoseconds filled = part_time();
  cluster.device.attention_fill = 0;
  EXPECT_NEAR(static_cast<double>(filled), 2.0 * static_cast<double>(part_time()), 4);
}

TEST(RooflineCostsTest, ProductsOfF32MayBeComputedInTf32) {
  Cluster cluster = read_cluster("dgx-a100");  // f32 19.5 TFLOP/s, TF32 156
  cluster.device.start = 0;
  cluster.device.matmul_f32_efficiency_ppm.reset();
  const auto product_of = [](DataType dtype) {
    return typed_operation("MatMul", {{{4096, 4096}, dtype}, {{4096, 4096}, dtype}});
  };
  const auto convolution_of = [](DataType dtype) {
    return typed_operation("Conv2D", {{{32, 256, 28, 28}, dtype}, {{256, 256, 3, 3}, dtype}},
                           {{"pad_mode", std::string("same")}});
  };
  const auto speedup = [&](const Operation& operation, Tf32 tf32) {
    const auto time = [&](Tf32 chosen) {
      cluster.tf32 = chosen;
      return static_cast<double>(computation(RooflineCosts(cluster, make_mesh(cluster)), operation, 0));
    };
    return time(Tf32::kNone) / time(tf32);
  };
  EXPECT_NEAR(speedup(product_of(DataType::kF32), Tf32::kAll), 8, 1e-3);
  EXPECT_EQ(speedup(product_of(DataType::kF32), Tf32::kConvolutions), 1);
  EXPECT_NEAR(speedup(convolution_of(DataType::kF32), Tf32::kConvolutions), 8, 1e-3);
  EXPECT_NEAR(speedup(convolution_of(DataType::kF32), Tf32::kAll), 8, 1e-3);
  EXPECT_EQ(speedup(product_of(DataType::kBF16), Tf32::kAll), 1) << "other types keep their rate";
  EXPECT_EQ(speedup(typed_operation("Exp", {{{1 << 20}, DataType::kF32}}), Tf32::kAll), 1) << "no product";
}

TEST(RooflineCostsTest, ConvolutionsAndShapesHaveEfficienciesOfTheirOwn) {
  Cluster cluster = read_cluster("dgx-a100");
  cluster.device.start = 0;
  cluster.device.matrix_units = {};
  const auto time = [&](const Operation& operation) {
    return computation(RooflineCosts(cluster, make_mesh(cluster)), operation, 0);
  };
  const Operation convolution =
      typed_operation("Conv2D", {{{32, 256, 28, 28}, DataType::kF16}, {{256, 256, 3, 3}, DataType::kF16}},
                      {{"pad_mode", std::string("same")}});
  const Operation product = typed_operation("MatMul", {{{16384, 4096}, DataType::kF16}, {{4096, 512}, DataType::kF16}});
  cluster.device.convolution_efficiency_ppm = cluster.device.matmul_efficiency_ppm;
  const Picoseconds whole = time(convolution), plain = time(product);
  cluster.device.convolution_efficiency_ppm = cluster.device.matmul_efficiency_ppm / 2;
  EXPECT_NEAR(static_cast<double>(time(convolution)), 2.0 * static_cast<double>(whole), 4);
  EXPECT_EQ(time(product), plain);
  cluster.device.matrix_units = {108, 128, 0};  // 512 tiles take five waves
  EXPECT_NEAR(static_cast<double>(time(product)), 540.0 / 512 * static_cast<double>(plain),
              1e-6 * static_cast<double>(plain));
}

/// A device without starts and tiles, whose matmuls reach half of their rate.
Cluster plain_cluster(const char* preset) {
  Cluster cluster = read_cluster(preset);
  cluster.device.start = 0;
  cluster.device.matrix_units = {};
  cluster.device.matmul_efficiency_ppm = 500'000;
  return cluster;
}

/// The time of a product of two matrices of 4096 x 4096 elements, into bf16 or f32.
constexpr double kSquareProduct = 2.0 * 4096 * 4096 * 4096;
double square_product_time(const Cluster& cluster, DataType type) {
  const Attributes into = {{"dtype", std::string(type == DataType::kF32 ? "f32" : "bf16")}};
  const Operation product = typed_operation("MatMul", {{{4096, 4096}, type}, {{4096, 4096}, type}}, into);
  return static_cast<double>(computation(RooflineCosts(cluster, make_mesh(cluster)), product, 0));
}

TEST(RooflineCostsTest, MatmulsOfF32HaveAnEfficiencyOfTheirOwn) {
  Cluster cluster = plain_cluster("dgx-a100");
  cluster.device.matmul_f32_efficiency_ppm = 1'000'000;
  const auto time = [&](DataType type) { return square_product_time(cluster, type); };
  EXPECT_NEAR(time(DataType::kF32), kSquareProduct / 19.5, 1);
  EXPECT_NEAR(time(DataType::kBF16), kSquareProduct / (0.5 * 312), 1);
  cluster.tf32 = Tf32::kAll;
  EXPECT_NEAR(time(DataType::kF32), kSquareProduct / (0.5 * 156), 1) << "by matrix units";
  cluster.tf32 = Tf32::kNone;
  cluster.device.matmul_f32_efficiency_ppm.reset();
  EXPECT_NEAR(time(DataType::kF32), kSquareProduct / (0.5 * 19.5), 1);
}

TEST(RooflineCostsTest, MatmulsOfF8HaveAnEfficiencyOfTheirOwn) {
  Cluster cluster = plain_cluster("dgx-h100");
  cluster.device.matmul_f8_efficiency_ppm = 800'000;
  const auto time = [&](DataType type) { return square_product_time(cluster, type); };
  EXPECT_NEAR(time(DataType::kF8E4M3), kSquareProduct / (0.8 * 1979), 1);
  EXPECT_NEAR(time(DataType::kBF16), kSquareProduct / (0.5 * 989), 1);
  cluster.device.matmul_f8_efficiency_ppm.reset();
  EXPECT_NEAR(time(DataType::kF8E4M3), kSquareProduct / (0.5 * 1979), 1);
  EXPECT_THROW(computation(RooflineCosts(read_cluster("dgx-a100"), make_mesh(read_cluster("dgx-a100"))),
                           typed_operation("MatMul", {{{8, 8}, DataType::kF8E4M3}, {{8, 8}, DataType::kF8E4M3}}), 0),
               InputError)
      << "an A100 cannot";
}

TEST(RooflineCostsTest, RowsOfAnOddLengthAreSlowUnlessACompilerPadsThem) {
  Cluster cluster = read_cluster("dgx-a100");
  cluster.device.start = 0;
  cluster.device.matrix_units = {108, 128, 0};
  cluster.device.matmul_efficiency_ppm = 600'000;
  cluster.device.odd_rows_efficiency_ppm = 200'000;
  const auto time = [&](std::int64_t rows, std::int64_t n, DataType type = DataType::kBF16, std::int64_t k = 1024) {
    const Operation product = typed_operation("MatMul", {{{rows, k}, type}, {{k, n}, type}});
    return static_cast<double>(computation(RooflineCosts(cluster, make_mesh(cluster)), product, 0));
  };
  const auto operations = [](double rows, double n) { return 2 * rows * 1024 * n; };
  const double padded = time(8192, 50257), small = time(49, 49, DataType::kBF16, 32);
  cluster.fusion = Fusion::kLibrary;
  EXPECT_NEAR(time(8192, 50257), operations(8192, 50257) / (0.2 * 312), 1);
  EXPECT_GT(time(8192, 50257), 2.5 * padded);
  EXPECT_NEAR(time(8192, 50258), padded, 1e-3 * padded) << "rows of whole four bytes";
  EXPECT_NEAR(time(8191, 50258), padded, 1e-3 * padded) << "the number of rows does not matter";
  EXPECT_EQ(time(49, 49, DataType::kBF16, 32), small) << "as slow by its tile";
  const double in_f32 = time(8192, 50257, DataType::kF32);
  cluster.fusion = Fusion::kElementwise;
  EXPECT_EQ(time(8192, 50257, DataType::kF32), in_f32);
}

TEST(RooflineCostsTest, NarrowGroupsOfChannelsAreConvolvedByVectorUnits) {
  Cluster cluster = read_cluster("dgx-a100");
  cluster.device.start = 0;
  cluster.device.depthwise_efficiency_ppm = 50'000;  // of 19.5 TFLOP/s
  cluster.device.depthwise_fill = 0;
  const auto time_of = [&](const Operation& operation) {
    return static_cast<double>(computation(RooflineCosts(cluster, make_mesh(cluster)), operation, 0));
  };
  const auto time = [&](std::int64_t in_group) {
    return time_of(typed_operation("Conv2D",
                                   {{{32, 256, 28, 28}, DataType::kF16}, {{256, in_group, 3, 3}, DataType::kF16}},
                                   {{"pad_mode", std::string("same")}, {"group", 256 / in_group}}));
  };
  const auto direct = [](double in_group) { return 2.0 * 32 * 256 * 28 * 28 * 9 * in_group / (0.05 * 19.5); };
  for (const int in_group : {1, 4}) {
    EXPECT_NEAR(time(in_group), direct(in_group), 1) << in_group << " channels in a group";
  }
  EXPECT_LT(time(8), direct(8) / 4) << "as wide as a block of the matrix units";
  // The same work backward, also if the stride does not divide the images.
  const auto gradient_time = [&](std::int64_t size) {
    return time_of(
        typed_operation("Conv2DBackpropInput",
                        {{{32, 256, (size + 1) / 2, (size + 1) / 2}, DataType::kF16}, {{256, 1, 3, 3}, DataType::kF16}},
                        {{"pad_mode", std::string("same")},
                         {"group", std::int64_t{256}},
                         {"stride", std::vector<std::int64_t>{2, 2}},
                         {"input_size", std::vector<std::int64_t>{size, size}}}));
  };
  EXPECT_NEAR(gradient_time(56), direct(1), 1);
  EXPECT_NEAR(gradient_time(55), direct(1), 1);
  // An element of the result takes as long to start as a number of products: here as the nine of its window.
  cluster.device.depthwise_fill = 9;
  EXPECT_NEAR(time(1), 2 * direct(1), 2);
  EXPECT_NEAR(time(4), 1.25 * direct(4), 2);
  EXPECT_NEAR(gradient_time(55), 2 * direct(1), 2);
  const Operation short_line =
      typed_operation("Conv2D", {{{32, 256, 1, 784}, DataType::kF16}, {{256, 1, 1, 4}, DataType::kF16}},
                      {{"pad_mode", std::string("same")}, {"group", std::int64_t{256}}});
  EXPECT_NEAR(time_of(short_line), 0.05 * 4 / 9 * direct(1), 1) << "by kernels of its own";
  // Without that efficiency as a product with few columns.
  cluster.device.depthwise_efficiency_ppm.reset();
  EXPECT_LT(gradient_time(55), 2.1 * gradient_time(56));
}

TEST(RooflineCostsTest, ADtypeThatTheDeviceLacksIsAnError) {
  const RooflineCosts ascend = model_of("ascend-910");
  const auto error = [&](const Operation& operation) -> std::string {
    try {
      computation(ascend, operation, 8);
    } catch (const InputError& fault) {
      return fault.what();
    }
    return "no error";
  };
  const auto bf16 = DataType::kBF16;
  EXPECT_EQ(error(typed_operation("MatMul", {{{2, 2}, bf16}, {{2, 2}, bf16}})),
            "error: MatMul in bf16: Ascend 910 (cluster ascend-910) does not compute bf16; it has f32, f16, i8");
  EXPECT_EQ(error(typed_operation("ReLU", {{{2}, bf16}})),
            "error: ReLU in bf16: Ascend 910 (cluster ascend-910) does not compute bf16; it has f32, f16, i8");
  EXPECT_EQ(error(typed_operation("ReLU", {{{2}, DataType::kF16}})), "no error");
  // Integers and booleans are moved, whatever the device's compute rates are.
  EXPECT_EQ(computation(ascend, typed_operation("Equal", {{{2}, DataType::kI32}, {{2}, DataType::kI32}}), 960'000),
            6'000'000);
}

}  // namespace
}  // namespace shardplan
