#pragma once

#include <functional>
#include <string>
#include <vector>

namespace shardplan {

/// Writes a complete text to standard output; call at most once. Throws InputError if it cannot be written.
void print(const std::string& text);
/// A line on standard error.
void notice(const std::string& text);
/// One line for each: "notice: TEXT".
void say_notices(const std::vector<std::string>& texts);
/// True if standard output is a terminal and NO_COLOR is unset or empty.
bool wants_colour();
/// True if standard error is a terminal: progress may be shown.
bool shows_progress();
/// Writes progress if it may be shown; otherwise empty.
std::function<void(const std::string&)> progress_sink();

}  // namespace shardplan
