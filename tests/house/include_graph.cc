#include "tests/house/include_graph.h"

#include <algorithm>
#include <deque>
#include <sstream>

#include "tests/support/files.h"

namespace shardplan {
namespace {

std::vector<std::string> includes_between(const std::string& text, char open, char close) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string line;
  const std::string begin = std::string("#include ") + open;
  while (std::getline(lines, line)) {
    if (!line.starts_with(begin)) continue;
    const std::size_t end = line.find(close, begin.size());
    found.push_back(line.substr(begin.size(), end - begin.size()));
  }
  return found;
}

bool is_within(const std::string& folder, const std::string& outer) { return folder.starts_with(outer + "/"); }

/// The includes along a shortest path from `start` back to itself.
std::vector<Include> circle_from(const IncludeGraph& graph, const std::string& start) {
  std::map<std::string, std::string> reached_from;
  std::deque<std::string> waiting{start};
  while (!waiting.empty()) {
    const std::string here = waiting.front();
    waiting.pop_front();
    const auto arrows = graph.find(here);
    if (arrows == graph.end()) continue;
    for (const auto& [to, includes] : arrows->second) {
      if (to == start) {
        std::vector<Include> circle{*includes.begin()};
        for (std::string at = here; at != start; at = reached_from[at]) {
          circle.push_back(*graph.at(reached_from[at]).at(at).begin());
        }
        std::reverse(circle.begin(), circle.end());
        return circle;
      }
      if (reached_from.emplace(to, here).second) waiting.push_back(to);
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> sources_in(const std::filesystem::path& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".h" || entry.path().extension() == ".cc") {
      paths.push_back(entry.path().generic_string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<Include> includes_in(const std::filesystem::path& top, const std::vector<std::string>& folders) {
  std::vector<Include> includes;
  for (const std::string& folder : folders) {
    for (const std::string& path : sources_in(top / folder)) {
      const std::string from = std::filesystem::path(path).lexically_relative(top).generic_string();
      for (const std::string& header : quoted_includes(content_of(path))) includes.push_back({from, header});
    }
  }
  return includes;
}

std::vector<std::string> quoted_includes(const std::string& text) { return includes_between(text, '"', '"'); }
std::vector<std::string> library_includes(const std::string& text) { return includes_between(text, '<', '>'); }

std::string unit_of(const std::string& path) { return path.substr(0, path.rfind('.')); }
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string top_of(const std::string& path) { return path.substr(0, path.find('/')); }

IncludeGraph unit_graph(const std::vector<Include>& includes) {
  IncludeGraph graph;
  for (const Include& include : includes) {
    const std::string from = unit_of(include.from);
    const std::string to = unit_of(include.to);
    if (from != to) graph[from][to].insert(include);
  }
  return graph;
}

IncludeGraph folder_graph(const std::vector<Include>& includes) {
  IncludeGraph graph;
  for (const Include& include : includes) {
    const std::string from = folder_of(include.from);
    const std::string to = folder_of(include.to);
    if (from != to && !is_within(from, to) && !is_within(to, from)) graph[from][to].insert(include);
  }
  return graph;
}

std::vector<Include> climbing(const std::vector<Include>& includes, const std::vector<std::string>& order) {
  const auto rank = [&](const std::string& path) {
    const auto found = std::find(order.begin(), order.end(), top_of(path));
    return found == order.end() ? std::string::npos : static_cast<std::size_t>(found - order.begin());
  };
  std::vector<Include> found;
  for (const Include& include : includes) {
    if (rank(include.to) == std::string::npos || rank(include.to) > rank(include.from)) found.push_back(include);
  }
  return found;
}

std::vector<Include> shortest_circle(const IncludeGraph& graph) {
  std::vector<Include> shortest;
  for (const auto& [node, arrows] : graph) {
    std::vector<Include> circle = circle_from(graph, node);
    if (!circle.empty() && (shortest.empty() || circle.size() < shortest.size())) shortest = std::move(circle);
  }
  return shortest;
}

}  // namespace shardplan
