#include "simulator/proof/smaller_mesh.h"

#include <utility>

namespace shardplan {
namespace {

using Ends = std::vector<std::map<std::int64_t, std::int64_t>>;

void add_ends(const std::vector<AxisRef>& refs, Ends& ends) {
  for (const AxisRef& ref : refs) {
    ends[ref.axis].emplace(ref.before, 1);
    ends[ref.axis].emplace(ref.end(), 1);
  }
}

void add_ends(const TensorLayout& layout, Ends& ends) {
  for (const DimensionLayout& dimension : layout.dimensions) {
    for (const DimensionPart& part : dimension.parts) add_ends(part.axes, ends);
  }
  add_ends(layout.partial, ends);
}

void cut_alike(const std::vector<MeshAxis>& axes, Ends& ends) {
  const Ends own = ends;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    for (std::size_t other = 0; other < axes.size(); ++other) {
      if (axes[other].size == axes[axis].size) ends[axis].insert(own[other].begin(), own[other].end());
    }
  }
}

}  // namespace

SmallerMesh::SmallerMesh(const ParallelProgram& program, std::int64_t most_devices, SmallerPieces pieces) {
  const std::vector<MeshAxis>& axes = program.mesh.axes();
  is_smaller_ = program.mesh.num_devices() > most_devices;
  ends_.resize(axes.size());
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    ends_[axis].emplace(1, 1);
    ends_[axis].emplace(axes[axis].size, axes[axis].size);
  }
  if (!is_smaller_) {
    mesh_ = program.mesh;
    return;
  }
  for (const ProgramValue& value : program.values) add_ends(value.layout, ends_);
  for (const Instruction& instruction : program.instructions) {
    for (const std::vector<AxisRef>& refs : instruction.strategy->factors) add_ends(refs, ends_);
    add_ends(instruction.strategy->partial, ends_);
    add_ends(instruction.step->axes, ends_);
  }
  if (pieces == SmallerPieces::kTwosAlike) cut_alike(axes, ends_);
  const bool has_threes = pieces == SmallerPieces::kThreesAndTwos;
  bool next_is_three = has_threes;
  std::vector<MeshAxis> smaller = axes;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    std::int64_t before = 1;
    std::int64_t product = 1;
    for (auto& [end, mapped] : ends_[axis]) {
      const std::int64_t size = end / before;
      if (size > 2 && next_is_three) {
        product *= 3;
        next_is_three = false;
      } else if (size > 1) {
        product *= 2;
        next_is_three = has_threes;
      }
      mapped = product;
      before = end;
    }
    smaller[axis].size = product;
  }
  mesh_ = DeviceMesh(std::move(smaller));
}

AxisRef SmallerMesh::at(const AxisRef& ref) const {
  if (!is_smaller_) return ref;
  const std::int64_t before = ends_[ref.axis].at(ref.before);
  return {ref.axis, before, ends_[ref.axis].at(ref.end()) / before};
}

std::vector<AxisRef> SmallerMesh::at(const std::vector<AxisRef>& refs) const {
  std::vector<AxisRef> result;
  for (const AxisRef& ref : refs) result.push_back(at(ref));
  return result;
}

Strategy SmallerMesh::at(const Strategy& strategy) const {
  Strategy result = strategy;
  for (std::vector<AxisRef>& refs : result.factors) refs = at(refs);
  result.partial = at(result.partial);
  return result;
}

}  // namespace shardplan
