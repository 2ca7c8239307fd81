#include "graph/folded_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace shardplan {
namespace {

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view first_part(std::string_view name) { return name.substr(0, name.find('.')); }

/// The index in a folded run's name: the number part of "layers.3".
std::string_view index_of(std::string_view name) {
  while (!name.empty()) {
    const std::string_view part = first_part(name);
    if (is_number(part)) return part;
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return {};
}

std::string replace_star(std::string text, std::string_view with) {
  const std::size_t at = text.find('*');
  return at == std::string::npos ? text : text.replace(at, 1, with);
}

}  // namespace

std::string folded_name(std::string_view name) {
  std::string folded;
  while (true) {
    const std::string_view part = first_part(name);
    folded += is_number(part) ? "*" : part;
    if (part.size() == name.size()) return folded;
    folded += '.';
    name.remove_prefix(part.size() + 1);
  }
}

std::string top_block(std::string_view name) {
  const std::string_view first = first_part(name);
  if (first.size() == name.size()) return std::string(name);
  const std::string_view second = first_part(name.substr(first.size() + 1));
  return std::string(name.substr(0, is_number(second) ? first.size() + 1 + second.size() : first.size()));
}

std::string holder_block(std::string_view name) {
  const std::string top = top_block(name);
  std::string block = folded_name(top);
  if (block.find('*') != std::string::npos && name.size() > top.size()) {
    const std::string inner = top_block(name.substr(top.size() + 1));
    if (inner.size() + top.size() + 1 < name.size()) block += "." + folded_name(inner);
  }
  return block;
}

bool is_within(std::string_view name, std::string_view scope) {
  return name.starts_with(scope) && (name.size() == scope.size() || name[scope.size()] == '.');
}

std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

std::vector<NameRun> fold_runs(const std::vector<std::string>& names, const std::vector<std::string>& keys) {
  std::map<std::string, std::size_t> copies;
  for (const std::string& name : names) ++copies[folded_name(name)];
  std::vector<NameRun> runs;
  for (std::size_t begin = 0; begin < names.size();) {
    const std::string folded = folded_name(names[begin]);
    std::size_t end = begin + 1;
    while (end < names.size() && keys[end] == keys[begin] && folded_name(names[end]) == folded) ++end;
    NameRun run{names[begin], end - begin, begin};
    if (run.count > 1) {
      run.name = run.count == copies[folded]
                     ? folded
                     : replace_star(folded, fmt::format("{}-{}", index_of(names[begin]), index_of(names[end - 1])));
    }
    runs.push_back(std::move(run));
    begin = end;
  }
  return runs;
}

}  // namespace shardplan
