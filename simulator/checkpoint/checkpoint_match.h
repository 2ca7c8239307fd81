#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/operator_graph.h"
#include "simulator/checkpoint/checkpoint.h"

namespace shardplan {

/// Whether a checkpoint holds what a model stores: the one is asked for each tensor of the other, the faults are collected
/// and thrown together. A parameter that is missing is a fault; a state may begin at zero.
class CheckpointMatch {
 public:
  /// `checkpoint` must outlive it.
  explicit CheckpointMatch(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  /// Which tensor of the checkpoint a parameter or state of the model is; nothing if it has none of that name.
  std::optional<std::size_t> find(const GraphTensor& tensor);
  /// The checkpoint holds `name` in the shape `stored`; `remark` is put behind the model's shape, `hint` is what to do.
  void add_other_shape(const std::string& name, const Shape& stored, const Shape& expected,
                       const std::string& remark = "", const std::string& hint = "");
  /// The shape is the model's, but of one of the two another part of it is padding; `stored` and `expected` are without,
  /// and empty where there is none.
  void add_other_padding(const std::string& name, const Shape& shape, const Shape& stored, const Shape& expected);
  /// Adds a fault unless it is known, so that what many ranks lack is reported once.
  void add_fault(Diagnostic fault);

  /// Throws InputError with all faults. Otherwise what a reader of the output should know: states that begin at zero, and
  /// tensors of the checkpoint that nobody asked for.
  std::vector<std::string> notices() const;

 private:
  const Checkpoint& checkpoint_;
  std::vector<Diagnostic> faults_;
  std::vector<std::string> fresh_;
  std::set<std::string> taken_;
};

}  // namespace shardplan
