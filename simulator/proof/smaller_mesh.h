#pragma once

#include <map>
#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

/// The new sizes of pieces of axes that were larger than 2.
enum class SmallerPieces {
  kThreesAndTwos,  // 3, 2, 3, ...
  kTwos,           // if something cannot be split in 3
  kTwosAlike,      // axes of equal size are split into equal pieces, so that one can take the place of another
};

/// A mesh of the same axes with smaller sizes, for the proof of a plan that is too large to execute. Every axis is
/// split where the program splits it into sub-axes; each piece keeps its meaning and gets a size of 2 or 3 (with 2
/// only, some permutations would be their own inverse), so that a strategy over `node:(2)4, gpu` remains one over the
/// same two pieces.
class SmallerMesh {
 public:
  /// A program's mesh with at most `most_devices` stays unchanged.
  SmallerMesh(const ParallelProgram& program, std::int64_t most_devices, SmallerPieces pieces);

  const DeviceMesh& mesh() const { return mesh_; }
  bool is_smaller() const { return is_smaller_; }

  AxisRef at(const AxisRef& ref) const;
  std::vector<AxisRef> at(const std::vector<AxisRef>& refs) const;
  Strategy at(const Strategy& strategy) const;

 private:
  /// By axis of the program's mesh: where its pieces end, and where they end on the smaller one ({1: 1, 2: 2, 8: 6}).
  std::vector<std::map<std::int64_t, std::int64_t>> ends_;
  DeviceMesh mesh_;
  bool is_smaller_ = false;
};

}  // namespace shardplan
