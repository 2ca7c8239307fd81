#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/operator_graph.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "program/parallel_program.h"
#include "tests/layouts/test_costs.h"

namespace shardplan {

/// Operators for these tests, independent of the catalogue: their kernels are a few lines that a reader can check.
///   Product     m k, k n -> m n
///   Outer       b m, b n -> m n       what a gradient looks like: summed over the batch
///   Square      i j -> i j            not linear
///   Place       i j -> i j            adds 10 * row + column, global: asks where it stands
///   Blur        i j -> i j            sum of three neighbouring rows, with weights 1, 2, 3: a window
///   Total       i j -> .              sum of all elements
///   Descend     i j, i j -> i j       p - 0.1 g
///   Noise       i j -> i j            adds a number drawn by (seed, global index)
const OperatorType& small_type(std::string_view name);

/// Builds a graph and its program together: each call adds an operator (or a redistribution) to both.
class SmallModel {
 public:
  explicit SmallModel(std::string_view mesh);

  /// A graph input (or parameter) in a layout.
  ValueId give(const std::string& name, const Shape& shape, TensorKind kind, std::string_view layout);
  ValueId constant(const std::string& name, const Shape& shape, Fill fill, std::string_view layout);
  /// A list of axes in braces for each factor: "{x}, {}, {y}"; `partial` as in Strategy.
  ValueId run(const std::string& name, std::string_view type, const std::vector<ValueId>& operands,
              std::string_view factors, std::string_view partial = "{}", Pass pass = Pass::kForward);
  /// Exchanges the halo that `type` needs of `operand` under these factors.
  ValueId fetch_halo(ValueId operand, std::string_view type, std::string_view factors);
  /// The same tensor in another layout: all steps of the redistribution.
  ValueId move(ValueId value, std::string_view layout);
  void put_out(ValueId value);
  /// `value` is the new value of the given parameter.
  void update(ValueId parameter, ValueId value);

  struct Built {
    OperatorGraph graph;
    ParallelProgram program;
  };
  Built build();

 private:
  Strategy strategy(const Operation& operation, std::string_view factors, std::string_view partial) const;
  std::vector<AxisRef> axes(std::string_view text) const;
  ValueId add_value(TensorId tensor, const TensorType& type, const TensorLayout& layout);

  OperatorGraphBuilder builder_;
  ParallelProgram program_;
  RedistributionPlanner redistributions_;
};

}  // namespace shardplan
