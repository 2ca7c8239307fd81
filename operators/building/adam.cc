#include "operators/building/adam.h"

#include <cmath>

#include "operators/building/attributes.h"

namespace shardplan {

Adam::Adam(const Operation& operation, double step)
    : rate_(operation.number("learning_rate")),
      beta1_(operation.number("beta1")),
      beta2_(operation.number("beta2")),
      eps_(operation.number("eps")),
      correction1_(1 - std::pow(beta1_, step)),
      correction2_(1 - std::pow(beta2_, step)) {}

double Adam::change(double gradient, double& m, double& v) const {
  m = beta1_ * m + (1 - beta1_) * gradient;
  v = beta2_ * v + (1 - beta2_) * gradient * gradient;
  return (m / correction1_) / (std::sqrt(v / correction2_) + eps_);
}

std::vector<AttributeSpec> adam_attributes() {
  return {number("beta1", 0.9, "decay of the first moment"), number("beta2", 0.999, "decay of the second moment"),
          number("eps", 1e-8, "added to the root of the second moment")};
}

bool is_step(const Operation& operation, std::size_t operand) {
  return operation.type->signature.operands[operand] == "step";
}

}  // namespace shardplan
