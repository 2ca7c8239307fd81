#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "operators/data_type.h"

namespace shardplan {

/// The `training:` section: how a forward graph becomes that of one training step (graph/differentiate.h).
struct TrainingOptions {
  std::string optimizer;  // "sgd", "momentum", "adam", "adamw"
  double learning_rate = 0.001;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  double clip_norm = 0;  // by global norm; 0: none
  std::int64_t micro_batches = 1;
  bool widens_before_sum = false;            // with micro-batches: gradients are cast to the type of their sum first
  std::optional<std::int64_t> summed_means;  // gradients are the sum of this many devices' means
  /// In a model written per device: an AllReduce sums the gradients over this many devices.
  std::optional<std::int64_t> exchanged_over;
  std::set<std::string> not_exchanged;  // parameters of which every device has its own
  bool exchanges_means = false;         // also divided by their number
  /// For `clip_norm` where something is not exchanged: how many devices hold what this one has of each such parameter.
  /// Empty on all devices or on none, since they add up their parts of the norm.
  std::map<std::string, std::int64_t> piece_holders;
  std::optional<DataType> mixed_precision;
  std::optional<DataType> gradient_dtype;  // for parameters without their own (ParameterPins); default f32,
  std::optional<DataType> state_dtype;     // but gradients of f64 parameters are f64
  bool master_copy = true;                 // in f32, for parameters of two bytes
  std::vector<std::string> recompute;      // names, '*' allowed
  SourcePlace place;
};

}  // namespace shardplan
