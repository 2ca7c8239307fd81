// CLI11 is used here only, to split the arguments into options and values. Values are checked by the table's own types,
// so that error messages, help and completion agree.

#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/parse_number.h"
#include "base/shortened.h"
#include "cli/help.h"
#include "cli/named_files.h"

namespace shardplan {
namespace {

template <class T>
struct Inner {
  using type = T;
};
template <class T>
struct Inner<std::optional<T>> {
  using type = T;
};

std::string number_text(double value) { return fmt::format("{}", value); }

/// "a whole number from 0 to 2"
std::string expected(std::string kind, const Check& check) {
  if (check.is_positive) return kind + " above 0";
  if (check.least && check.most) return kind + " from " + number_text(*check.least) + " to " + number_text(*check.most);
  if (check.least) return kind + " of at least " + number_text(*check.least);
  return kind;
}

/// "auto, ilp or local"
std::string one_of_text(const std::vector<std::string>& words) {
  const std::string most = fmt::format("{}", fmt::join(words.begin(), words.end() - 1, ", "));
  return most.empty() ? words.back() : most + " or " + words.back();
}

/// Whether the text begins with a number that the type cannot hold because it is too large.
template <class T>
bool is_too_large(const std::string& text) {
  const bool is_number = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
  return is_number && !parse_number<T>(text) &&
         std::strtod(text.c_str(), nullptr) >= static_cast<double>(std::numeric_limits<T>::max());
}

template <class T>
std::string set_number(const std::string& text, const Check& check, T& target) {
  const std::optional<T> value = parse_number<T>(text);
  const double number = static_cast<double>(value.value_or(T{}));
  const bool is_fit = value && std::isfinite(number) && (!check.is_positive || number > 0) &&
                      (!check.least || number >= *check.least) && (!check.most || number <= *check.most);
  if (is_fit) {
    target = *value;
    return "";
  }
  Check shown = check;
  if (std::is_unsigned_v<T> && !shown.least && !shown.is_positive) shown.least = 0;
  std::string fault = "expected " + expected(std::is_floating_point_v<T> ? "a number" : "a whole number", shown);
  if (!shown.most && is_too_large<T>(text)) fault += fmt::format(" and at most {}", std::numeric_limits<T>::max());
  return fault;
}

/// Sets the target; returns what is wrong with the text, or "".
std::string set(const Option& option, const std::string& text) {
  const std::vector<std::string>& words = option.check.words;
  if (!words.empty() && std::find(words.begin(), words.end(), text) == words.end()) {
    const std::string near = nearest_name(text, words);
    return fmt::format("{}expected {}", near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                       one_of_text(words));
  }
  return std::visit(
      [&](auto* target) -> std::string {
        using Held = std::remove_pointer_t<decltype(target)>;
        using Value = typename Inner<Held>::type;
        if constexpr (std::is_same_v<Value, bool>) {
          *target = true;
        } else if constexpr (std::is_same_v<Held, std::vector<std::string>>) {
          target->push_back(text);
        } else if constexpr (std::is_same_v<Value, std::string>) {
          *target = text;
        } else {
          Value value{};
          std::string fault = set_number(text, option.check, value);
          if (fault.empty()) *target = value;
          return fault;
        }
        return "";
      },
      option.target);
}

/// "MODEL is missing: the model file (YAML)"
std::string missing_text(const Option& option) {
  const std::string value = option.value.empty() ? "" : " " + option.value;
  return fmt::format("{}{} is missing: {}", option.name, value, option.help);
}

std::string usage_text(const Program& program, const Command& command, const std::vector<std::string>& faults) {
  std::string text;
  for (const std::string& fault : faults) text += fmt::format("{} {}: {}\n", program.name, command.name, fault);
  text += fmt::format("usage: {}\n", usage_line(program, command));
  if (!command.examples.empty()) {
    text += fmt::format("for example: {} {} {}\n", program.name, command.name, command.examples.front().arguments);
  }
  return text + fmt::format("all options: {} {} --help", program.name, command.name);
}

[[noreturn]] void refuse_command(const Program& program, const std::string& name) {
  if (name.starts_with("-")) {
    throw UsageError(fmt::format("{}: there is no option '{}' before the command\n\n{}", program.name, shortened(name),
                                 command_list(program)));
  }
  std::vector<std::string> names;
  for (const Command& command : program.commands) names.push_back(command.name);
  const std::string near = nearest_name(name, names);
  std::string hint = near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
  if (name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json")) {
    hint = fmt::format("; did you mean '{} {} {}'?", program.name, program.commands.front().name, shortened(name));
  }
  throw UsageError(
      fmt::format("{}: there is no command '{}'{}\n\n{}", program.name, shortened(name), hint, command_list(program)));
}

/// A word that no option takes.
std::string unexpected_text(const Command& command, const std::string& word) {
  if (!word.starts_with("-") || word.size() < 2) return fmt::format("unexpected argument '{}'", shortened(word));
  std::vector<std::string> names{"--help"};
  for (const Option& option : command.all_options()) {
    if (!option.is_argument()) names.push_back(option.name);
  }
  const std::string name = word.substr(0, word.find('='));
  const std::string near = nearest_name(name, names);
  return fmt::format("there is no option '{}'{}", shortened(name),
                     near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
}

Request read_command(const Program& program, const Command& command, const std::vector<std::string>& arguments) {
  const std::vector<Option> options = command.all_options();
  CLI::App library;
  library.set_help_flag();
  library.allow_extras();
  CLI::Option* const help = library.add_flag("-h,--help");
  std::vector<CLI::Option*> parsed;
  for (const Option& option : options) {
    CLI::Option* added = option.is_flag() ? library.add_flag(option.name)
                                          : library.add_option(option.name, [](const CLI::results_t&) { return true; });
    if (!option.is_flag()) added->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    parsed.push_back(added);
  }

  std::vector<std::string> faults;
  try {
    // CLI11 takes the arguments in reverse order.
    library.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ArgumentMismatch&) {
    faults.push_back(fmt::format("{} needs a value", shortened(arguments.back())));
  } catch (const CLI::ParseError& error) {
    faults.push_back(error.what());
  }
  const auto asks_for_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (help->count() > 0 || std::any_of(arguments.begin(), arguments.end(), asks_for_help)) {
    return {help_page(program, command), {}};
  }
  for (const std::string& word : library.remaining()) faults.push_back(unexpected_text(command, word));
  std::vector<std::string> missing;
  std::vector<GivenValue> given;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Option& option = options[i];
    if (parsed[i]->count() == 0) {
      if (option.is_required) missing.push_back(missing_text(option));
      continue;
    }
    const std::vector<std::string>& values = parsed[i]->results();
    if (option.is_flag()) {
      const auto valued = std::find_if(values.begin(), values.end(), [](const std::string& v) { return v != "true"; });
      if (valued != values.end())
        faults.push_back(fmt::format("{} takes no value, found '{}'", option.name, shortened(*valued)));
      set(option, "");
      continue;
    }
    if (values.size() > 1 && !option.is_repeatable()) {
      faults.push_back(fmt::format("{} is given {} times; it may be given once", option.name, values.size()));
      continue;
    }
    for (const std::string& value : values) {
      given.push_back({&option, value});
      if (value.empty()) {
        faults.push_back(fmt::format("{} needs a value", option.name));
      } else if (const std::string fault = set(option, value); !fault.empty()) {
        faults.push_back(fmt::format("{} {}: {}", option.name, shortened(value), fault));
      }
    }
  }
  // A missing option may only be misspelt, so missing ones are only reported if there are no other faults.
  if (faults.empty()) faults = std::move(missing);
  if (!faults.empty()) throw UsageError(usage_text(program, command, faults));
  check_named_files(given);
  return {"", command.action};
}

}  // namespace

Request read_command_line(const Program& program, const std::vector<std::string>& arguments) {
  if (arguments.empty()) throw UsageError(overview_page(program));
  const std::string& first = arguments.front();
  if (first == "--version") return {fmt::format("{} {}\n", program.name, program.version), {}};
  if (first == "--help" || first == "-h" || first == "help") {
    if (arguments.size() < 2) return {overview_page(program), {}};
    const Command* const command = program.find(arguments[1]);
    if (command == nullptr) refuse_command(program, arguments[1]);
    return {help_page(program, *command), {}};
  }
  const Command* const command = program.find(first);
  if (command == nullptr) refuse_command(program, first);
  return read_command(program, *command, {arguments.begin() + 1, arguments.end()});
}

}  // namespace shardplan
