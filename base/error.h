#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/shared_text.h"

namespace shardplan {

/// A position in one of the user's files. Line and column count from 1; 0 means "no particular place".
struct SourcePlace {
  SharedText file;
  int line = 0;
  int column = 0;

  bool operator==(const SourcePlace&) const = default;
};

/// One fault in the user's input: what was found and (in `hint`) what would be correct.
struct Diagnostic {
  SourcePlace place;
  std::string message;
  std::string hint;  // may be empty; printed on separate lines, indented

  bool operator==(const Diagnostic&) const = default;
};

/// "broken.yaml:7:64: error: fc1: ...", with the hint on the next lines.
std::string to_string(const Diagnostic& diagnostic);

/// The user's data is wrong. Readers collect the faults they find and throw once, so that one run shows all of them.
class InputError : public std::exception {
 public:
  explicit InputError(std::vector<Diagnostic> diagnostics, std::string note = {});
  template <class... Args>
  InputError(SourcePlace place, fmt::format_string<Args...> format, Args&&... args)
      : InputError(std::vector<Diagnostic>{
            Diagnostic{std::move(place), fmt::format(format, std::forward<Args>(args)...), {}}}) {}

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  /// What was not checked because of the faults, for the last line: "shapes behind act were not checked"; may be empty.
  const std::string& note() const { return note_; }
  /// All diagnostics, one per line.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::vector<Diagnostic> diagnostics_;
  std::string note_;
  std::string text_;
};

/// The same error where `place`, a key in a file of the user's, names what has the faults: those that have no line of
/// their own get the key's place. "k.yaml: error: cannot be read" becomes "m.yaml:3:10: error: k.yaml: cannot be read".
InputError named_at(const SourcePlace& place, const InputError& error);

/// The candidate nearest to `name` by edit distance, or "" if none is near enough to have been meant.
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

/// Prints the failed condition and its place, then aborts. A failed check is our own fault, never the user's.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace shardplan

/// Aborts in every build if `condition` does not hold.
#define SHARDPLAN_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::shardplan::check_failed(#condition, __FILE__, __LINE__))
