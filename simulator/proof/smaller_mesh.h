#pragma once

#include <map>
#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

/// The sizes that pieces of axes get which were above 2.
enum class SmallerPieces {
  kThreesAndTwos,  // 3, 2, 3, ...
  kTwos,           // where something cannot be cut in 3
  kTwosAlike,      // axes of one size are cut in the same pieces, so that one of them can take the place of another
};

/// A mesh of the same axes with smaller sizes, for the proof of a plan that is too large to execute. Every axis is cut
/// where the program cuts it into sub-axes; each of these pieces keeps its meaning and gets a size of 2 or 3 (were all
/// of them 2, some permutations would be their own inverse), so that a strategy over `node:(2)4, gpu` stays one over
/// the same two pieces.
class SmallerMesh {
 public:
  /// If the program's mesh has at most `most_devices`, it stays as it is.
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
