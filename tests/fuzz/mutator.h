#pragma once

#include <string>
#include <vector>

#include "base/random.h"

namespace shardplan {

/// Mutates texts in the units that they consist of, not in bytes, which most readers reject at once. Words, numbers,
/// bracketed groups and lines are left out, doubled, exchanged, taken from other texts of the same kind, or replaced by
/// boundary values of what a reader expects (2^63, NaN, an empty list, a tab).
class Mutator {
 public:
  /// Words and groups of each text are also used in the others.
  explicit Mutator(const std::vector<std::string>& texts);

  /// One to four changes of a text.
  std::string mutated(const std::string& text, Random& random) const;

 private:
  void change(std::vector<std::string>& tokens, Random& random) const;
  void change_group(std::vector<std::string>& tokens, Random& random) const;
  void change_line(std::vector<std::string>& tokens, Random& random) const;

  std::vector<std::string> words_;
  std::vector<std::string> groups_;  // "{op: ReLU, in: x}"
  std::vector<std::string> lines_;
};

/// A text as words (including '.', '_' and '-'), numbers, white space and single characters; concatenated they are the
/// text.
std::vector<std::string> tokens_of(const std::string& text);

}  // namespace shardplan
