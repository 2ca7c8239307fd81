#include "report/export/python_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shardplan {
namespace {

/// The text between the quotes of a Python string.
std::string python_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result;
}

/// f"layers.{i}.up.weight".
std::string name_with_indices(std::string_view name) {
  std::string text;
  std::size_t star = 0;
  for (const char c : python_escaped(name)) {
    if (c == '*') {
      text += fmt::format("{{{}}}", python_index(star++));
    } else if (c == '{' || c == '}') {
      text += c;
      text += c;
    } else {
      text += c;
    }
  }
  return fmt::format("f\"{}\"", text);
}

}  // namespace

std::string python_text(std::string_view text) { return '"' + python_escaped(text) + '"'; }

std::string python_tuple(const std::vector<std::string>& items) {
  return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
}

std::string python_tuple(const std::vector<std::int64_t>& items) {
  return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
}

PythonMesh python_mesh(const RefinedAxes& axes) {
  std::vector<std::int64_t> sizes;
  std::vector<std::string> names;
  for (const RefinedAxes::Axis& axis : axes.axes()) {
    sizes.push_back(axis.size);
    names.push_back(python_text(axis.name));
  }
  return {python_tuple(sizes), python_tuple(names)};
}

std::string python_indices(const std::vector<std::int64_t>& indices) {
  const bool is_dense = indices.back() - indices.front() + 1 == static_cast<std::int64_t>(indices.size());
  if (!is_dense) return python_tuple(indices);
  return indices.front() == 0 ? fmt::format("range({})", indices.back() + 1)
                              : fmt::format("range({}, {})", indices.front(), indices.back() + 1);
}

char python_index(std::size_t star) { return static_cast<char>('i' + star); }

std::string python_dictionary(std::string_view variable, const std::vector<ExportedEntry>& entries,
                              std::vector<std::string>& cannot_say) {
  std::string text = fmt::format("{} = {{", variable);
  if (entries.empty()) return text + "}\n";
  text += '\n';
  for (const ExportedEntry& entry : fold_entries(entries)) {
    if (!entry.problem.empty()) {
      text += "    " + python_comment("cannot be expressed: " + entry.problem);
      cannot_say.push_back(entry.problem);
      if (entry.value.empty()) continue;
    }
    if (entry.indices.empty()) {
      text += fmt::format("    {}: {},\n", python_text(entry.name), entry.value);
    } else {
      std::string loops;
      for (std::size_t i = 0; i < entry.indices.size(); ++i) {
        loops += fmt::format(" for {} in {}", python_index(i), python_indices(entry.indices[i]));
      }
      text += fmt::format("    **{{{}: {}{}}},\n", name_with_indices(entry.name), entry.value, loops);
    }
  }
  return text + "}\n";
}

std::string python_comment(std::string_view text) {
  std::string line = "# ";
  for (const char c : text) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return line + '\n';
}

std::string python_refusals(const std::vector<std::string>& things, std::vector<std::string>& cannot_say) {
  std::string text;
  for (const std::string& thing : things) text += python_comment("cannot be expressed: " + thing);
  cannot_say.insert(cannot_say.end(), things.begin(), things.end());
  return text;
}

}  // namespace shardplan
