#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/operator_graph.h"
#include "simulator/checkpoint/checkpoint.h"
#include "simulator/execute/data.h"

namespace shardplan {

/// Checks that a checkpoint holds what a model stores: `find` is called for each tensor of the model; faults are
/// collected and thrown together. A missing parameter is a fault; a missing state starts at zero,
/// a missing master copy as its parameter (`start_master_copies`).
class CheckpointMatch {
 public:
  /// `checkpoint` must outlive the object.
  explicit CheckpointMatch(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  /// The checkpoint's tensor for a parameter or state of the model; nothing if it has none of that name.
  std::optional<std::size_t> find(const GraphTensor& tensor);
  /// The checkpoint holds `name` with the shape `stored`; `remark` follows the model's shape, `hint` says what to do.
  void add_other_shape(const std::string& name, const Shape& stored, const Shape& expected,
                       const std::string& remark = "", const std::string& hint = "");
  /// The shape is the model's, but the padding differs; `stored` and `expected` are the shapes without padding, or
  /// empty for a tensor without padding.
  void add_other_padding(const std::string& name, const Shape& shape, const Shape& stored, const Shape& expected);
  /// Adds a fault unless it is already known, so that a fault of many ranks is reported once.
  void add_fault(Diagnostic fault);

  /// Throws InputError with all faults. Otherwise returns remarks for the user: states that the checkpoint lacks, and
  /// tensors of the checkpoint that were not requested.
  std::vector<std::string> notices() const;

 private:
  const Checkpoint& checkpoint_;
  std::vector<Diagnostic> faults_;
  std::vector<std::string> missing_;  // parameters
  std::vector<std::string> fresh_;
  bool has_fresh_copies_ = false;  // master copies among them
  std::set<std::string> taken_;
};

/// Gives each master copy that was not loaded the loaded values of its parameter: by `draw_tensor` it would start as
/// the parameter that the seed makes, and the first update would replace the loaded weights by that one.
void start_master_copies(const OperatorGraph& graph, std::map<TensorId, TensorValues>& loaded);

}  // namespace shardplan
