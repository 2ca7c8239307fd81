#pragma once

#include <cstdint>
#include <vector>

namespace shardplan {

/// A matrix of edge costs as the core's stages read it. Rows that are equal form a class, so do columns: layouts repeat
/// among strategies, and a message then costs the product of the classes, not of the values. A forbidden pair has a
/// large finite cost (`CoreProblem::big_m`).
struct CoreMatrix {
  std::uint32_t row_classes = 0;
  std::uint32_t column_classes = 0;
  std::vector<std::uint32_t> row_class;     // by row
  std::vector<std::uint32_t> column_class;  // by column
  std::vector<double> forward;              // row_classes x column_classes
  std::vector<double> backward;             // column_classes x row_classes
  double largest = 0;                       // of the entries
};

}  // namespace shardplan
