#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layouts/tensor_layout.h"
#include "simulator/checkpoint/piece.h"
#include "simulator/checkpoint/safetensors.h"

namespace shardplan {

// A checkpoint is a folder named PREFIX-STEP that appears whole (base/pending_folder.h). It holds
//   rank_0.safetensors, rank_1.safetensors, ...   what each rank stores of every tensor, or
//   model.safetensors                             every tensor whole ("integrated")
// A file says in its metadata where its pieces belong, so that a checkpoint is read without the plan that wrote it:
//   format  "shardplan.checkpoint/1"     model  "mlp"       step  "20"      seed  "0"
//   mesh    "dp=2, mp=4"                 rank   "3"; neither in model.safetensors
//   shape:NAME  "[512, 784]"             layout:NAME  "[{mp}, {}]"   of every tensor, the shape being that of the whole
//   unpadded:NAME  "[50257, 784]"        of a tensor whose shape is padded, what it is without (graph/pad.h)
// What a model written per device left has no layouts: each rank says where its pieces begin, and ranks may hold different
// tensors. Instead of mesh and layouts its files have
//   ranks   "8"                          begin:NAME   "[0, 64]"
// A safetensors file of another program is taken as an integrated checkpoint.

/// One tensor of a checkpoint.
struct CheckpointTensor {
  std::string name;
  std::string dtype;    // of safetensors: "F64"
  Shape shape;          // global
  TensorLayout layout;  // not partial
  /// Of a checkpoint that is per device: what each rank holds that holds a part of it. `layout` says nothing then.
  std::map<std::int64_t, PieceRuns> pieces = {};
  Shape unpadded = {};  // of one that is padded

  bool operator==(const CheckpointTensor&) const = default;
};

/// What a checkpoint holds, and on which devices.
struct CheckpointForm {
  std::string model;
  std::int64_t step = 0;   // the number of steps made
  std::uint64_t seed = 0;  // from which weights and inputs were drawn
  bool is_integrated = false;
  bool is_per_device = false;
  DeviceMesh mesh;  // integrated: one device; per device: "rank=8"
  std::vector<CheckpointTensor> tensors;

  bool operator==(const CheckpointForm&) const = default;
};

/// The same tensors whole, in one file.
CheckpointForm integrated(CheckpointForm form);

/// The mesh of a checkpoint that is per device.
DeviceMesh mesh_of_ranks(std::int64_t ranks);
/// What a rank holds of a tensor; nothing if it has none of it.
std::optional<PieceRuns> piece_of_rank(const CheckpointForm& form, const CheckpointTensor& tensor, std::int64_t rank);

/// What of `stored` becomes the piece of a rank: the same piece, or all of it if the shapes differ, as where each rank has
/// a tensor of its own and all begin with the same.
PieceRuns source_piece(const CheckpointTensor& stored, const CheckpointTensor& tensor, const PieceRuns& piece);

/// What one file says of its checkpoint; of one that is per device it knows its own pieces alone. Throws InputError at
/// the file for what does not fit together.
CheckpointForm form_of_file(const SafetensorsReader& file);
/// The rank that the file names. Throws InputError if it names none.
std::int64_t claimed_rank(const SafetensorsReader& file);
/// The header of a rank's file.
SafetensorsHeader header_of(const CheckpointForm& form, std::int64_t rank);

}  // namespace shardplan
