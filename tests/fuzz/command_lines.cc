// A case is a command line with one argument per line. All are parsed; those with quick commands on small files are
// also run, in a folder of their own that holds copies of these files.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/write_files.h"
#include "base/yaml.h"
#include "cli/command_line.h"
#include "cli/commands/commands.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/targets.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The words of a typed command, one per line: blanks and quotes are treated as a shell does.
std::string words_on_lines(const std::string& typed) {
  std::string text;
  char quote = 0;
  for (const char c : typed) {
    if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? 0 : c;
    } else {
      text += c == ' ' && quote == 0 ? '\n' : c;
    }
  }
  return text;
}

/// Commands that take milliseconds, and the files that they may be run on.
const std::set<std::string> kQuick = {"layout",     "redistribute", "cluster", "operators", "schema",
                                      "completion", "help",         "diff",    "calibrate"};
const std::set<std::string> kOnModels = {"plan", "export", "explain"};
const std::vector<std::string> kSmallModels = {"mlp.yaml", "semi-auto-matmul.yaml", "basic-blocks-net2.yaml"};

/// Command lines that name a path elsewhere, or ask for much work, are not run.
bool may_run(const std::vector<std::string>& words) {
  if (words.empty()) return false;
  for (const std::string& word : words) {
    if (word.find('/') != std::string::npos || word.find("..") != std::string::npos) return false;
    if (word.starts_with("--alternatives") || word.starts_with("--threads")) return false;
  }
  if (kQuick.count(words[0]) > 0) return true;
  return kOnModels.count(words[0]) > 0 && words.size() > 1 &&
         std::find(kSmallModels.begin(), kSmallModels.end(), words[1]) != kSmallModels.end();
}

/// Errors in a command line name the option, or something that was typed.
bool names_its_subject(const Diagnostic& fault, const std::vector<std::string>& words) {
  if (!fault.place.file.empty()) return true;
  for (const char* named : {"--", "'", "device_num", "mesh", "tensor_map", "[{"}) {
    if (fault.message.find(named) != std::string::npos) return true;
  }
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return !word.empty() && fault.message.find(word) != std::string::npos;
  });
}

CaseResult run_command(const std::string& text, const std::string& folder) {
  const std::vector<std::string> words = lines_of(text);
  try {
    const Program program = shardplan_program();
    const Request request = read_command_line(program, words);
    if (!request.action || !may_run(words)) return {};
    fs::current_path(folder);
    request.action();
    return {};
  } catch (const UsageError& error) {
    // Shows the command's usage, or lists the commands.
    const std::string page = error.what();
    const bool is_helpful = page.find("usage: ") != std::string::npos || page.find("Use a plan:") != std::string::npos;
    return is_helpful ? CaseResult{CaseResult::Kind::kRefused}
                      : CaseResult{CaseResult::Kind::kFault, "a usage error without usage\n" + page};
  } catch (const InputError& error) {
    for (const Diagnostic& fault : error.diagnostics()) {
      if (!names_its_subject(fault, words)) {
        return fault_of("an error without a place", error, fault);
      }
    }
    return {CaseResult::Kind::kRefused};
  }
}

/// In addition to the examples of the help pages: options and layouts that these do not show.
const std::vector<std::string> kMoreCommands = {
    "plan mlp.yaml --level 2 --work-limit 100000 --capacity 3MiB --costs mindspore",
    "plan mlp.yaml --level 1 --memory-slack 0.5 --memory unbounded --overlap off --layers free --work-limit 100000",
    "plan semi-auto-matmul.yaml --json --set out=[{},{}] --dim B=8 --work-limit 100000",
    "plan basic-blocks-net2.yaml --cluster dgx-a100x2 --device-num 4 --verbose --work-limit 100000",
    "export mlp.yaml --to jax --work-limit 100000",
    "export mlp.yaml --to dtensor --work-limit 100000",
    "explain mlp.yaml layer1 --work-limit 100000",
    "layout --mesh x=2,y=4 --layout '[{x, y}, {}]' --shape 16,8",
    "layout --mesh x=2,y=4 --layout '[(2:{}, 4:{x}), {y:(1)2}] unreduced={y:(2)2}' --shape 8x6 --json",
    "layout --device-matrix (2,4) --tensor-map (1,-1) --shape 16x8",
    "layout --mesh a=2,b=3 --strategy (2,3) --shape 7x9",
    "redistribute --mesh x=2,y=4 --shape 16x8 --from '[{x}, {y}]' --to '[{y}, {x}]' --check --json",
    "redistribute --mesh x=4 --devices 0-3 --to-mesh y=2,z=2 --to-devices 4-7 --shape 8x8 --from '[{x}, {}]' --to "
    "'[{y}, {z}]' --check",
    "redistribute --mesh x=3 --shape 7x5 --dtype bf16 --from '[{x}, {}]' --to '[{}, {x}]' --memory unbounded --check",
    "redistribute --mesh x=2,y=2,z=2 --shape 4x4x4 --from '[{x},{y},{z}] unreduced={}' --to '[{},{},{}]' --cluster "
    "dgx-a100",
    "cluster dgx-a100x8 --json",
    "operators MatMul",
    "operators nn.Dense",
};

}  // namespace

FuzzTarget command_target(const std::string& folder) {
  std::vector<std::string> corpus;
  const Program program = shardplan_program();
  for (const Command& command : program.commands) {
    corpus.push_back(command.name + "\n--help");
    for (const Example& example : command.examples)
      corpus.push_back(words_on_lines(command.name + " " + example.arguments));
    // Every option once, with some value.
    std::string all = command.name;
    for (const Option& option : command.all_options()) {
      all += "\n" + (option.is_argument() ? "mlp.yaml" : option.name);
      if (!option.is_argument() && !option.is_flag()) {
        all += "\n" + (option.check.words.empty() ? std::string("2") : option.check.words.front());
      }
    }
    corpus.push_back(all);
  }
  for (const std::string& typed : kMoreCommands) corpus.push_back(words_on_lines(typed));
  const std::string inside = folder + "/commands";
  fs::create_directories(inside);
  for (const std::string& name : kSmallModels) fs::copy_file("configs/" + name, inside + "/" + name);

  FuzzTarget target;
  target.name = "commands";

  target.batch = 1200;
  const Mutator mutator(corpus);
  target.make = [corpus, mutator](Random& random) {
    return mutator.mutated(corpus[random.below(corpus.size())], random);
  };
  target.run = [inside](const std::string& text) { return run_command(text, inside); };
  return target;
}

}  // namespace shardplan
