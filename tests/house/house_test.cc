// Checks the rules of docs/architecture.md about folders on the sources themselves. A failing test prints the include
// that breaks a rule.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/house/include_graph.h"
#include "tests/support/files.h"

namespace shardplan {
namespace {

/// A folder may only include folders to its left.
const std::vector<std::string> kFolders{"base",      "solver",  "layouts", "operators", "graph",  "model", "strategies",
                                        "costmodel", "program", "planner", "simulator", "report", "cli"};

/// A library's headers may be included by one file only, its wrapper.
struct Door {
  std::string library;
  std::string file;
};
const Door kDoors[] = {
    {"CLI/", "cli/command_line.cc"},
    {"boost/", "graph/operator_graph.cc"},
    {"glpk.h", "solver/searches/ilp_search.cc"},
    {"nlohmann/", "base/json_text.h"},
    {"yaml-cpp/", "base/yaml.cc"},
    {"zmq.h", "simulator/workers/transport.cc"},
};

constexpr int kMostLines = 600;
constexpr int kLongSource = 250;

std::vector<std::string> product_sources() {
  std::vector<std::string> paths;
  for (const std::string& folder : kFolders) {
    const std::vector<std::string> found = sources_in(folder);
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

std::vector<Include> product_includes() { return includes_in(".", kFolders); }

std::string text_of(const std::vector<Include>& circle) {
  std::string text;
  for (const Include& include : circle) text += fmt::format("\n  {} includes {}", include.from, include.to);
  return text;
}

TEST(HouseTest, IncludesNeverClimb) {
  const std::vector<Include> found = climbing(product_includes(), kFolders);
  EXPECT_TRUE(found.empty()) << text_of(found);
}

TEST(HouseTest, UnitsFormNoCircle) {
  const std::vector<Include> circle = shortest_circle(unit_graph(product_includes()));
  EXPECT_TRUE(circle.empty()) << text_of(circle);
}

TEST(HouseTest, FoldersFormNoCircle) {
  const std::vector<Include> circle = shortest_circle(folder_graph(product_includes()));
  EXPECT_TRUE(circle.empty()) << text_of(circle);
}

/// The same checks on a made-up tree that breaks each rule: each violation is found, and reported with its includes.
TEST(HouseTest, PlantedFaultsAreFound) {
  const TemporaryFolder folder;
  const std::string& top = folder.path();
  const auto plant = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((std::filesystem::path(top) / path).parent_path());
    std::ofstream(std::filesystem::path(top) / path) << text;
  };
  const std::vector<std::string> order{"base", "solver"};
  plant("base/index.h", "#pragma once\n");
  plant("solver/core/work.h", "#include \"base/index.h\"\n");
  plant("solver/core/work.cc", "#include \"solver/core/work.h\"\n#include \"solver/bounds/dual.h\"\n");
  plant("solver/bounds/dual.h", "#include <vector>\n");
  EXPECT_EQ(climbing(includes_in(top, order), order), std::vector<Include>{});
  EXPECT_EQ(shortest_circle(unit_graph(includes_in(top, order))), std::vector<Include>{});

  plant("base/index.cc", "#include \"solver/bounds/dual.h\"\n");
  EXPECT_EQ(climbing(includes_in(top, order), order),
            (std::vector<Include>{{"base/index.cc", "solver/bounds/dual.h"}}));
  plant("solver/bounds/dual.cc", "#include \"solver/core/work.h\"\n");
  EXPECT_EQ(shortest_circle(unit_graph(includes_in(top, order))),
            (std::vector<Include>{{"solver/bounds/dual.cc", "solver/core/work.h"},
                                  {"solver/core/work.cc", "solver/bounds/dual.h"}}));
  EXPECT_EQ(shortest_circle(folder_graph(includes_in(top, order))).size(), 2u);
}

TEST(HouseTest, LibrariesAreEnteredByOneDoor) {
  for (const std::string& path : product_sources()) {
    for (const std::string& header : library_includes(content_of(path))) {
      for (const Door& door : kDoors) {
        if (header.starts_with(door.library)) {
          EXPECT_EQ(path, door.file) << "includes <" << header << ">";
        }
      }
    }
  }
}

/// Paths in backquotes of a line: `base/index.h`, the unit `base/index`, or `index.h` in a row whose first cell is `base/`.
std::vector<std::string> named_files(const std::string& line) {
  static const std::regex quoted("`([a-z_0-9/]+)`|`([a-z_0-9/]+\\.(?:h|cc))`");
  std::vector<std::string> files;
  std::string folder;
  for (std::sregex_iterator found(line.begin(), line.end(), quoted), end; found != end; ++found) {
    if ((*found)[1].matched) {
      if (folder.empty() && line.starts_with("| `" + (*found)[1].str())) {
        folder = (*found)[1];
      } else {
        files.push_back((*found)[1]);
      }
    } else {
      files.push_back(folder + (*found)[2].str());
    }
  }
  return files;
}

TEST(HouseTest, DocumentsNameFilesThatExist) {
  for (const auto& entry : std::filesystem::directory_iterator("docs")) {
    if (entry.path().extension() != ".md") continue;
    std::istringstream lines(content_of(entry.path().string()));
    for (std::string line; std::getline(lines, line);) {
      for (const std::string& file : named_files(line)) {
        // A page about one folder may give the names of that folder's files without it.
        if (std::find(kFolders.begin(), kFolders.end(), top_of(file)) == kFolders.end()) continue;
        EXPECT_TRUE(std::filesystem::exists(file) || std::filesystem::exists(file + ".h"))
            << entry.path() << " names " << file;
      }
    }
  }
}

TEST(HouseTest, FilesStayShort) {
  for (const std::string& path : product_sources()) {
    const std::string text = content_of(path);
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), kMostLines) << path;
  }
}

/// True if a source opens with a comment of at least two lines before its code.
bool opens_with_its_idea(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  int comments = 0;
  while (std::getline(lines, line)) {
    if (line.starts_with("//") && !line.starts_with("///")) {
      ++comments;
    } else if (!line.empty() && line[0] != '#' && !line.starts_with("namespace ")) {
      break;
    }
  }
  return comments >= 2;
}

TEST(HouseTest, LongSourcesOpenWithTheirIdea) {
  EXPECT_TRUE(opens_with_its_idea("#include <map>\n\n// One.\n// Two.\n\nnamespace shardplan {\nint x;\n"));
  EXPECT_FALSE(opens_with_its_idea("#include <map>\n\nnamespace shardplan {\nint x;\n// One.\n// Two.\n"));
  for (const std::string& path : product_sources()) {
    if (!path.ends_with(".cc")) continue;
    const std::string text = content_of(path);
    if (std::count(text.begin(), text.end(), '\n') > kLongSource) {
      EXPECT_TRUE(opens_with_its_idea(text)) << path << ": say in a few lines how it does what its header promises";
    }
  }
}

}  // namespace
}  // namespace shardplan
