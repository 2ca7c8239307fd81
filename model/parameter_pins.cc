#include "model/parameter_pins.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardplan {
namespace {

constexpr char kKeepOne[] = "keep one of them";

/// Errors in types, wherever they are given.
class TypeCheck {
 public:
  TypeCheck(std::string owner, const TrainingOptions* training, std::vector<Diagnostic>& faults)
      : owner_(std::move(owner)), training_(training), faults_(faults) {}

  void states(const SourcePlace& place) {
    if (training_ == nullptr || training_->optimizer != "sgd") return;
    fault(place, fmt::format("{}: state_dtype is that of moments, and sgd keeps none", owner_),
          "momentum, adam and adamw keep some");
  }

  void gradient(const SourcePlace& place, DataType dtype, const ParallelOptions& parallel) {
    const bool is_wide = element_bytes(dtype) >= element_bytes(DataType::kF32);
    if (is_wide || !parallel.gradient_fp32_sync || !parallel.gradient_fp32_sync->value) return;
    fault(place,
          fmt::format("{}: gradient_dtype is {}, but gradient_fp32_sync: true in line {} sums gradients as f32", owner_,
                      to_string(dtype), parallel.gradient_fp32_sync->place.line),
          kKeepOne);
  }

 private:
  void fault(const SourcePlace& place, std::string message, std::string hint) {
    Diagnostic found{place, std::move(message), std::move(hint)};
    if (std::find(faults_.begin(), faults_.end(), found) == faults_.end()) faults_.push_back(std::move(found));
  }

  std::string owner_;
  const TrainingOptions* training_;
  std::vector<Diagnostic>& faults_;
};

/// Calls `visit(key, field)` for each of the four keys that is said.
template <class Visit>
void for_each_pin(const Settings& said, Visit visit) {
  if (said.gradient_strategy) visit("gradient_strategy", said.gradient_strategy->place);
  if (said.state_strategy) visit("state_strategy", said.state_strategy->place);
  if (said.gradient_dtype) visit("gradient_dtype", said.gradient_dtype->place);
  if (said.state_dtype) visit("state_dtype", said.state_dtype->place);
}

}  // namespace

std::optional<ParameterPins> parameter_pins(const Settings& said) {
  ParameterPins pins;
  bool has_any = false;
  const auto take = [&](auto& pin, const auto& field) {
    if (!field) return;
    pin = field->value;
    has_any = true;
  };
  take(pins.gradient_strategy, said.gradient_strategy);
  take(pins.state_strategy, said.state_strategy);
  take(pins.gradient_dtype, said.gradient_dtype);
  take(pins.state_dtype, said.state_dtype);
  return has_any ? std::optional(std::move(pins)) : std::nullopt;
}

void check_parameter_pins(const GraphTensor& parameter, const Settings& said, const ParallelOptions& parallel,
                          const TrainingOptions* training, std::vector<Diagnostic>& faults) {
  const bool is_trained = training != nullptr && parameter.requires_grad && is_floating(parameter.type.dtype);
  if (!is_trained) {
    for_each_pin(said, [&](const char* key, const SourcePlace& place) {
      faults.push_back({place,
                        fmt::format("{}: {} is of a parameter's training, but {}", parameter.name, key,
                                    training == nullptr ? "there is no training" : "it is not trained"),
                        ""});
    });
    return;
  }
  TypeCheck check(parameter.name, training, faults);
  if (said.state_dtype) check.states(said.state_dtype->place);
  if (said.gradient_dtype) check.gradient(said.gradient_dtype->place, said.gradient_dtype->value, parallel);
  if (said.state_strategy && !parameter.parallel_optimizer) {
    faults.push_back({said.state_strategy->place,
                      fmt::format("{}: state_strategy and parallel_optimizer: false both say how its states are cut",
                                  parameter.name),
                      kKeepOne});
  }
}

void check_block_pins(const std::string& name, const Settings& said, const TrainingOptions* training,
                      std::vector<Diagnostic>& faults) {
  for_each_pin(said, [&](const std::string& key, const SourcePlace& place) {
    if (key.ends_with("strategy")) {
      faults.push_back({place, fmt::format("{} is a block; {} is for a parameter", name, key), ""});
    } else if (training == nullptr) {
      faults.push_back(
          {place, fmt::format("{}: {} is of parameters' training, but there is no training", name, key), ""});
    }
  });
}

void check_training_pins(const YamlDocument& document, const YamlNode& node, const TrainingOptions& training,
                         const ParallelOptions& parallel, std::vector<Diagnostic>& faults) {
  TypeCheck check("training", &training, faults);
  if (training.state_dtype) check.states(document.place(*node.find("state_dtype")));
  if (training.gradient_dtype) {
    check.gradient(document.place(*node.find("gradient_dtype")), *training.gradient_dtype, parallel);
  }
}

}  // namespace shardplan
