#pragma once

#include <cstddef>
#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Adam (Kingma and Ba, 2015) with the corrections of both moments' bias, for one element at a time.
class Adam {
 public:
  /// Reads learning_rate and `adam_attributes`; this step is the one with number `step`, from 1 on.
  Adam(const Operation& operation, double step);

  double rate() const { return rate_; }
  /// Updates the moments; what the parameter changes by is `rate` times the result, downwards.
  double change(double gradient, double& m, double& v) const;

 private:
  double rate_, beta1_, beta2_, eps_, correction1_, correction2_;
};

std::vector<AttributeSpec> adam_attributes();

/// Whether an operand is Adam's count of steps, a scalar; all other states are shaped as the parameter.
bool is_step(const Operation& operation, std::size_t operand);

}  // namespace shardplan
