#pragma once

#include <string>
#include <vector>

#include "base/random.h"

namespace shardplan {

/// Changes texts the way that finds faults in readers: not by bytes, most of which no reader gets past, but by what the
/// texts are made of. Words, numbers, bracketed groups and lines are left out, doubled, exchanged, taken from other texts
/// of the same kind, or replaced by what lies at the border of what a reader expects (2^63, NaN, an empty list, a tab).
class Mutator {
 public:
  /// Words and groups of these texts are used in each other.
  explicit Mutator(const std::vector<std::string>& texts);

  /// One change of a text, or up to four.
  std::string mutated(const std::string& text, Random& random) const;

 private:
  void change(std::vector<std::string>& tokens, Random& random) const;
  void change_group(std::vector<std::string>& tokens, Random& random) const;
  void change_line(std::vector<std::string>& tokens, Random& random) const;

  std::vector<std::string> words_;
  std::vector<std::string> groups_;  // "{op: ReLU, in: x}"
  std::vector<std::string> lines_;
};

/// A text in words (with '.', '_' and '-' in them), numbers, white space and single characters; joined they are the text.
std::vector<std::string> tokens_of(const std::string& text);

}  // namespace shardplan
