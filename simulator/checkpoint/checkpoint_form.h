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

// A checkpoint is a folder named PREFIX-STEP that appears whole (base/pending_folder.h). It contains
//   rank_0.safetensors, rank_1.safetensors, ...   each rank's piece of every tensor, or
//   model.safetensors                             every tensor whole ("integrated")
// A file's metadata states where its pieces belong, so that a checkpoint can be read without the plan that wrote it:
//   format  "shardplan.checkpoint/1"     model  "mlp"       step  "20"      seed  "0"
//   mesh    "dp=2, mp=4"                 rank   "3"; neither in model.safetensors
//   shape:NAME  "[512, 784]"             layout:NAME  "[{mp}, {}]"   of every tensor; the shape is the global one
//   unpadded:NAME  "[50257, 784]"        of a padded tensor, its shape without padding (graph/pad.h)
// Checkpoints of models written per device have no layouts: each rank states where its pieces begin, and ranks may hold
// different tensors. Instead of mesh and layouts their files have
//   ranks   "8"                          begin:NAME   "[0, 64]"
// A safetensors file of another program is treated as an integrated checkpoint.

/// One tensor of a checkpoint.
struct CheckpointTensor {
  std::string name;
  std::string dtype;    // of safetensors: "F64"
  Shape shape;          // global
  TensorLayout layout;  // not partial
  /// Of a per-device checkpoint: the piece of each rank that holds a part of the tensor; `layout` then has no meaning.
  std::map<std::int64_t, PieceRuns> pieces = {};
  Shape unpadded = {};  // shape without padding, if there is some

  bool operator==(const CheckpointTensor&) const = default;
};

/// What a checkpoint holds, and on which devices.
struct CheckpointForm {
  std::string model;
  std::int64_t step = 0;   // number of steps made
  std::uint64_t seed = 0;  // from which weights and inputs were drawn
  bool is_integrated = false;
  bool is_per_device = false;
  DeviceMesh mesh;  // integrated: one device; per device: "rank=8"
  std::vector<CheckpointTensor> tensors;

  bool operator==(const CheckpointForm&) const = default;
};

/// The same tensors whole, in one file.
CheckpointForm integrated(CheckpointForm form);

/// The mesh of a per-device checkpoint.
DeviceMesh mesh_of_ranks(std::int64_t ranks);
/// A rank's piece of a tensor; nothing if it has none.
std::optional<PieceRuns> piece_of_rank(const CheckpointForm& form, const CheckpointTensor& tensor, std::int64_t rank);

/// The part of `stored` that becomes a rank's piece: the same piece or, if the shapes differ, all of it (each rank then
/// has its own tensor, and all start with the same values).
PieceRuns source_piece(const CheckpointTensor& stored, const CheckpointTensor& tensor, const PieceRuns& piece);

/// The form of the checkpoint of which this is one file; for a per-device checkpoint with the file's own pieces only.
/// Throws InputError at the file if its metadata are inconsistent.
CheckpointForm form_of_file(const SafetensorsReader& file);
/// The rank stated in the file. Throws InputError if there is none.
std::int64_t claimed_rank(const SafetensorsReader& file);
/// The header of a rank's file.
SafetensorsHeader header_of(const CheckpointForm& form, std::int64_t rank);

}  // namespace shardplan
