#include "cli/terminal.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace shardplan {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void notice(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

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
