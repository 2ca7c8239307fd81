// Every unit's test can be found: by its own name, or in the table of tests/README.md.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>
#include <sstream>

#include "tests/house/include_graph.h"
#include "tests/support/files.h"

namespace shardplan {
namespace {

const std::vector<std::string> kHouse{"base",      "solver",  "layouts", "operators", "graph",  "model", "strategies",
                                      "costmodel", "program", "planner", "simulator", "report", "cli"};

/// The names that the check compares, without ".cc".
struct TestIndex {
  std::vector<std::string> units;                                      // "layouts/redistribution/search/edge_costs"
  std::set<std::string> tests;                                         // "layouts/edge_costs_test"
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;  // unit and the tests that exercise it
  IncludeGraph includes;                                               // between units, tests among them as "tests/..."
};

std::string last_part_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The tests of the unit's folder that have the unit's name, in any sub-folder of it.
bool has_test_of_its_name(const std::string& unit, const std::set<std::string>& tests) {
  for (const std::string& test : tests) {
    if (top_of(test) == top_of(unit) && last_part_of(test) == last_part_of(unit) + "_test") return true;
  }
  return false;
}

/// Whether a chain of includes leads from the test to the unit. Tests of cli run the program, which covers all units.
bool reaches(const std::string& test, const std::string& unit, const IncludeGraph& includes) {
  if (top_of(test) == "cli") return true;
  std::set<std::string> met{"tests/" + test};
  std::deque<std::string> waiting(met.begin(), met.end());
  while (!waiting.empty()) {
    const auto arrows = includes.find(waiting.front());
    waiting.pop_front();
    if (arrows == includes.end()) continue;
    for (const auto& [to, by] : arrows->second) {
      if (to == unit) return true;
      if (met.insert(to).second) waiting.push_back(to);
    }
  }
  return false;
}

/// Units that another unit includes; a source without a header of its own is reached through its folder's headers.
bool has_header(const std::string& unit, const IncludeGraph& includes) {
  for (const auto& [from, arrows] : includes) {
    if (arrows.contains(unit)) return true;
  }
  return false;
}

std::vector<std::string> faults_of(const TestIndex& index) {
  std::vector<std::string> faults;
  std::map<std::string, std::vector<std::string>> rows;
  for (const auto& [unit, tests] : index.rows) {
    if (!rows.emplace(unit, tests).second) faults.push_back(unit + ": two rows");
    if (tests.empty()) faults.push_back(unit + ": its row names no test");
  }
  for (const std::string& unit : index.units) {
    const bool has_own = has_test_of_its_name(unit, index.tests);
    const auto row = rows.find(unit);
    if (!has_own && row == rows.end()) {
      faults.push_back(
          fmt::format("{}: no tests/{}/.../{}_test.cc and no row", unit, top_of(unit), last_part_of(unit)));
    }
    if (row == rows.end()) continue;
    if (has_own) faults.push_back(unit + ": has a test of its own name and needs no row");
    for (const std::string& test : row->second) {
      if (!index.tests.contains(test)) {
        faults.push_back(fmt::format("{}: there is no tests/{}.cc", unit, test));
      } else if (has_header(unit, index.includes) && !reaches(test, unit, index.includes)) {
        faults.push_back(fmt::format("{}: nothing that tests/{}.cc includes leads to it", unit, test));
      }
    }
    rows.erase(row);
  }
  for (const auto& [unit, tests] : rows) faults.push_back(unit + ": there is no such unit");
  return faults;
}

/// The rows "| `unit` | `test`, `test` |" of a document.
std::vector<std::pair<std::string, std::vector<std::string>>> rows_in(const std::string& text) {
  std::vector<std::pair<std::string, std::vector<std::string>>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> names;
    for (std::size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at)) {
      const std::size_t end = line.find('`', at + 1);
      names.push_back(line.substr(at + 1, end - at - 1));
      at = end + 1;
    }
    rows.emplace_back(names.at(0), std::vector<std::string>(names.begin() + 1, names.end()));
  }
  return rows;
}

TestIndex index_of_the_project() {
  TestIndex index;
  for (const std::string& folder : kHouse) {
    for (const std::string& path : sources_in(folder)) {
      if (path.ends_with(".cc")) index.units.push_back(unit_of(path));
    }
  }
  for (const std::string& path : sources_in("tests")) {
    if (path.ends_with("_test.cc")) index.tests.insert(unit_of(path.substr(path.find('/') + 1)));
  }
  std::vector<std::string> folders = kHouse;
  folders.push_back("tests");
  index.includes = unit_graph(includes_in(".", folders));
  index.rows = rows_in(content_of("tests/README.md"));
  return index;
}

TEST(UnitIndexTest, EveryUnitsTestIsFound) {
  const std::vector<std::string> faults = faults_of(index_of_the_project());
  EXPECT_TRUE(faults.empty()) << fmt::format("{}\n(the table is in tests/README.md)", fmt::join(faults, "\n"));
}

// The same check on a made-up tree with missing tests and rows.
TEST(UnitIndexTest, PlantedFaultsAreFound) {
  TestIndex index;
  index.units = {"base/index", "solver/core/work", "solver/core/slack"};
  index.tests = {"base/index_test", "solver/core/slack_test", "solver/contract_test", "solver/other_test"};
  index.rows = {{"solver/core/work", {"solver/contract_test"}}};
  index.includes["tests/solver/contract_test"]["solver/search"];
  index.includes["solver/search"]["solver/core/work"];
  EXPECT_EQ(faults_of(index), std::vector<std::string>{});
  const auto with_rows = [&](std::vector<std::pair<std::string, std::vector<std::string>>> rows) {
    TestIndex changed = index;
    changed.rows = std::move(rows);
    return faults_of(changed);
  };
  using Faults = std::vector<std::string>;
  EXPECT_EQ(with_rows({}), Faults{"solver/core/work: no tests/solver/.../work_test.cc and no row"});
  EXPECT_EQ(with_rows({{"solver/core/work", {"solver/gone_test"}}}),
            Faults{"solver/core/work: there is no tests/solver/gone_test.cc"});
  EXPECT_EQ(with_rows({{"solver/core/work", {"solver/other_test"}}}),
            Faults{"solver/core/work: nothing that tests/solver/other_test.cc includes leads to it"});
  EXPECT_EQ(with_rows({index.rows[0], {"solver/core/slack", {"solver/contract_test"}}}).at(0),
            "solver/core/slack: has a test of its own name and needs no row");
  EXPECT_EQ(with_rows({index.rows[0], {"solver/core/gone", {"solver/contract_test"}}}),
            Faults{"solver/core/gone: there is no such unit"});
  EXPECT_EQ(with_rows({index.rows[0], index.rows[0]}), Faults{"solver/core/work: two rows"});
  EXPECT_EQ(with_rows({{"solver/core/work", {}}}), Faults{"solver/core/work: its row names no test"});
}

TEST(UnitIndexTest, RowsAreReadFromATable) {
  EXPECT_EQ(rows_in("# Tests\n\n| unit | test |\n|---|---|\n| `a/b` | `a/c_test`, `d/e_test` |\n"),
            (std::vector<std::pair<std::string, std::vector<std::string>>>{{"a/b", {"a/c_test", "d/e_test"}}}));
}

}  // namespace
}  // namespace shardplan
