#include "operators/per_device.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "operators/building/gradient_support.h"
#include "operators/catalogue.h"
#include "operators/phases.h"

namespace shardplan {
namespace {

constexpr char kShared[] = "shared";

const OperatorType& base_type(const OperatorType& type) {
  const OperatorType* base = find_operator_type(std::string_view(type.name).substr(kPerDevice.size()));
  SHARDPLAN_CHECK(base != nullptr);
  return *base;
}

bool is_shared(const Operation& operation, std::size_t operand) {
  const std::vector<std::int64_t>& shared = operation.list(kShared);
  return std::find(shared.begin(), shared.end(), static_cast<std::int64_t>(operand)) != shared.end();
}

TensorType without_devices(TensorType type) {
  type.shape.erase(type.shape.begin());
  return type;
}

/// The computation of one device.
Operation base_operation(const Operation& operation) {
  Attributes attributes = operation.attributes;
  attributes.erase(kShared);
  std::vector<TensorType> operands;
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    const TensorType& operand = operation.operands[i];
    operands.push_back(is_shared(operation, i) ? operand : without_devices(operand));
  }
  return make_operation(base_type(*operation.type), attributes, std::move(operands));
}

std::int64_t num_devices(const Operation& operation) {
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    if (!is_shared(operation, i)) return operation.operands[i].shape[0];
  }
  throw InputError(SourcePlace{}, "{}: expected an operand of each device", operation.type->name);
}

std::vector<TensorType> infer_per_device(const Operation& operation) {
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    const Shape& shape = operation.operands[i].shape;
    if (is_shared(operation, i) || (!shape.empty() && shape[0] == num_devices(operation))) continue;
    throw InputError(SourcePlace{}, "{}: input {} is {}; expected {} in its first dimension", operation.type->name,
                     i + 1, to_string(shape), num_devices(operation));
  }
  std::vector<TensorType> results = base_operation(operation).results;
  for (TensorType& result : results) result.shape.insert(result.shape.begin(), num_devices(operation));
  return results;
}

/// Keeps the factors of `base`, so that work is counted as there, but none is sharded.
ShardingRule per_device_rule(const Operation& operation) {
  const ShardingRule base = base_operation(operation).rule;
  ShardingRule rule;
  rule.factors.push_back({"device", num_devices(operation), FactorKind::kPassThrough});
  for (Factor factor : base.factors) {
    factor.kind = FactorKind::kNeedReplication;
    factor.has_equal_pieces = false;
    rule.factors.push_back(std::move(factor));
  }
  const auto add = [](std::vector<TensorWalk>& walks, const TensorWalk& of_base, bool is_per_device) {
    TensorWalk walk;
    if (is_per_device) walk.push_back({{0}, {}});
    for (const DimensionWalk& dimension : of_base) {
      DimensionWalk& next = walk.emplace_back();
      if (dimension.window) continue;  // whole
      for (const std::uint32_t factor : dimension.factors) next.factors.push_back(factor + 1);
    }
    walks.push_back(std::move(walk));
  };
  for (std::size_t i = 0; i < base.operands.size(); ++i) {
    add(rule.operands, base.operands[i], !is_shared(operation, i));
  }
  for (const TensorWalk& walk : base.results) add(rule.results, walk, true);
  return rule;
}

void per_device_kernel(const KernelCall& call) {
  const Operation base = base_operation(call.operation);
  const Box& devices = call.boxes[0];
  const auto part = [](const Shape& shape) { return Shape(shape.begin() + 1, shape.end()); };
  for (std::int64_t device = devices.begin; device < devices.end; ++device) {
    const std::int64_t i = device - devices.begin;
    std::vector<OperandView> operands;
    for (std::size_t k = 0; k < call.operands.size(); ++k) {
      const OperandView& all = call.operands[k];
      if (is_shared(call.operation, k)) {
        operands.push_back(all);
        continue;
      }
      const Shape shape = part(all.shape);
      operands.push_back({all.data + i * num_elements(shape), shape, Shape(shape.size(), 0)});
    }
    std::vector<ResultView> results;
    for (const ResultView& all : call.results) {
      const Shape shape = part(all.shape);
      results.push_back({all.data + i * num_elements(shape), shape});
    }
    const std::uint64_t seed = mix(call.seed ^ mix(static_cast<std::uint64_t>(device)));
    run_operation({base, call.boxes.subspan(1), operands, results, seed});
  }
}

double per_device_flops(const Operation& operation, std::span<const std::int64_t> extents) {
  return static_cast<double>(extents[0]) * flops(base_operation(operation), extents.subspan(1));
}

std::int64_t per_device_index_extent(const Operation& operation, std::size_t operand) {
  return base_type(*operation.type).index_extent(base_operation(operation), operand);
}

/// Turns every operator that a gradient adds into one per device.
class PerDeviceGradient : public GradientBuilder {
 public:
  PerDeviceGradient(GradientBuilder& whole, std::set<TensorId> per_device)
      : whole_(whole), per_device_(std::move(per_device)) {}

  std::vector<TensorId> add(std::string_view type, const Attributes& attributes,
                            const std::vector<TensorId>& operands) override {
    std::vector<std::int64_t> shared;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!is_per_device(operands[i])) shared.push_back(static_cast<std::int64_t>(i));
    }
    if (shared.size() == operands.size()) return whole_.add(type, attributes, operands);
    Attributes all = attributes;
    all[kShared] = std::move(shared);
    const std::vector<TensorId> results = whole_.add(std::string(kPerDevice) + std::string(type), all, operands);
    per_device_.insert(results.begin(), results.end());
    return results;
  }
  TensorId constant(double value) override { return whole_.constant(value); }
  TensorType type(TensorId tensor) const override {
    return is_per_device(tensor) ? without_devices(whole_.type(tensor)) : whole_.type(tensor);
  }

  bool is_per_device(TensorId tensor) const { return per_device_.contains(tensor); }

 private:
  GradientBuilder& whole_;
  std::set<TensorId> per_device_;
};

Gradients per_device_gradient(GradientBuilder& builder, const GradientRequest& request) {
  const Operation base = base_operation(request.operation);
  std::set<TensorId> per_device(request.results.begin(), request.results.end());
  for (std::size_t i = 0; i < request.operands.size(); ++i) {
    if (!is_shared(request.operation, i)) per_device.insert(request.operands[i]);
  }
  for (const std::optional<TensorId>& gradient : request.result_gradients) {
    if (gradient) per_device.insert(*gradient);
  }
  PerDeviceGradient of_each(builder, std::move(per_device));
  Gradients gradients =
      base.type->gradient(of_each, {base, request.operands, request.results, request.result_gradients, request.needed});
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i]) continue;
    const bool is_of_all = is_shared(request.operation, i);
    if (is_of_all == !of_each.is_per_device(*gradients[i])) continue;
    const TensorType& operand = request.operation.operands[i];
    gradients[i] = is_of_all ? add_one(builder, "ReduceSum", {*gradients[i]}, {{"axis", std::int64_t{0}}})
                             : add_one(builder, "BroadcastTo", {*gradients[i]}, {{"shape", operand.shape}});
  }
  return gradients;
}

OperatorType make_type(const OperatorType& base) {
  OperatorType type;
  type.name = std::string(kPerDevice) + base.name;
  type.signature = base.signature;
  type.attributes = base.attributes;
  type.attributes.push_back({.name = kShared,
                             .kind = AttributeKind::kList,
                             .default_value = std::vector<std::int64_t>{},
                             .description = "operands that all devices read alike"});
  type.infer = infer_per_device;
  type.rule = per_device_rule;
  type.kernel = is_executable(base) ? per_device_kernel : nullptr;
  type.gradient = base.gradient != nullptr ? per_device_gradient : nullptr;
  type.work = base.work;
  type.flops = per_device_flops;
  type.flops_text = base.flops_text;
  type.index_extent = base.index_extent != nullptr ? per_device_index_extent : nullptr;
  type.scales = base.scales;
  type.moves_elements = base.moves_elements;
  type.compares_elements = base.compares_elements;
  type.stops_gradient = base.stops_gradient;
  type.picks_elements = base.picks_elements;
  type.in_place = base.in_place;
  type.is_internal = true;
  type.draws_as_forward = base.draws_as_forward;
  return type;
}

}  // namespace

const OperatorType* find_graph_operator_type(std::string_view name) {
  if (!name.starts_with(kPerDevice)) return find_operator_type(name);
  static const std::map<std::string, OperatorType, std::less<>> types = [] {
    std::map<std::string, OperatorType, std::less<>> all;
    for (const OperatorType& base : operator_catalogue()) all.emplace(base.name, make_type(base));
    return all;
  }();
  const auto at = types.find(name.substr(kPerDevice.size()));
  return at == types.end() ? nullptr : &at->second;
}

}  // namespace shardplan
