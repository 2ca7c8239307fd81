// Measurements are made from known constants, and calibrate must recover these constants.
#include "costmodel/calibration/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "tests/support/text.h"

namespace shardplan {
namespace {

constexpr const char* kTrueCluster = R"(
shardplan: 1
cluster: truth
device:
  name: D
  memory: {capacity: 80 GiB, bandwidth: 2 TB/s}
  flops: {bf16: 300 TFLOP/s, f8e4m3: 600 TFLOP/s, f32: 20 TFLOP/s}
  efficiency: {matmul: 0.71, matmul_f32: 0.93, matmul_f8: 0.61, odd_rows: 0.2, attention: 0.43, convolution: 0.37, depthwise: 0.06, memory: 0.82}
  matrix_units: {count: 108, tile: 128, fill: 100}
  start: 7 us
levels:
  - {name: net, count: 4, latency: 23 us, bandwidth: 200 Gb/s, efficiency: 0.64}
  - {name: fast, count: 8, latency: 3 us, bandwidth: 300 GB/s, efficiency: 0.77}
)";

/// The same machine with the constants one would assume.
Cluster assumed_cluster() {
  Cluster cluster = read_cluster_text(kTrueCluster, "truth.yaml");
  cluster.device.start = 1'000'000;
  cluster.device.matmul_efficiency_ppm = 500'000;
  cluster.device.memory_efficiency_ppm = 600'000;
  cluster.device.matmul_f32_efficiency_ppm.reset();
  cluster.device.matmul_f8_efficiency_ppm.reset();
  cluster.device.odd_rows_efficiency_ppm.reset();
  cluster.device.attention_efficiency_ppm.reset();
  cluster.device.convolution_efficiency_ppm.reset();
  cluster.device.depthwise_efficiency_ppm.reset();
  for (ClusterLevel& level : cluster.levels) {
    level.latency = 10'000'000;
    level.efficiency_ppm = 900'000;
  }
  return cluster;
}

/// The measurements, with placeholder times to be replaced.
Measurements measured_workload(const Cluster& cluster) {
  std::string text = "shardplan: 1\noperators:\n";
  for (const int size : {512, 1024, 2048, 4096, 8192}) {
    text += fmt::format("  - {{op: MatMul, dtype: bf16, operands: [[{0}, 4096], [4096, {0}]], time: 1 us}}\n", size);
    text += fmt::format("  - {{op: GeLU, dtype: bf16, operands: [[{}, 8192]], time: 1 us}}\n", size);
    text += fmt::format(
        "  - {{op: FlashAttention, dtype: bf16, operands: [[4, 16, {0}, 128], [4, 16, {0}, 128], [4, 16, {0}, 128]], "
        "causal: true, time: 1 us}}\n",
        size);
    text += fmt::format(
        "  - {{op: Conv2D, dtype: bf16, operands: [[{}, 256, 28, 28], [256, 256, 3, 3]], pad_mode: same, time: 1 "
        "us}}\n",
        size / 16);
  }
  for (const int batch : {32, 128, 512}) {
    text += fmt::format(
        "  - {{op: Conv2D, dtype: bf16, operands: [[{}, 256, 28, 28], [256, 1, 3, 3]], group: 256, pad_mode: same, "
        "time: 1 us}}\n",
        batch);
  }
  for (const int size : {1024, 2048, 4096}) {
    text += fmt::format("  - {{op: MatMul, dtype: f32, operands: [[{0}, 4096], [4096, {0}]], time: 1 us}}\n", size);
    text += fmt::format("  - {{op: MatMul, dtype: bf16, operands: [[{0}, 4096], [4096, {1}]], time: 1 us}}\n", size,
                        size + 1);
    text += fmt::format("  - {{op: MatMul, dtype: f8e4m3, operands: [[{0}, 4096], [4096, {0}]], time: 1 us}}\n", size);
  }
  text += "collectives:\n";
  for (const char* level : {"net", "fast"}) {
    for (const char* bytes : {"64 KiB", "1 MiB", "16 MiB", "256 MiB"}) {
      for (const char* kind : {"all_reduce", "all_gather"}) {
        text +=
            fmt::format("  - {{collective: {}, level: {}, devices: 4, bytes: {}, time: 1 us}}\n", kind, level, bytes);
      }
    }
  }
  return read_measurements_text(text, "m.yaml", cluster);
}

void set_times(Measurements& measured, const std::vector<Picoseconds>& times) {
  std::size_t at = 0;
  for (OperatorMeasurement& m : measured.operators) m.time = times[at++];
  for (CollectiveMeasurement& m : measured.collectives) m.time = times[at++];
}

/// The workload with the times of the true machine, each with an error of up to `noise`.
Measurements measurements_of_truth(std::uint64_t seed, double noise) {
  const Cluster truth = read_cluster_text(kTrueCluster, "truth.yaml");
  Measurements result = measured_workload(truth);
  std::vector<Picoseconds> times = modelled_times(truth, result);
  Random random(seed);
  for (Picoseconds& time : times) {
    const double factor = 1 + noise * (2 * random.unit() - 1);
    time = static_cast<Picoseconds>(static_cast<double>(time) * factor);
  }
  set_times(result, times);
  return result;
}

void expect_found(const Cluster& found, double tolerance, std::uint64_t seed) {
  const Cluster truth = read_cluster_text(kTrueCluster, "truth.yaml");
  const auto expect_near = [&](const char* name, std::int64_t value, std::int64_t true_value) {
    const auto wanted = static_cast<double>(true_value);
    EXPECT_NEAR(static_cast<double>(value), wanted, tolerance * wanted) << name << ", seed " << seed;
  };
  expect_near("start", found.device.start, truth.device.start);
  expect_near("memory", found.device.memory_efficiency_ppm, truth.device.memory_efficiency_ppm);
  expect_near("matmul", found.device.matmul_efficiency_ppm, truth.device.matmul_efficiency_ppm);
  expect_near("matmul_f32", found.device.matmul_f32_efficiency_ppm.value_or(0), 930'000);
  expect_near("matmul_f8", found.device.matmul_f8_efficiency_ppm.value_or(0), 610'000);
  expect_near("odd_rows", found.device.odd_rows_efficiency_ppm.value_or(0), 200'000);
  expect_near("attention", found.device.attention_efficiency_ppm.value_or(0), 430'000);
  expect_near("convolution", found.device.convolution_efficiency_ppm.value_or(0), 370'000);
  expect_near("depthwise", found.device.depthwise_efficiency_ppm.value_or(0), 60'000);
  for (std::size_t level = 0; level < truth.levels.size(); ++level) {
    expect_near("latency", found.levels[level].latency, truth.levels[level].latency);
    expect_near("efficiency", found.levels[level].efficiency_ppm, truth.levels[level].efficiency_ppm);
  }
}

TEST(CalibrateTest, ExactTimesGiveTheConstantsBack) {
  const Calibration calibration = calibrate(assumed_cluster(), measurements_of_truth(0, 0));
  expect_found(calibration.cluster, 0.01, 0);
  EXPECT_EQ(calibration.constants.size(), 13u);
  for (const Residual& residual : calibration.residuals) {
    EXPECT_NEAR(static_cast<double>(residual.modelled) / static_cast<double>(residual.measured), 1, 0.01)
        << residual.what;
  }
}

TEST(CalibrateTest, NoiseOfFivePercentMovesNoConstantByMoreThanThat) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    expect_found(calibrate(assumed_cluster(), measurements_of_truth(seed, 0.05)).cluster, 0.08, seed);
  }
}

TEST(CalibrateTest, WhatNoTimeDependsOnStaysAsItWas) {
  Cluster cluster = read_cluster("dgx-a100");
  cluster.collectives = {};
  cluster.levels[1].protocols.clear();
  // A ring over 8: 14 latencies and 14/8 of the bytes.
  const Measurements measurements = read_measurements_text(R"(
shardplan: 1
collectives:
  - {collective: all_reduce, level: nvlink, devices: 8, bytes: 240 MB, time: 2.114 ms}
  - {collective: all_reduce, level: nvlink, devices: 8, bytes: 24 MB, time: 224 us}
)",
                                                           "m.yaml", cluster);
  const Calibration calibration = calibrate(cluster, measurements);
  // 1.00 us each, and 420 MB in 2.1 ms are 200 of 300 GB/s.
  EXPECT_NEAR(static_cast<double>(calibration.cluster.levels[1].latency), 1e6, 2e4);
  EXPECT_NEAR(static_cast<double>(calibration.cluster.levels[1].efficiency_ppm), 666'667, 3'000);
  EXPECT_EQ(calibration.cluster.device, cluster.device);
  EXPECT_EQ(calibration.cluster.levels[0], cluster.levels[0]);
  EXPECT_EQ(calibration.constants.size(), 2u);
}

// A start-up could explain each of these, but only if it were hundreds of times longer than given.
TEST(CalibrateTest, OneMeasurementMovesTheConstantThatDecidesIt) {
  const Cluster cluster = assumed_cluster();
  const auto a_quarter_longer = [&](const std::string& line) {
    Measurements measured = read_measurements_text("shardplan: 1\n" + line + ", time: 1 us}\n", "m.yaml", cluster);
    const Picoseconds time = modelled_times(cluster, measured)[0] / 4 * 5;
    (measured.operators.empty() ? measured.collectives[0].time : measured.operators[0].time) = time;
    return measured;
  };
  const Measurements product =
      a_quarter_longer("operators:\n  - {op: MatMul, dtype: bf16, operands: [[8192, 8192], [8192, 8192]]");
  const Calibration of_product = calibrate(cluster, product);
  ASSERT_EQ(of_product.constants.size(), 1u);
  EXPECT_NEAR(static_cast<double>(of_product.cluster.device.matmul_efficiency_ppm), 400'000, 1'000);
  EXPECT_EQ(of_product.cluster.device.start, cluster.device.start);
  const Measurements sum =
      a_quarter_longer("collectives:\n  - {collective: all_reduce, level: fast, devices: 8, bytes: 1 GiB");
  const Calibration of_sum = calibrate(cluster, sum);
  EXPECT_NEAR(static_cast<double>(of_sum.cluster.levels[1].efficiency_ppm), 720'000, 4'000);
  EXPECT_NEAR(static_cast<double>(of_sum.cluster.levels[1].latency), 1e7, 3e5);
}

// By hand: 64 rows of 8 KiB are read and written at 0.82 x 2 TB/s, after 7 us.
TEST(CalibrateTest, OperatorsTouchWhatTheyTouchInPlans) {
  const Cluster truth = read_cluster_text(kTrueCluster, "truth.yaml");
  const Measurements rows = read_measurements_text(
      "shardplan: 1\noperators:\n"
      "  - {op: Slice, dtype: bf16, operands: [[65536, 4096]], begin: [0, 0], size: [64, 4096], time: 1 us}\n",
      "m.yaml", truth);
  EXPECT_NEAR(static_cast<double>(modelled_times(truth, rows)[0]), 7e6 + 2 * 64 * 8192 / 1.64, 1e4);
}

/// The times that a cluster's constants give for these measurements.
Measurements timed(const Cluster& truth, const std::string& text) {
  Measurements measured = read_measurements_text("shardplan: 1\n" + text, "m.yaml", truth);
  set_times(measured, modelled_times(truth, measured));
  return measured;
}

std::string collectives_along(const std::string& level) {
  std::string text = "collectives:\n";
  for (const char* kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"}) {
    for (const int devices : {2, 4, 8}) {
      for (const char* bytes : {"1 KiB", "16 KiB", "256 KiB", "1 MiB", "16 MiB", "1 GiB"}) {
        text += fmt::format("  - {{collective: {}, level: {}, devices: {}, bytes: {}, time: 1 us}}\n", kind, level,
                            devices, bytes);
      }
    }
  }
  return text;
}

// With protocols for small messages a latency of 150 us fits nearly as well: it leaves them all to the protocols.
TEST(CalibrateTest, ALatencyFarOffIsNotTakenForALaunch) {
  Cluster truth = read_cluster("dgx-a100");
  truth.collectives.launch = 9'000'000;
  truth.levels[1].latency = 4'500'000;
  truth.levels[1].efficiency_ppm = 700'000;
  const Cluster found = calibrate(read_cluster("dgx-a100"), timed(truth, collectives_along("nvlink"))).cluster;
  EXPECT_NEAR(static_cast<double>(found.collectives.launch), 9e6, 1e5);
  EXPECT_NEAR(static_cast<double>(found.levels[1].latency), 4.5e6, 1e5);
  EXPECT_NEAR(static_cast<double>(found.levels[1].efficiency_ppm), 7e5, 1e3);
}

TEST(CalibrateTest, WhatAFileLeavesOutIsFittedToo) {
  Cluster truth = assumed_cluster();
  truth.collectives.launch = 20'000'000;
  truth.device.start = 30'000'000;
  const std::string text = collectives_along("fast") +
                           "operators:\n  - {op: Add, dtype: bf16, operands: [[64, 64], [64, 64]], time: 1 us}\n";
  Cluster without = assumed_cluster();
  without.device.start = 0;
  const Cluster found = calibrate(without, timed(truth, text)).cluster;
  EXPECT_NEAR(static_cast<double>(found.collectives.launch), 2e7, 2e5);
  EXPECT_NEAR(static_cast<double>(found.device.start), 3e7, 2e5) << "not an efficiency of memory of 0.0004";
  EXPECT_EQ(found.device.memory_efficiency_ppm, without.device.memory_efficiency_ppm);
}

// Groups of a level are measured, wherever ranks stand.
TEST(CalibrateTest, RanksDoNotMatter) {
  const Measurements measured = timed(read_cluster_text(kTrueCluster, "truth.yaml"), collectives_along("fast"));
  const Cluster in_order = assumed_cluster();
  Cluster mixed = in_order;
  for (std::int64_t rank = 0; rank < mixed.num_devices(); ++rank) {
    mixed.position_of_rank.push_back(rank % 4 * 8 + rank / 4);  // consecutive ranks in different nodes
  }
  const Calibration found = calibrate(mixed, measured);
  EXPECT_EQ(found.cluster.levels, calibrate(in_order, measured).cluster.levels);
  EXPECT_EQ(found.cluster.position_of_rank, mixed.position_of_rank);
}

// Efficiencies that follow that of matmul stay where they are if an operator was measured that depends on them.
TEST(CalibrateTest, ResidualsAreThoseOfWhatIsWritten) {
  Cluster truth = assumed_cluster();
  const std::string text =
      "operators:\n"
      "  - {op: MatMul, dtype: bf16, operands: [[8192, 8192], [8192, 8192]], time: 1 us}\n"
      "  - {op: FlashAttention, dtype: bf16, operands: [[4, 16, 64, 128], [4, 16, 64, 128], [4, 16, 64, 128]], time: 1 "
      "us}\n";
  Measurements measured = timed(truth, text);
  measured.operators[0].time *= 40;
  const Calibration found = calibrate(truth, measured);
  const std::vector<Picoseconds> times = modelled_times(read_cluster_text(found.cluster.text, "fitted.yaml"), measured);
  ASSERT_EQ(times.size(), found.residuals.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i], found.residuals[i].modelled) << found.residuals[i].what;
    EXPECT_NEAR(static_cast<double>(times[i]) / static_cast<double>(found.residuals[i].measured), 1, 0.02);
  }
}

TEST(CalibrateTest, WhatIsFasterThanThePeakIsSaid) {
  Cluster ideal = assumed_cluster();
  ideal.levels[1].efficiency_ppm = 1'000'000;
  const std::string text =
      "collectives:\n  - {collective: all_gather, level: fast, devices: 8, bytes: 1 GiB, time: 1 us}\n";
  Measurements measured = timed(ideal, text);
  const auto is_said = [&] {
    const std::vector<FittedConstant> constants = calibrate(ideal, measured).constants;
    return std::any_of(constants.begin(), constants.end(), [](const auto& one) { return one.is_at_limit; });
  };
  EXPECT_FALSE(is_said());
  measured.collectives[0].time /= 2;
  EXPECT_TRUE(is_said());
}

TEST(CalibrateTest, WhatIsWrittenReadsBackAndIsTheSameEachTime) {
  const Calibration once = calibrate(assumed_cluster(), measurements_of_truth(7, 0.03));
  const Calibration again = calibrate(assumed_cluster(), measurements_of_truth(7, 0.03));
  EXPECT_EQ(once.cluster.text, again.cluster.text);
  const Cluster read = read_cluster_text(once.cluster.text, "fitted.yaml");
  EXPECT_EQ(read.device, once.cluster.device);
  EXPECT_EQ(read.levels, once.cluster.levels);
}

}  // namespace
}  // namespace shardplan
