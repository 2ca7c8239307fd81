#include "solver/contest/character_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace shardplan {

CharacterStream::CharacterStream(std::string_view text, std::string name, const Deadline& deadline)
    : deadline_(deadline), name_(std::move(name)), rest_(text) {
  load();
}

CharacterStream::CharacterStream(const std::string& path, const Deadline& deadline)
    : deadline_(deadline), name_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) throw InputError(SourcePlace{path}, "cannot be read: {}", std::strerror(errno));
  load();
}

CharacterStream::~CharacterStream() {
  if (file_ >= 0) close(file_);
}

void CharacterStream::check_time() const {
  if (deadline_.is_over()) throw OutOfTime();
}

SourcePlace CharacterStream::place() const {
  return {name_, line_, static_cast<int>(std::min<std::size_t>(offset() - line_start_, 2147483646) + 1)};
}

void CharacterStream::refill() {
  if (at_ != end_) fail("zero character");
  if (finished_) return;
  loaded_ += static_cast<std::size_t>(end_ - buffer_.get());
  load();
}

void CharacterStream::load() {
  check_time();
  std::size_t count = 0;
  if (file_ < 0) {
    count = rest_.copy(buffer_.get(), kPiece);
    rest_.remove_prefix(count);
  } else {
    ssize_t got;
    do {
      got = read(file_, buffer_.get(), kPiece);
    } while (got < 0 && errno == EINTR);
    if (got < 0) throw InputError(SourcePlace{name_}, "cannot be read: {}", std::strerror(errno));
    count = static_cast<std::size_t>(got);
  }
  finished_ = count == 0;
  at_ = buffer_.get();
  end_ = at_ + count;
  buffer_[count] = 0;
  if (!finished_ && *at_ == 0) fail("zero character");
}

}  // namespace shardplan
