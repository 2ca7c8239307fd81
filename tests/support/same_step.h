#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "simulator/execute/reference.h"

namespace shardplan {

inline std::map<std::string, TensorId> gradients_by_parameter(const OperatorGraph& graph) {
  std::map<std::string, TensorId> gradients;
  for (const TensorId id : graph.tensors().ids()) {
    const std::optional<TensorId> parameter = graph.tensor(id).gradient_of;
    if (parameter) gradients.emplace(graph.tensor(*parameter).name.str(), id);
  }
  return gradients;
}

/// Expects that a training step whose operators compute in other types, with casts between them, has the loss and the
/// gradients of `plain`, of the same types: kernels do not round here. Returns how many gradients were compared.
inline std::size_t expect_same_step(const OperatorGraph& plain, const OperatorGraph& retyped) {
  const auto run = [&](const OperatorGraph& graph) {
    const auto draw = [&](TensorId id, std::uint64_t) {  // the scale of parameters depends on what reads them
      return draw_tensor(plain, *plain.find_tensor(graph.tensor(id).name.str()), 5, 0);
    };
    return run_reference(graph, draw, 5, 0, Precision::kFloat64);
  };
  const ReferenceStep expected = run(plain), found = run(retyped);
  EXPECT_NEAR(found.tensors[*retyped.loss()][0], expected.tensors[*plain.loss()][0], 1e-12);
  const std::map<std::string, TensorId> of_plain = gradients_by_parameter(plain),
                                        of_retyped = gradients_by_parameter(retyped);
  EXPECT_EQ(of_plain.size(), of_retyped.size());
  for (const auto& [name, id] : of_plain) {
    const auto other = of_retyped.find(name);
    if (other == of_retyped.end()) {
      ADD_FAILURE() << name << " has no gradient";
      continue;
    }
    EXPECT_EQ(retyped.tensor(other->second).type, plain.tensor(id).type) << name;
    const TensorValues &a = expected.tensors[id], &b = found.tensors[other->second];
    EXPECT_EQ(a.size(), b.size()) << name;
    double largest = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
    EXPECT_LE(largest, 1e-9) << name;
  }
  return of_plain.size();
}

}  // namespace shardplan
