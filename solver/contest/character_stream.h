#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "solver/limits.h"

namespace shardplan {

/// Thrown by a `CharacterStream` whose deadline is over; whoever set the deadline catches it.
struct OutOfTime {};

/// Characters of a file or of a text, one piece at a time, so that a file of any size is read in the memory of one
/// piece. A zero character marks the end of each piece, so that a loop over characters tests one thing only; `refill`
/// tells the end of a piece from the end of the input.
class CharacterStream {
 public:
  /// The text (`name` stands for the file in messages) and the deadline must outlive the stream.
  CharacterStream(std::string_view text, std::string name, const Deadline& deadline);
  /// Throws InputError if the file cannot be opened or, later, be read.
  CharacterStream(const std::string& path, const Deadline& deadline);
  ~CharacterStream();
  CharacterStream(const CharacterStream&) = delete;
  CharacterStream& operator=(const CharacterStream&) = delete;

  /// The next character, or 0 at the end; a zero character in the input is an error.
  char peek() {
    if (*at_ == 0) refill();
    return *at_;
  }
  void advance() { ++at_; }
  /// Called at a line's end, before it is passed: places of faults count lines.
  void new_line() {
    ++line_;
    line_start_ = offset() + 1;
  }
  /// Throws OutOfTime once the deadline is over.
  void check_time() const;

  /// Throws InputError at the present place.
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw InputError(place(), "{}", fmt::format(format, std::forward<Args>(args)...));
  }
  SourcePlace place() const;
  const std::string& name() const { return name_; }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 18;

  std::size_t offset() const { return loaded_ + static_cast<std::size_t>(at_ - buffer_.get()); }
  void refill();
  void load();

  const Deadline& deadline_;
  std::string name_;
  std::string_view rest_;
  int file_ = -1;
  std::unique_ptr<char[]> buffer_ = std::make_unique<char[]>(kPiece + 1);
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::size_t loaded_ = 0;  // characters in the pieces before this one
  bool finished_ = false;
  int line_ = 1;
  std::size_t line_start_ = 0;
};

}  // namespace shardplan
