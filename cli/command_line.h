#pragma once

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_table.h"

namespace shardplan {

/// The command line cannot be understood. The text has the faults, what is expected and where to read on.
class UsageError : public std::exception {
 public:
  explicit UsageError(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// The result of reading a command line: a page to print, or the action of a command, whose targets are now set.
struct Request {
  std::string page;
  std::function<int()> action;
};
/// `arguments` are those after the program's name. Throws UsageError with all faults found, and
/// InputError for files that would be replaced (cli/named_files.h).
Request read_command_line(const Program& program, const std::vector<std::string>& arguments);

}  // namespace shardplan
