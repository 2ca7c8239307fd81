#pragma once

#include <string>

#include "model/model.h"

namespace shardplan {

/// Where a model comes from. It can be asked for the model again at other sizes: micro-batches need it at a part of the
/// batch, proofs at sizes small enough to execute, and a plan file at the sizes that it was made for. None of them knows
/// in what format the model was written. A new format is one more class, chosen in `model_source` (model/read_model.h).
///
/// Sources are made once and do not change; every Model holds the one that it came from.
class ModelSource {
 public:
  virtual ~ModelSource() = default;
  /// The model with `overrides` in the place of its own values. Throws InputError with all faults found.
  virtual Model at(const ModelOverrides& overrides) const = 0;
  /// The file's name as the user gave it.
  virtual const std::string& file() const = 0;
  /// What a plan file keeps of the model: `model_source(text(), file())` is an equal source.
  virtual const std::string& text() const = 0;
};

}  // namespace shardplan
