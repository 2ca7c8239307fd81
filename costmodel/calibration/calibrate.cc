// Coordinate descent on the squared relative deviations: each constant is moved up or down by a share of itself as long as that
// helps, with smaller and smaller shares. Constants that measurements hardly tell apart (a start-up and a rate) form a valley;
// a small cost of leaving the given values decides there.
#include "costmodel/calibration/calibrate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/cluster/quantity.h"
#include "costmodel/operator_steps.h"
#include "costmodel/roofline_costs.h"
#include "operators/operator_type.h"

namespace shardplan {
namespace {

constexpr std::int64_t kWholeShare = 1'000'000;
/// What a factor of e between a constant and its given value counts beside a deviation of 100 %: little where measurements
/// decide, but a start-up does not explain what a rate explains nearly as well. The larger cost comes first and leads to the
/// right part of the valley; the smaller one hardly moves exact measurements.
constexpr double kCostsOfChange[] = {1e-3, 1e-5};
constexpr double kLeastTime = 1e5;  // picoseconds; below it two start-ups are alike
/// A constant is fitted if half of it, or its given value, would change some modelled time by more than this share.
constexpr double kDecides = 0.02;
/// If an efficiency of 1 still gives a time that is longer than measured by more than this share, the measurement is above the
/// peak in the file.
constexpr double kTooSlow = 0.05;
/// A constant has moved far if it changed by a factor of e^kFar; going back must leave less than this part of the deviations.
constexpr double kFar = 1.5, kClearlyLess = 0.9;

/// One constant of a cluster that may be fitted.
struct Constant {
  std::string name;
  std::int64_t* value;
  bool is_share;              // in parts per million, at most 1'000'000; else a time in picoseconds
  bool is_of_device = false;  // decided by operators; else by collectives
  bool is_left_out = false;   // of the file, where it follows efficiency.matmul
};

std::vector<Constant> constants_of(Cluster& cluster) {
  ClusterDevice& device = cluster.device;
  std::vector<Constant> constants = {{"start", &device.start, false, true},
                                     {"efficiency.memory", &device.memory_efficiency_ppm, true, true},
                                     {"efficiency.matmul", &device.matmul_efficiency_ppm, true, true}};
  for (const auto& [name, member] : kOptionalEfficiencies) {
    std::optional<std::int64_t>& efficiency = device.*member;
    // One that is left out gets a value of its own, so that it can be fitted.
    const bool is_left_out = !efficiency;
    if (is_left_out) efficiency = device.matmul_efficiency_ppm;
    constants.push_back({fmt::format("efficiency.{}", name), &*efficiency, true, true, is_left_out});
  }
  constants.push_back({"collectives.launch", &cluster.collectives.launch, false});
  for (ClusterLevel& level : cluster.levels) {
    constants.push_back({level.name + ".latency", &level.latency, false});
    constants.push_back({level.name + ".efficiency", &level.efficiency_ppm, true});
  }
  return constants;
}

Picoseconds modelled(const RooflineCosts& costs, const OperatorMeasurement& measured) {
  Strategy whole;
  whole.factors.resize(measured.operation.rule.factors.size());
  return kernel_time(measured.operation, whole, costs);
}

Picoseconds modelled(const RooflineCosts& costs, const CollectiveMeasurement& measured) {
  const std::optional<AxisRef> level = costs.mesh().find(measured.level);
  SHARDPLAN_CHECK(level.has_value());
  AxisRef part = *level;
  part.before = level->size / measured.devices;
  part.size = measured.devices;
  return costs.collectives()->time(measured.kind, {part}, measured.bytes);
}

}  // namespace

std::vector<Picoseconds> modelled_times(const Cluster& cluster, const Measurements& measurements) {
  Cluster in_order = cluster;
  in_order.position_of_rank.clear();  // measured are groups of a level, wherever ranks stand
  const RooflineCosts costs(in_order, make_mesh(in_order));
  std::vector<Picoseconds> times;
  for (const OperatorMeasurement& measured : measurements.operators) times.push_back(modelled(costs, measured));
  for (const CollectiveMeasurement& measured : measurements.collectives) times.push_back(modelled(costs, measured));
  return times;
}

namespace {

class Fit {
 public:
  Fit(const Cluster& cluster, const Measurements& measurements)
      : cluster_(cluster), measurements_(measurements), constants_(constants_of(cluster_)) {
    for (const Constant& constant : constants_) given_.push_back(*constant.value);
    for (const OperatorMeasurement& measured : measurements.operators) measured_.push_back(measured.time);
    for (const CollectiveMeasurement& measured : measurements.collectives) measured_.push_back(measured.time);
  }

  void run() {
    for (const double cost : kCostsOfChange) {
      cost_of_change_ = cost;
      error_ = error();
      descend(kWholeShare / 2);
    }
    while (go_back()) {
    }
  }

  /// True if some measured time depends on the constant; otherwise it gets its given value back.
  bool is_decided(std::size_t index) {
    const Constant& constant = constants_[index];
    const std::int64_t value = *constant.value;
    if (changes_times(index, std::max<std::int64_t>(1, value / 2)) || changes_times(index, given_[index])) return true;
    if (constant.is_left_out && changes_times(index, cluster_.device.matmul_efficiency_ppm)) return true;
    *constant.value = given_[index];
    return false;
  }

  /// True if the constant is an efficiency of 1 and what depends on it was measured in less time than that allows.
  bool is_too_slow(std::size_t index) {
    const Constant& constant = constants_[index];
    if (!constant.is_share || *constant.value < kWholeShare) return false;
    const std::vector<Picoseconds> now = modelled_times(cluster_, measurements_);
    *constant.value /= 2;
    const std::vector<Picoseconds> then = modelled_times(cluster_, measurements_);
    *constant.value = kWholeShare;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const double modelled = static_cast<double>(now[i]);
      const bool depends = static_cast<double>(then[i]) > (1 + kDecides) * modelled;
      if (depends && modelled > (1 + kTooSlow) * static_cast<double>(measured_[i])) return true;
    }
    return false;
  }

  const std::vector<Constant>& constants() const { return constants_; }
  Cluster& cluster() { return cluster_; }
  const std::vector<Picoseconds>& measured() const { return measured_; }

 private:
  static constexpr int kMostRounds = 60;

  void descend(std::int64_t share) {
    for (; share >= 20; share /= 2) {
      // A valley between two constants (a start-up and a rate) is followed as long as it descends.
      for (int round = 0; round < kMostRounds && move_all(share); ++round) {
      }
    }
  }

  /// A constant that moved far may have taken what others explain better: each such is put back to its given value until the
  /// others have taken that over. Returns whether that is better for one.
  bool go_back() {
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      if (std::abs(std::log(factor_of_change(i))) < kFar) continue;
      const double before = error_;
      const std::vector<std::int64_t> found = values();
      *constants_[i].value = given_[i];
      error_ = error();
      held_ = &constants_[i];
      descend(kWholeShare / 2);
      held_ = nullptr;
      descend(kWholeShare / 8);
      if (error_ < kClearlyLess * before) return true;
      set_values(found);
      error_ = before;
    }
    return false;
  }

  double factor_of_change(std::size_t i) const {
    const double least = constants_[i].is_share ? 0 : kLeastTime;
    return (static_cast<double>(*constants_[i].value) + least) / (static_cast<double>(given_[i]) + least);
  }

  std::vector<std::int64_t> values() const {
    std::vector<std::int64_t> all;
    for (const Constant& constant : constants_) all.push_back(*constant.value);
    return all;
  }
  void set_values(const std::vector<std::int64_t>& all) {
    for (std::size_t i = 0; i < constants_.size(); ++i) *constants_[i].value = all[i];
  }

  double error() const {
    const std::vector<Picoseconds> times = modelled_times(cluster_, measurements_);
    double sum = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const double measured = static_cast<double>(measured_[i]);
      const double difference = (static_cast<double>(times[i]) - measured) / measured;
      sum += difference * difference;
    }
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      const double change = std::log(factor_of_change(i));
      sum += cost_of_change_ * change * change;
    }
    return sum;
  }

  bool changes_times(std::size_t index, std::int64_t to) {
    std::int64_t& value = *constants_[index].value;
    const std::vector<Picoseconds> now = modelled_times(cluster_, measurements_);
    const std::int64_t before = std::exchange(value, to);
    const std::vector<Picoseconds> then = modelled_times(cluster_, measurements_);
    value = before;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const auto change = static_cast<double>(std::abs(then[i] - now[i]));
      if (change > kDecides * static_cast<double>(now[i])) return true;
    }
    return false;
  }

  bool move_all(std::int64_t share) {
    const std::vector<std::int64_t> before = values();
    bool any = false;
    for (const Constant& constant : constants_) any = (&constant != held_ && move(constant, share)) || any;
    if (any) move_on(before);
    return any;
  }

  bool move(const Constant& constant, std::int64_t share) {
    // A time of zero could never grow by a share of itself.
    const std::int64_t base = constant.is_share ? *constant.value : std::max<std::int64_t>(*constant.value, 100'000);
    const std::int64_t step = std::max<std::int64_t>(1, multiply_step(base, share));
    return try_value(constant, *constant.value + step) || try_value(constant, *constant.value - step);
  }

  static std::int64_t multiply_step(std::int64_t value, std::int64_t share) {
    return value / kWholeShare * share + value % kWholeShare * share / kWholeShare;
  }

  bool try_value(const Constant& constant, std::int64_t value) {
    const std::int64_t old = *constant.value;
    value = std::max<std::int64_t>(constant.is_share ? 1 : 0, value);
    if (constant.is_share) value = std::min(value, kWholeShare);
    if (value == old) return false;
    *constant.value = value;
    const double with = error();
    if (with < error_) {
      error_ = with;
      return true;
    }
    *constant.value = old;
    return false;
  }

  /// Another step in the direction in which all of them moved together.
  void move_on(const std::vector<std::int64_t>& before) {
    const std::vector<std::int64_t> now = values();
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      const Constant& constant = constants_[i];
      const std::int64_t further = std::max<std::int64_t>(constant.is_share ? 1 : 0, 2 * now[i] - before[i]);
      *constant.value = constant.is_share ? std::min(further, kWholeShare) : further;
    }
    const double with = error();
    if (with < error_) {
      error_ = with;
      return;
    }
    set_values(now);
  }

  Cluster cluster_;
  const Measurements& measurements_;
  std::vector<Constant> constants_;  // into `cluster_`
  std::vector<std::int64_t> given_;  // their values in the file
  std::vector<Picoseconds> measured_;
  const Constant* held_ = nullptr;  // one that does not move
  double cost_of_change_ = 0;
  double error_ = 0;
};

std::string written_value(const Constant& constant) {
  return constant.is_share ? write_share(*constant.value) : write_time(*constant.value);
}

std::string measured_title(const OperatorMeasurement& measured) {
  std::string text = measured.operation.type->name;
  for (const TensorType& operand : measured.operation.operands)
    text += fmt::format(" [{}]", fmt::join(operand.shape, ", "));
  return fmt::format("{} {}", text,
                     to_string(measured.operation.operands.empty() ? measured.operation.results.front().dtype
                                                                   : measured.operation.operands.front().dtype));
}

std::string measured_title(const CollectiveMeasurement& measured) {
  return fmt::format("{} over {} of {}, {}", to_string(measured.kind), measured.devices, measured.level,
                     write_bytes(measured.bytes));
}

/// Replaces the source of a constant, and a source that covered a whole level.
void set_source(Cluster& cluster, const std::string& name, const std::string& source) {
  for (auto& [key, text] : cluster.sources) {
    if (key != name) continue;
    text = source;
    return;
  }
  cluster.sources.emplace_back(name, source);
}

}  // namespace

Calibration calibrate(const Cluster& cluster, const Measurements& measurements) {
  Cluster before = cluster;
  const std::vector<Constant> old = constants_of(before);
  Fit fit(cluster, measurements);
  fit.run();
  Calibration result;
  for (std::size_t i = 0; i < old.size(); ++i) {
    const Constant& constant = fit.constants()[i];
    if (!fit.is_decided(i)) continue;
    result.constants.push_back({constant.name, written_value(old[i]), written_value(constant), fit.is_too_slow(i)});
    set_source(fit.cluster(), constant.name,
               constant.is_of_device
                   ? fmt::format("measured, calibrated on {} operators", measurements.operators.size())
                   : fmt::format("measured, calibrated on {} collectives", measurements.collectives.size()));
  }
  result.cluster = fit.cluster();
  ClusterDevice& device = result.cluster.device;
  const auto was_fitted = [&](const std::string& name) {
    return std::any_of(result.constants.begin(), result.constants.end(),
                       [&](const FittedConstant& constant) { return constant.name == name; });
  };
  for (const auto& [name, member] : kOptionalEfficiencies) {
    if (!was_fitted(fmt::format("efficiency.{}", name))) device.*member = cluster.device.*member;
  }
  // The times of what is written.
  const std::vector<Picoseconds> times = modelled_times(result.cluster, measurements);
  for (const OperatorMeasurement& measured : measurements.operators) {
    result.residuals.push_back({measured_title(measured), measured.time, times[result.residuals.size()]});
  }
  for (const CollectiveMeasurement& measured : measurements.collectives) {
    result.residuals.push_back({measured_title(measured), measured.time, times[result.residuals.size()]});
  }
  result.cluster.text = write_cluster(result.cluster);
  return result;
}

}  // namespace shardplan
