#include "tests/house/include_graph.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(IncludeGraphTest, ReadsBothKindsOfIncludes) {
  const std::string text = "#pragma once\n#include <vector>\n#include \"a/b.h\"  // why\n  // #include \"c.h\"\n";
  EXPECT_EQ(quoted_includes(text), (std::vector<std::string>{"a/b.h"}));
  EXPECT_EQ(library_includes(text), (std::vector<std::string>{"vector"}));
}

TEST(IncludeGraphTest, FindsACircleThroughAHeaderAndItsSource) {
  // a.h <- b.h <- c.h <- a.cc, and an edge that leads nowhere.
  const std::vector<Include> circle{{"x/a.cc", "x/c.h"}, {"x/c.h", "x/b.h"}, {"x/b.h", "x/a.h"}};
  std::vector<Include> includes = circle;
  includes.push_back({"x/a.cc", "x/a.h"});
  includes.push_back({"x/b.h", "x/d.h"});
  EXPECT_EQ(shortest_circle(unit_graph(includes)), circle);
  includes[2].to = "x/d.h";
  EXPECT_EQ(shortest_circle(unit_graph(includes)), std::vector<Include>{});
}

TEST(IncludeGraphTest, FindsTheShortestCircle) {
  const std::vector<Include> includes{{"x/a.h", "x/b.h"}, {"x/b.h", "x/c.h"}, {"x/c.h", "x/a.h"}, {"x/c.h", "x/b.h"}};
  EXPECT_EQ(shortest_circle(unit_graph(includes)), (std::vector<Include>{{"x/b.h", "x/c.h"}, {"x/c.h", "x/b.h"}}));
}

TEST(IncludeGraphTest, FoldersMayIncludeWhatTheyHoldAndAreHeldBy) {
  std::vector<Include> includes{{"x/a.cc", "x/y/b.h"}, {"x/y/b.h", "x/c.h"}, {"x/z/d.h", "x/y/b.h"}};
  EXPECT_EQ(shortest_circle(folder_graph(includes)), std::vector<Include>{});
  includes.push_back({"x/y/e.cc", "x/z/f.h"});
  EXPECT_EQ(shortest_circle(folder_graph(includes)),
            (std::vector<Include>{{"x/y/e.cc", "x/z/f.h"}, {"x/z/d.h", "x/y/b.h"}}));
}

}  // namespace
}  // namespace shardplan
