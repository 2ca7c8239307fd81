#include "cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/text/text_table.h"

namespace shardplan {
namespace {

/// "  name      text", the text wrapped in its column; on a line of its own if the name is too long for its column.
std::string entry(const std::string& name, const std::string& text, std::size_t column) {
  std::string result = "  " + name;
  if (result.size() + 2 > column) {
    result += '\n' + std::string(column, ' ');
  } else {
    result.resize(column, ' ');
  }
  bool is_first = true;
  for (const std::string& line : wrapped(text, kTerminalWidth - column)) {
    if (!is_first) result += std::string(column, ' ');
    result += line + '\n';
    is_first = false;
  }
  return result;
}

std::string paragraph(const std::string& text) {
  std::string result;
  for (const std::string& line : wrapped(text, kTerminalWidth)) result += line + '\n';
  return result;
}

/// One line each if all lines are short enough, else each meaning below its command.
std::string examples_text(const std::string& prefix, const std::vector<Example>& examples) {
  std::string text = examples.empty() ? "" : "\nExamples:\n";
  std::size_t call = 0;
  std::size_t meaning = 0;
  for (const Example& example : examples) {
    call = std::max(call, prefix.size() + example.arguments.size());
    meaning = std::max(meaning, example.meaning.size());
  }
  const std::size_t column = call + 4;
  for (const Example& example : examples) {
    text += column + meaning <= kTerminalWidth
                ? entry(prefix + example.arguments, example.meaning, column)
                : fmt::format("  {}{}\n      {}\n", prefix, example.arguments, example.meaning);
  }
  return text;
}

std::string option_name(const Option& option) {
  return option.value.empty() ? option.name : option.name + " " + option.value;
}

}  // namespace

std::string usage_line(const Program& program, const Command& command) {
  std::string text = program.name + " " + command.name;
  bool has_options = false;
  for (const Option& option : command.all_options()) {
    if (option.is_argument()) {
      text += option.is_required ? " " + option.name : " [" + option.name + "]";
    } else if (option.is_required) {
      text += " " + option_name(option);
    } else {
      has_options = true;
    }
  }
  return has_options ? text + " [options]" : text;
}

std::string command_list(const Program& program) {
  std::vector<std::string> topics;
  std::size_t longest = 0;
  for (const Command& command : program.commands) {
    longest = std::max(longest, command.name.size());
    if (std::find(topics.begin(), topics.end(), command.topic) == topics.end()) topics.push_back(command.topic);
  }
  std::string text;
  for (const std::string& topic : topics) {
    text += fmt::format("{}{}:\n", text.empty() ? "" : "\n", topic);
    for (const Command& command : program.commands) {
      if (command.topic == topic) text += entry(command.name, command.summary, longest + 4);
    }
  }
  return text;
}

std::string overview_page(const Program& program) {
  std::string text = paragraph(program.summary);
  text += fmt::format("\nusage: {0} COMMAND [arguments]       details: {0} COMMAND --help\n\n", program.name);
  text += command_list(program);
  text += examples_text(program.name + " ", program.examples);
  text += "\nExit codes:\n";
  for (const auto& [code, meaning] : program.exit_codes) text += entry(std::to_string(code), meaning, 8);
  return text;
}

std::string option_help(const Option& option) {
  std::string text = option.help;
  if (!option.check.words.empty()) text += fmt::format(": {}", fmt::join(option.check.words, ", "));
  if (option.is_repeatable()) text += "; may be repeated";
  if (!option.is_required && !option.default_text.empty()) text += fmt::format(" (default: {})", option.default_text);
  return text;
}

std::string help_page(const Program& program, const Command& command) {
  std::string text = paragraph(command.summary);
  text += fmt::format("\nusage: {}\n", usage_line(program, command));
  if (!command.description.empty()) text += "\n" + paragraph(command.description);
  std::size_t longest = 0;
  for (const Option& option : command.all_options()) longest = std::max(longest, option_name(option).size());
  const std::size_t column = std::min<std::size_t>(longest + 4, 26);
  for (const OptionGroup& group : command.options) {
    text += group.title.empty() ? "\n" : fmt::format("\n{}:\n", group.title);
    for (const Option& option : group.options) text += entry(option_name(option), option_help(option), column);
  }
  return text + examples_text(program.name + " " + command.name + " ", command.examples);
}

}  // namespace shardplan
