#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace shardplan {

// The program's interface as data: a table of commands that is used to read the command line, to write help
// (cli/help.h), and by everything else that lists commands and options. A command is declared like this:
//
//   Command command;
//   command.name = "cluster";
//   command.summary = "Show what is assumed of a cluster";
//   command.examples = {{"dgx-a100x8", "eight nodes of eight A100"}};
//   command.options = {{"", {argument("CLUSTER", arguments->cluster, "a preset or a file").optional()}},
//                      {"Output", {flag("--json", arguments->json, "one JSON document")}}};
//   command.action = [arguments] { return show(*arguments); };

/// The variable that receives an option's value. A vector takes a repeatable option, a bool is a flag. The variable's
/// initial value is the default, which help shows.
using Target = std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*, std::optional<int>*,
                            std::optional<std::int64_t>*, std::optional<std::uint64_t>*, std::optional<double>*,
                            std::optional<std::string>*, std::vector<std::string>*>;

/// Constraints on a value in addition to its target's type.
struct Check {
  std::optional<double> least;  // for numbers, inclusive
  std::optional<double> most;
  bool is_positive = false;        // above 0
  std::vector<std::string> words;  // if not empty: the allowed values
};
Check from_to(double least, double most);
Check at_least(double least);
Check positive();
Check one_of(std::vector<std::string> words);

/// What a shell may suggest as a value.
enum class Completion { kNothing, kFile, kFolder, kCluster, kOperator };

struct Option {
  std::string name;   // "--level"; an argument by position has no dashes: "MODEL"
  std::string value;  // its value's name in help: "BYTES"; empty for flags and arguments by position
  std::string help;   // a phrase in lower case without a full stop
  Target target;
  Check check;
  bool is_required = false;
  Completion completion = Completion::kNothing;
  std::vector<std::string> writes;  // for options that name an output, its files; see `writing`
  std::string default_text;         // the target's value at declaration, or `with_default`; empty if not worth showing

  bool is_argument() const { return !name.starts_with("-"); }
  bool is_flag() const { return std::holds_alternative<bool*>(target); }
  bool is_repeatable() const { return std::holds_alternative<std::vector<std::string>*>(target); }

  Option required() const;
  Option optional() const;
  Option completed_by(Completion kind) const;
  /// The option names a file that the command writes, or with `files` a folder in which it writes these. Together with
  /// the options that name files to read, this is what refuses outputs that would replace an input.
  Option writing(std::vector<std::string> files = {""}) const;
  /// For help, where the target's value does not say it: a target that is empty unless the option is given.
  Option with_default(std::string text) const;
};

/// What was given for an option whose target is empty unless it is given, as text: the values of a repeatable option,
/// at most one of another.
std::vector<std::string> given_values(const Option& option);

/// A positional argument; required unless made optional.
Option argument(std::string name, Target target, std::string help, Check check = {});
/// --name VALUE; not required unless made so.
Option option(std::string name, std::string value, Target target, std::string help, Check check = {});
/// --name
Option flag(std::string name, bool& target, std::string help);

/// Options under one heading of the help page.
struct OptionGroup {
  std::string title;  // empty: the command's main arguments, listed first
  std::vector<Option> options;
};

struct Example {
  std::string arguments;  // after "shardplan <command>"
  std::string meaning;    // what it shows
  int exit_code = 0;      // its exit code
};

struct Command {
  std::string name;
  std::string topic;        // heading of the overview that lists it
  std::string summary;      // one line that begins with a verb, without a full stop
  std::string description;  // paragraphs of the help page; may be empty
  std::vector<Example> examples;
  std::vector<OptionGroup> options;
  std::function<int()> action;  // called once the targets are set; returns the exit code. Throws InputError.

  std::vector<Option> all_options() const;
};

/// The whole program.
struct Program {
  std::string name;
  std::string version;
  std::string summary;
  std::vector<Example> examples;  // including the commands' names
  std::vector<Command> commands;
  std::vector<std::pair<int, std::string>> exit_codes;

  /// Null if there is no command of that name.
  const Command* find(const std::string& command) const;
};

}  // namespace shardplan
