#include "cli/terminal.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/write_files.h"

namespace shardplan {

void print(const std::string& text) {
  const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!is_written || std::fflush(stdout) != 0) cannot_write("standard output", errno);
}

void notice(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

void say_notices(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) notice("notice: " + text);
}

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0');
}

bool shows_progress() { return isatty(STDERR_FILENO) != 0; }

std::function<void(const std::string&)> progress_sink() {
  if (shows_progress()) return notice;
  return {};
}

}  // namespace shardplan
