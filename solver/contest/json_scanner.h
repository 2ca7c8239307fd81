#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "solver/contest/character_stream.h"

namespace shardplan {

/// The part of JSON that the contest's files use, read as a stream: the caller asks for what should come next, and what
/// comes instead is an InputError with its place. Nothing is kept, so that a file of hundreds of megabytes never stands
/// in memory as a tree (base/json_tree.h does that, for files that people write).
class JsonScanner {
 public:
  /// The stream must outlive the scanner.
  explicit JsonScanner(CharacterStream& characters) : in_(characters) {}

  /// The next character that is not white space, 0 at the end.
  char peek() {
    for (;;) {
      const char c = in_.peek();
      if (c == '\n') {
        in_.new_line();
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return c;
      }
      in_.advance();
    }
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    in_.advance();
    return true;
  }
  void expect(char wanted, const char* where) {
    if (!take(wanted)) in_.fail("{}; expected '{}' {}", found(), wanted, where);
  }

  /// At most 4096 bytes of UTF-8; escapes are replaced by what they mean.
  std::string string();
  /// A whole number of at least 0 that fits in 64 bits; "1e18" and "4.0" are whole numbers.
  std::int64_t number();
  /// A list of such numbers, read into `numbers`, which is cleared first (a buffer used again and again).
  void numbers(std::vector<std::int64_t>& numbers);
  /// Any value, at most 64 deep.
  void skip_value(int depth = 0);

  template <class Function>
  void list(Function each) {
    expect('[', "before a list");
    if (take(']')) return;
    do {
      each();
    } while (take(','));
    expect(']', "after a list");
  }

  template <class Function>
  void object(Function each) {
    expect('{', "before an object");
    if (take('}')) return;
    do {
      const std::string key = string();
      expect(':', "after a name");
      each(key);
    } while (take(','));
    expect('}', "after an object");
  }

  /// The next character in words, for messages.
  std::string found();
  CharacterStream& characters() { return in_; }

 private:
  [[noreturn]] void too_large();
  /// What follows a backslash, and what follows "\u".
  void append_escape(std::string& text);
  void append_code_point(std::string& text);
  std::uint32_t four_digits();
  /// Makes room for as many numbers again, and looks at the clock on the way.
  void grow(std::vector<std::int64_t>& numbers);
  /// "-0" is a number of at least 0, too.
  std::int64_t negative_zero();
  /// The rest of a number with a fraction or an exponent, exactly: digits are moved, none is rounded.
  std::int64_t decimal(std::uint64_t digits);

  CharacterStream& in_;
};

}  // namespace shardplan
