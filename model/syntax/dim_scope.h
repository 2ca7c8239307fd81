#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/syntax/model_syntax.h"

namespace shardplan {

/// The dims that one body sees: its own, in whatever order they stand, and behind them the file's. An own dim is bound
/// by the caller (given, inferred) or an expression that is computed when it is first asked for.
class DimScope {
 public:
  /// `used` receives the file's dims that are looked up. Both must outlive the scope.
  DimScope(const std::map<std::string, std::int64_t>& file_dims, std::set<std::string>& used)
      : file_dims_(file_dims), used_(used) {}
  void declare(const std::vector<BlockDim>& own);

  /// Keeps the first value of a name.
  void bind(const std::string& name, std::int64_t value) { bound_.emplace(name, value); }
  bool is_own(const std::string& name) const { return own_.contains(name); }
  bool is_inferred(const std::string& name) const;

  /// Throw InputError (no place): an unknown name with the nearest, a dim that depends on itself, and what expressions
  /// throw.
  std::int64_t whole(const Expression& expression);
  double real(const Expression& expression);

 private:
  std::int64_t lookup(std::string_view name);

  const std::map<std::string, std::int64_t>& file_dims_;
  std::set<std::string>& used_;
  std::map<std::string, const BlockDim*> own_;
  std::map<std::string, std::int64_t> bound_;
  std::set<std::string> open_;  // being computed
};

}  // namespace shardplan
