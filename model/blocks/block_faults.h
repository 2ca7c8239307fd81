#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace shardplan {

/// Where the faults of one block go while it is typed: messages begin with the block's label ("layer."), and faults
/// inside a built-in block, whose text the user never sees, point at the place where it is used.
class BlockFaults {
 public:
  BlockFaults(std::vector<Diagnostic>& all, std::string label, std::optional<SourcePlace> use)
      : all_(all), label_(std::move(label)), use_(std::move(use)) {}

  void add(const SourcePlace& place, std::string message, std::string hint = "") {
    has_any_ = true;
    all_.push_back({use_ ? *use_ : place, std::move(message), std::move(hint)});
  }
  /// For faults that are reported elsewhere but leave this block without a template.
  void mark() { has_any_ = true; }
  bool has_any() const { return has_any_; }

  /// The name of a tensor or operator of the block as messages show it.
  std::string name(const std::string& inner) const { return label_ + inner; }
  const std::string& label() const { return label_; }
  const std::optional<SourcePlace>& use() const { return use_; }

 private:
  std::vector<Diagnostic>& all_;
  const std::string label_;
  const std::optional<SourcePlace> use_;
  bool has_any_ = false;
};

}  // namespace shardplan
