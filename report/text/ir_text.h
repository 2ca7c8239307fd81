#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/operator_graph.h"
#include "layouts/tensor_layout.h"
#include "program/parallel_program.h"

namespace shardplan {

/// Parts of the lines of step_parallel_begin.ir and step_parallel_end.ir, with MindSpore's names and spelling.

/// FNV-1a, 64 bits: the hash behind a group's name.
std::uint64_t fnv1a(std::string_view text);

/// "Float32" in "<Tensor[Float32], (32, 16)>".
std::string tensor_text(DataType dtype, const Shape& shape);
/// "<Ref[Tensor(F32)], (16, 2), ref_key=:weight>".
std::string reference_text(DataType dtype, const Shape& shape, std::string_view name);
/// "((32, 16), (16))".
std::string shapes_text(const std::vector<Shape>& shapes);
/// A constant as written in a call: "F32(0.125)", "Tensor[Int32](iota, (1024))".
std::string constant_text(const GraphTensor& constant, const Shape& local_shape);

/// Remarks on the loop of micro-batches, one per line; empty for programs without a loop.
std::string loop_remarks(const ParallelProgram& program);

/// The members of the collective in which the device at one point of the mesh takes part.
struct RankGroup {
  std::vector<std::int64_t> ranks;  // in the order of the pieces

  std::string name() const;         // "8-3060903066386635826"
  std::string group_ranks() const;  // "0-1-2-3", ascending
};
RankGroup group_of(const DeviceMesh& mesh, const std::vector<AxisRef>& axes, std::int64_t point);

/// Which part of a tensor each device holds, as a formula of its rank, for layouts that shard one dimension: "rank r
/// holds columns 2r to 2r+1", "place p over {hccs} holds rows 12p to 12p+11". Empty for others.
std::string holds_text(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape);

/// How the device at `point` slices its piece: begin, end and stride of every dimension.
struct SliceText {
  std::string call;     // "(0, 0), (32, 2), (1, 1)"
  std::string formula;  // "rank r takes (0, 2r) to (32, 2r+2)"; may be empty
};
SliceText slice_text(const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape, std::int64_t point);

/// The exchange of one device with its neighbours in up to two dimensions, as NeighborExchangeV2 lists it.
struct HaloExchange {
  std::string attributes;  // "send_rank_ids: (...), send_lens: (...), ..."
  Shape shape;             // the device's piece with its halo
};
HaloExchange halo_exchange(const Instruction& instruction, const DeviceMesh& mesh, const Shape& local,
                           std::int64_t point);

/// "[{x}, {}], [{}, {}]".
std::string quoted_layouts(const std::vector<const TensorLayout*>& layouts, const DeviceMesh& mesh);
/// The same as device matrices and tensor maps: "({device_matrix: (2, 4), tensor_map: (1, -1)})".
std::string matrices_text(const std::vector<const TensorLayout*>& layouts, const DeviceMesh& mesh);

/// The padding that a collective removes from the unequal pieces it joins, and adds to those it makes: "trimmed of
/// dimension 0: 2, "; empty if there is none.
std::string padding_text(const CollectiveStep& step, const Shape& shape);

}  // namespace shardplan
