#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "graph/folded_names.h"
#include "report/export/export.h"
#include "report/export/exported_plan.h"
#include "report/metrics/plan_metrics.h"

namespace shardplan {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_identifier(std::string_view part) {
  constexpr std::array<std::string_view, 35> kKeywords{
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  if (part.empty() || is_number(part.substr(0, 1))) return false;
  if (std::find(kKeywords.begin(), kKeywords.end(), part) != kKeywords.end()) return false;
  return std::all_of(part.begin(), part.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// "net.layers[i].attn.qkv.matmul" of "layers.*.attn.qkv.matmul"; `variables` receives one name per '*'.
std::string cell_text(std::string_view name, std::size_t* variables) {
  std::string text = "net";
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(part.size() + 1, name.size()));
    if (part == "*") {
      text += fmt::format("[{}]", static_cast<char>('i' + (*variables)++));
    } else if (is_number(part)) {
      text += fmt::format("[{}]", part);
    } else if (is_identifier(part)) {
      text += fmt::format(".{}", part);
    } else {
      text = fmt::format("getattr({}, {})", text, python_text(part));
    }
  }
  return text;
}

/// layout("pcie", "None", ("hccs", "x")).
std::optional<std::string> layout_call(const TensorLayout& layout, const RefinedAxes& axes, std::string* why) {
  const auto dimensions = dimension_axes(layout, axes, why);
  if (!dimensions) return std::nullopt;
  if (dimensions->empty()) return "()";
  std::vector<std::string> entries;
  for (const std::vector<std::string>& names : *dimensions) {
    std::vector<std::string> quoted;
    for (const std::string& name : names) quoted.push_back(python_text(name));
    entries.push_back(quoted.empty() ? python_text("None") : quoted.size() == 1 ? quoted[0] : python_tuple(quoted));
  }
  return fmt::format("layout({})", fmt::join(entries, ", "));
}

ExportedEntry shard_call(const Plan& plan, OperatorId id, const RefinedAxes& axes,
                         const std::map<std::string, const ExportedTensor*>& wanted) {
  const GraphOperator& op = plan.graph->operators()[id];
  const Operation& operation = plan.graph->operation(id);
  const Strategy& strategy = plan.strategies[id];
  std::vector<std::string> in, out;
  std::string why;
  const auto problem = [&](const TensorLayout& layout) {
    return ExportedEntry{op.name, "", fmt::format("{} {}; {}", op.name, to_string(layout, plan.mesh), why)};
  };
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    TensorLayout layout = operand_layout(operation, strategy, plan.mesh, i);
    if (!layout.partial.empty()) {
      why = "MindSpore completes sums before the next operator";
      return problem(layout);
    }
    const auto call = layout_call(layout, axes, &why);
    if (!call) return problem(layout);
    in.push_back(*call);
  }
  std::string text = fmt::format("shard(in_strategy={}", python_tuple(in));
  for (const TensorId result : op.results) {
    const auto found = wanted.find(plan.graph->tensor(result).name);
    if (found == wanted.end()) continue;
    const auto call = layout_call(found->second->layout, axes, &why);
    if (!call) return problem(found->second->layout);
    out.push_back(*call);
  }
  if (!out.empty() && out.size() == op.results.size()) text += fmt::format(", out_strategy={}", python_tuple(out));
  text += ")";
  if (const auto tuples = input_tuples(operation, strategy, plan.mesh)) {
    std::vector<std::string> items;
    for (const std::vector<std::int64_t>& tuple : *tuples) {
      std::vector<std::string> numbers;
      for (const std::int64_t value : tuple) numbers.push_back(fmt::format("{}", value));
      items.push_back(python_tuple(numbers));
    }
    text += fmt::format("  # or {}", python_tuple(items));
  }
  return {op.name, text, ""};
}

/// The numbers that stand at the place of each '*' of a folded name, over all its copies.
std::vector<std::set<std::int64_t>> indices_of(const std::string& folded, const std::vector<std::string>& names) {
  std::vector<std::set<std::int64_t>> indices;
  for (const std::string& name : names) {
    if (folded_name(name) != folded) continue;
    std::size_t star = 0;
    for (std::size_t begin = 0; begin <= name.size();) {
      const std::size_t end = std::min(name.find('.', begin), name.size());
      const std::string part = name.substr(begin, end - begin);
      if (is_number(part)) {
        if (star == indices.size()) indices.emplace_back();
        indices[star++].insert(std::stoll(part));
      }
      begin = end + 1;
    }
  }
  return indices;
}

}  // namespace

ExportedText export_mindspore(const Plan& plan) {
  const ExportedPlan exported = exported_plan(plan);
  const RefinedAxes axes = exported_axes(plan, exported);
  const PythonMesh mesh = python_mesh(axes);
  ExportedText result;
  result.text = fmt::format(
      "# {}\n"
      "from mindspore import Layout\n"
      "layout = Layout({}, {})\n",
      export_title(plan), mesh.sizes, mesh.names);
  const auto refuse = [&](const std::string& problem) {
    result.text += fmt::format("# cannot be said: {}\n", problem);
    result.cannot_say.push_back(problem);
  };
  if (!plan.mesh.devices().empty()) {
    refuse(fmt::format("the order of the devices {}", fmt::join(plan.mesh.devices(), ", ")));
  }
  std::map<std::string, const ExportedTensor*> wanted;
  for (const ExportedTensor& tensor : exported.constraints) wanted.emplace(tensor.name, &tensor);
  std::vector<ExportedEntry> entries;
  std::vector<std::string> all_names;
  for (const OperatorId op : plan.graph->operators().ids()) {
    if (plan.graph->operators()[op].pass != Pass::kForward || is_border(*plan.graph, op)) continue;
    entries.push_back(shard_call(plan, op, axes, wanted));
    all_names.push_back(entries.back().name);
  }
  for (const ExportedEntry& entry : fold_entries(entries)) {
    if (!entry.problem.empty()) {
      refuse(entry.problem);
      continue;
    }
    std::size_t variables = 0;
    const std::string cell = cell_text(entry.name, &variables);
    std::string indent;
    if (variables > 0) {
      const auto indices = indices_of(entry.name, all_names);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        result.text +=
            fmt::format("{}for {} in range({}):\n", indent, static_cast<char>('i' + i), *indices[i].rbegin() + 1);
        indent += "    ";
      }
    }
    std::string call = fmt::format("{}{}.{}", indent, cell, entry.value);
    const std::string_view second = ", out_strategy=";
    if (const std::size_t at = call.find(second); at != std::string::npos) {
      call.replace(at, 2,
                   fmt::format(",\n{:{}}", "", indent.size() + cell.size() + std::string_view(".shard(").size()));
    }
    result.text += call + '\n';
  }
  // A parameter is stored as its first reader takes it, its states likewise or further cut along dimension 0.
  std::map<std::string, const TensorLayout*> stored;
  std::vector<ExportedEntry> kept;
  for (const ExportedTensor& parameter : exported.parameters) {
    stored.emplace(parameter.name, &parameter.layout);
    const GraphTensor& tensor = plan.graph->tensor(*plan.graph->find_tensor(parameter.name));
    if (tensor.readers.empty()) continue;
    const Reader& reader = tensor.readers.front();
    const TensorLayout taken =
        operand_layout(plan.graph->operation(reader.op), plan.strategies[reader.op], plan.mesh, reader.operand);
    if (taken != parameter.layout) {
      kept.push_back({parameter.name, "",
                      fmt::format("{} stored {}; a parameter is stored as its first reader takes it", parameter.name,
                                  to_string(parameter.layout, plan.mesh))});
    }
  }
  for (const ExportedTensor& state : exported.states) {
    const auto found = stored.find(state.name);
    if (found != stored.end() && *found->second == state.layout) continue;
    kept.push_back({state.name, "",
                    fmt::format("{} optimizer states {}; enable_parallel_optimizer=True decides on its own", state.name,
                                to_string(state.layout, plan.mesh))});
  }
  for (const ExportedEntry& entry : fold_entries(kept)) refuse(entry.problem);
  return result;
}

}  // namespace shardplan
