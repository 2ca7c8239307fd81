// Scripts for shells and the manual page, generated from the command table alone, so that they are always up to date.
//
// Each shell has its own syntax for the same three things: the commands, the options of each, and the values of an
// option as far as they can be listed. The scripts call nothing, so completion never starts the program.

#include "cli/shell_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "cli/help.h"
#include "costmodel/cluster/cluster.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

/// The possible values of an option, as far as they can be listed, except files.
std::vector<std::string> listed_values(const Option& option) {
  if (!option.check.words.empty()) return option.check.words;
  std::vector<std::string> values;
  const bool is_number =
      std::holds_alternative<int*>(option.target) || std::holds_alternative<std::optional<int>*>(option.target);
  if (is_number && option.check.least && option.check.most && *option.check.most - *option.check.least < 10) {
    for (double value = *option.check.least; value <= *option.check.most; ++value) {
      values.push_back(fmt::format("{}", std::lround(value)));
    }
  }
  if (option.completion == Completion::kCluster) {
    for (const auto& [name, text] : cluster_presets()) values.push_back(name);
  }
  if (option.completion == Completion::kOperator) {
    for (const OperatorType& type : operator_catalogue()) values.push_back(type.name);
  }
  return values;
}

bool takes_files(const Option& option) {
  return option.completion == Completion::kFile || option.completion == Completion::kCluster;
}

std::vector<std::string> command_words(const Program& program) {
  std::vector<std::string> words;
  for (const Command& command : program.commands) words.push_back(command.name);
  words.insert(words.end(), {"help", "--help", "--version"});
  return words;
}

/// Quotes a text in single quotes for a shell.
std::string shell_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

/// The bash code that completes the value of an option.
std::string bash_action(const Option& option) {
  std::string action;
  const std::vector<std::string> values = listed_values(option);
  if (!values.empty()) {
    action = fmt::format("COMPREPLY=($(compgen -W {} -- \"$word\"))",
                         shell_quoted(fmt::format("{}", fmt::join(values, " "))));
  }
  if (takes_files(option)) action += (action.empty() ? "" : "; ") + std::string("_shardplan_files -f");
  if (option.completion == Completion::kFolder) action += "_shardplan_files -d";
  return action.empty() ? ":" : action;
}

std::string bash_script(const Program& program) {
  std::string text = fmt::format(
      "# Completes {0} in bash; written by '{0} completion bash'.\n"
      "_shardplan_files() {{\n"
      "  compopt -o filenames 2>/dev/null\n"
      "  local file\n"
      "  while IFS= read -r file; do COMPREPLY+=(\"$file\"); done < <(compgen \"$1\" -- \"$word\")\n"
      "}}\n"
      "_shardplan() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W {1} -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$command $before\" in\n",
      program.name, shell_quoted(fmt::format("{}", fmt::join(command_words(program), " "))));
  std::string options, arguments;
  for (const Command& command : program.commands) {
    std::vector<std::string> names{"--help"};
    std::string action = ":";
    for (const Option& option : command.all_options()) {
      if (option.is_argument()) {
        if (action == ":") action = bash_action(option);
        continue;
      }
      names.push_back(option.name);
      if (option.is_flag()) continue;
      text +=
          fmt::format("    {}) {}; return ;;\n", shell_quoted(command.name + " " + option.name), bash_action(option));
    }
    options += fmt::format("      {}) COMPREPLY=($(compgen -W {} -- \"$word\")) ;;\n", command.name,
                           shell_quoted(fmt::format("{}", fmt::join(names, " "))));
    arguments += fmt::format("      {}) {} ;;\n", command.name, action);
  }
  text += fmt::format(
      "  esac\n"
      "  if [[ $word == -* ]]; then\n"
      "    case $command in\n{}"
      "    esac\n"
      "  else\n"
      "    case $command in\n{}"
      "    esac\n"
      "  fi\n"
      "}}\n"
      "complete -F _shardplan {}\n",
      options, arguments, program.name);
  return text;
}

/// Escapes a description for a specification of _arguments, where brackets and colons have a meaning.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_value(const Option& option) {
  const std::vector<std::string> values = listed_values(option);
  const std::string name = zsh_text(option.value.empty() ? option.name : option.value);
  if (!values.empty() && !takes_files(option)) return fmt::format(":{}:({})", name, fmt::join(values, " "));
  if (!values.empty()) return fmt::format(":{}:{{ compadd -- {}; _files }}", name, fmt::join(values, " "));
  if (option.completion == Completion::kFolder) return fmt::format(":{}:_files -/", name);
  return fmt::format(":{}:{}", name, takes_files(option) ? "_files" : " ");
}

std::string zsh_script(const Program& program) {
  std::string text = fmt::format(
      "#compdef {0}\n# Completes {0} in zsh; written by '{0} completion zsh'.\n_shardplan() {{\n  local -a "
      "commands=(\n",
      program.name);
  for (const Command& command : program.commands) {
    text += fmt::format("    {}\n", shell_quoted(command.name + ":" + zsh_text(command.summary)));
  }
  text +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const Command& command : program.commands) {
    text += fmt::format("    {})\n      _arguments \\\n", command.name);
    int position = 0;
    for (const Option& option : command.all_options()) {
      std::string specification;
      if (option.is_argument()) {
        specification = fmt::format("{}{}", ++position, zsh_value(option));
      } else {
        specification = fmt::format("{}{}[{}]{}", option.is_repeatable() ? "*" : "", option.name, zsh_text(option.help),
                                    option.is_flag() ? "" : zsh_value(option));
      }
      text += fmt::format("        {} \\\n", shell_quoted(specification));
    }
    text += "        '--help[say more]'\n      ;;\n";
  }
  return text + "  esac\n}\n_shardplan \"$@\"\n";
}

std::string fish_script(const Program& program) {
  std::string text = fmt::format("# Completes {0} in fish; written by '{0} completion fish'.\n", program.name);
  for (const Command& command : program.commands) {
    text += fmt::format("complete -c {} -f -n __fish_use_subcommand -a {} -d {}\n", program.name, command.name,
                        shell_quoted(command.summary));
  }
  for (const Command& command : program.commands) {
    const std::string here =
        fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}'", program.name, command.name);
    for (const Option& option : command.all_options()) {
      const std::vector<std::string> values = listed_values(option);
      const std::string list = values.empty() ? "" : " -a " + shell_quoted(fmt::format("{}", fmt::join(values, " ")));
      if (option.is_argument()) {
        text += fmt::format("{}{}{}\n", here, takes_files(option) ? " -F" : " -f", list);
        continue;
      }
      const std::string takes = option.is_flag()                                                  ? ""
                                : takes_files(option) || option.completion == Completion::kFolder ? " -r -F"
                                                                                                  : " -x";
      text += fmt::format("{} -l {}{}{} -d {}\n", here, option.name.substr(2), takes, list, shell_quoted(option.help));
    }
  }
  return text;
}

/// Text for man(7): backslashes and hyphens are escaped, and no line begins with a dot or an apostrophe.
std::string man_text(std::string_view text) {
  std::string result;
  bool is_first = true;
  for (const char c : text) {
    if (is_first && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    is_first = c == '\n';
  }
  return result;
}

std::string man_examples(const std::string& prefix, const std::vector<Example>& examples) {
  std::string text;
  for (const Example& example : examples) {
    text += fmt::format(".TP\n.B {}\n{}\n", man_text(prefix + example.arguments), man_text(example.meaning));
  }
  return text;
}

}  // namespace

std::vector<std::string> completion_shells() { return {"bash", "zsh", "fish"}; }

std::string completion_script(const Program& program, std::string_view shell) {
  if (shell == "bash") return bash_script(program);
  return shell == "zsh" ? zsh_script(program) : fish_script(program);
}

std::string manual_page(const Program& program) {
  std::string text = fmt::format(
      ".TH SHARDPLAN 1 \"\" \"{0} {1}\" \"User Commands\"\n.SH NAME\n{0} \\- plan how the tensors of a model are laid "
      "out "
      "on a cluster\n.SH SYNOPSIS\n.B {0}\n.I COMMAND\n[arguments]\n.SH DESCRIPTION\n{2}\n.SH COMMANDS\n",
      program.name, man_text(program.version), man_text(program.summary));
  for (const Command& command : program.commands) {
    text += fmt::format(".SS {}\n{}.\n", man_text(usage_line(program, command)), man_text(command.summary));
    if (!command.description.empty()) text += fmt::format(".PP\n{}\n", man_text(command.description));
    for (const Option& option : command.all_options()) {
      const std::string name = option.value.empty() ? option.name : option.name + " " + option.value;
      text += fmt::format(".TP\n.B {}\n{}\n", man_text(name), man_text(option_help(option)));
    }
  }
  text += ".SH EXAMPLES\n" + man_examples(program.name + " ", program.examples);
  for (const Command& command : program.commands) {
    text += man_examples(program.name + " " + command.name + " ", command.examples);
  }
  text += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : program.exit_codes) {
    text += fmt::format(".TP\n.B {}\n{}\n", code, man_text(meaning));
  }
  return text;
}

}  // namespace shardplan
