#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/operator_graph.h"
#include "layouts/device_mesh.h"
#include "layouts/tensor_layout.h"
#include "strategies/strategy.h"

namespace shardplan {

/// MindSpore's strategy of one operator: pieces per dimension, one tuple per tensor.
using StrategyTuples = std::vector<std::vector<std::int64_t>>;

/// A strategy as tuples of the operands, if tuples say it: read back, a tuple's cuts take consecutive pieces of the
/// row-major ranks in the order of the factors, what repeats comes last (DESIGN.md, TensorLayout). On pcie=2, hccs=4 a
/// batch over pcie and a vocabulary over hccs is ((2, 1), (1, 4)); the other way round has no tuple.
std::optional<StrategyTuples> input_tuples(const Operation& operation, const Strategy& strategy,
                                           const DeviceMesh& mesh);
/// The same for the results.
std::optional<StrategyTuples> output_tuples(const Operation& operation, const Strategy& strategy,
                                            const DeviceMesh& mesh);

/// "(2, 1)", "(8)", "()".
std::string tuple_text(const std::vector<std::int64_t>& values);
/// "((2, 1), (1, 4))".
std::string tuple_text(const StrategyTuples& tuples);

/// "b over pcie, v over hccs"; "all repeated" if nothing is cut; "m over {x, y:(1)2}"'s axes are joined by ", " if
/// several.
std::string strategy_words(const Operation& operation, const Strategy& strategy, const DeviceMesh& mesh);

/// What the user wrote for one tensor: "(1, 8)", "[{dp}, {}]", "None", "()".
std::string entry_text(const StrategyEntry& entry);
/// "((1, 8))", "(None)".
std::string entries_text(const std::vector<StrategyEntry>& entries);

/// A layout as MindSpore stores it: a device matrix and for each dimension its axes, counted from the right; {-1} is
/// not cut.
struct DeviceMatrixLayout {
  std::vector<std::int64_t> device_matrix;
  std::vector<std::vector<std::int64_t>> tensor_map;
};
/// Nothing if a dimension is cut in parts, which MindSpore cannot say. Axes that are used in part are split in the
/// matrix.
std::optional<DeviceMatrixLayout> device_matrix_layout(const TensorLayout& layout, const DeviceMesh& mesh);
/// "{device_matrix: (2, 4), tensor_map: (-1, (1, 0))}", or the layout's text in quotes.
std::string device_matrix_text(const TensorLayout& layout, const DeviceMesh& mesh);

/// An axis cut where some layouts cut it: whole axes of a finer mesh, in which their sub-axes are lists of axes.
class RefinedAxes {
 public:
  /// Takes the cuts of all `refs`. Where cuts of one axis do not divide each other, the later ones cannot be said.
  RefinedAxes(const DeviceMesh& mesh, const std::vector<AxisRef>& refs);

  struct Axis {
    std::string name;  // "hccs"; "hccs_0", "hccs_1", ... if cut
    std::int64_t size = 1;
  };
  const std::vector<Axis>& axes() const { return axes_; }
  /// The positions in `axes()` that make up `ref`, major to minor; nothing if it cannot be said.
  std::optional<std::vector<std::size_t>> find(const AxisRef& ref) const;

 private:
  std::vector<Axis> axes_;
  std::vector<AxisRef> parts_;  // of the mesh, by position in `axes_`
};

/// All axes that a layout names.
std::vector<AxisRef> axes_of(const TensorLayout& layout);

}  // namespace shardplan
