#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/syntax/model_syntax.h"

namespace shardplan {

/// Whole numbers from here on are sizes that a proof may make smaller (model/shrink.h); those below count copies of
/// heads, layers or dimensions.
inline constexpr std::int64_t kLeastLiteral = 16;

/// The numbers of one file that every scope shares.
struct FileNumbers {
  std::map<std::string, std::int64_t> dims;             // the file's, evaluated
  std::map<std::int64_t, std::int64_t> other_literals;  // what stands for numbers that are written in expressions
  std::set<std::string> used_dims;                      // of the file, that something reads
  std::set<std::int64_t> literals;                      // from kLeastLiteral on, as they are written
};

/// The dims that one body sees: its own, in any order, and after them the file's. An own dim is bound
/// by the caller (given, inferred) or an expression that is computed when it is first asked for.
class DimScope {
 public:
  /// Notes what is used in `file`, which must outlive the scope. What is written in a built-in block was computed from the
  /// file's numbers, and is no literal.
  explicit DimScope(FileNumbers& file, bool is_built_in = false) : file_(file), is_built_in_(is_built_in) {}
  void declare(const std::vector<BlockDim>& own);

  /// Keeps the first value of a name.
  void bind(const std::string& name, std::int64_t value) { bound_.emplace(name, value); }
  bool is_own(const std::string& name) const { return own_.contains(name); }
  bool is_inferred(const std::string& name) const;

  /// Throw InputError (no place): an unknown name with the nearest, a dim that depends on itself, and what expressions
  /// throw.
  std::int64_t whole(const Expression& expression);
  double real(const Expression& expression);
  /// As `whole`, but literals are never replaced by smaller ones: how often a block is repeated.
  std::int64_t count(const Expression& expression);

 private:
  std::int64_t lookup(std::string_view name);
  std::int64_t literal(std::int64_t written);

  FileNumbers& file_;
  bool is_built_in_;
  std::map<std::string, const BlockDim*> own_;
  std::map<std::string, std::int64_t> bound_;
  std::set<std::string> open_;  // being computed
};

}  // namespace shardplan
