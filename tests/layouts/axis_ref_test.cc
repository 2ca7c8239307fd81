#include "layouts/axis_ref.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "layouts/tensor_layout.h"

namespace shardplan {
namespace {

const DeviceMesh kAxesMesh = DeviceMesh::parse("x=2,y=8,a=6");

AxisRef axis(const std::string& text) {
  return parse_layout("[{" + text + "}]", kAxesMesh).dimensions[0].parts[0].axes[0];
}

struct PairCase {
  const char* a;
  const char* b;
  bool overlaps;
  bool contains;
  bool is_followed_by;
  const char* joined;
};
const PairCase kPairs[] = {
    // the table of axis_ref.h
    {"y", "y", true, true, false, "{y, y}"},
    {"y", "y:(2)2", true, true, false, "{y, y:(2)2}"},
    {"y:(2)2", "y", true, false, false, "{y:(2)2, y}"},
    {"y:(1)2", "y:(2)4", false, false, true, "{y}"},
    {"y:(2)4", "y:(1)2", false, false, false, "{y:(2)4, y:(1)2}"},
    {"y:(1)2", "y:(4)2", false, false, false, "{y:(1)2, y:(4)2}"},
    {"y:(1)4", "y:(2)4", true, false, false, "{y:(1)4, y:(2)4}"},
    {"y:(1)4", "y:(2)2", true, true, false, "{y:(1)4, y:(2)2}"},
    {"x", "y", false, false, false, "{x, y}"},
    {"a:(1)2", "a:(3)2", true, false, false, "{a:(1)2, a:(3)2}"},
    {"a:(1)2", "a:(1)3", true, false, false, "{a:(1)2, a:(1)3}"},
    {"y", "y:(2)1", false, true, false, "{y}"},
};
TEST(AxisRefTest, RelatesTwoParts) {
  for (const PairCase& c : kPairs) {
    SCOPED_TRACE(std::string(c.a) + " and " + c.b);
    EXPECT_EQ(overlaps(axis(c.a), axis(c.b)), c.overlaps);
    EXPECT_EQ(overlaps(axis(c.b), axis(c.a)), c.overlaps);
    EXPECT_EQ(contains(axis(c.a), axis(c.b)), c.contains);
    EXPECT_EQ(is_followed_by(axis(c.a), axis(c.b)), c.is_followed_by);
    EXPECT_EQ(kAxesMesh.to_string(joined({axis(c.a), axis(c.b)})), c.joined);
  }
}

/// All ways to split an axis into digits: the products at which digits end, including 1 and `size`.
void for_each_reading(std::vector<std::int64_t>& ends, std::int64_t size,
                      const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  if (ends.back() == size) visit(ends);
  for (std::int64_t end = 2 * ends.back(); end <= size; end += ends.back()) {
    if (size % end != 0) continue;
    ends.push_back(end);
    for_each_reading(ends, size, visit);
    ends.pop_back();
  }
}

// Parts are runs of neighbouring digits; two of them relate to each other as two runs of the same digits do.
TEST(AxisRefTest, AgreesWithAllWaysToReadAnAxis) {
  for (const std::int64_t size : {8, 12, 36}) {
    std::set<AxisRef> parts;
    std::set<std::pair<AxisRef, AxisRef>> side_by_side, within, following;
    std::vector<std::int64_t> first = {1};
    for_each_reading(first, size, [&](const std::vector<std::int64_t>& ends) {
      struct Run {
        std::size_t begin, end;
        AxisRef part;
      };
      std::vector<Run> runs;
      for (std::size_t begin = 0; begin < ends.size(); ++begin) {
        for (std::size_t end = begin + 1; end < ends.size(); ++end) {
          runs.push_back({begin, end, {0, ends[begin], ends[end] / ends[begin]}});
        }
      }
      for (const Run& a : runs) {
        parts.insert(a.part);
        for (const Run& b : runs) {
          if (a.end <= b.begin || b.end <= a.begin) side_by_side.emplace(a.part, b.part);
          if (a.begin <= b.begin && b.end <= a.end) within.emplace(a.part, b.part);
          if (a.end == b.begin) following.emplace(a.part, b.part);
        }
      }
    });
    for (const AxisRef& a : parts) {
      for (const AxisRef& b : parts) {
        SCOPED_TRACE(fmt::format("({}){} and ({}){} of {}", a.before, a.size, b.before, b.size, size));
        EXPECT_EQ(overlaps(a, b), !side_by_side.contains({a, b}));
        EXPECT_EQ(contains(a, b), within.contains({a, b}));
        EXPECT_EQ(is_followed_by(a, b), following.contains({a, b}));
      }
    }
  }
}

// Parts used together shard independently: every combination of coordinates is on equally many devices; and joined
// parts count as before.
TEST(AxisRefTest, AgreesWithTheCoordinatesOfAllDevices) {
  const DeviceMesh mesh({{"y", 36}});
  std::vector<AxisRef> parts;
  for (std::int64_t before = 1; before <= 36; ++before) {
    for (std::int64_t size = 2; before * size <= 36; ++size) {
      if (36 % (before * size) == 0) parts.push_back({0, before, size});
    }
  }
  for (const AxisRef& a : parts) {
    for (const AxisRef& b : parts) {
      SCOPED_TRACE(mesh.to_string(a) + " and " + mesh.to_string(b));
      std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> devices;
      for (std::int64_t point = 0; point < 36; ++point)
        ++devices[{mesh.coordinate(point, a), mesh.coordinate(point, b)}];
      for (const auto& [coordinates, count] : devices) {
        if (overlaps(a, b)) continue;
        EXPECT_EQ(count, 36 / (a.size * b.size));
      }
      const std::vector<AxisRef> both = joined({a, b});
      for (std::int64_t point = 0; point < 36; ++point) {
        EXPECT_EQ(mesh.coordinate(point, both), mesh.coordinate(point, std::vector{a, b}));
      }
    }
  }
}

TEST(AxisRefTest, CountsPieces) {
  EXPECT_EQ(num_pieces({}), 1);
  EXPECT_EQ(num_pieces({axis("x"), axis("y:(2)2")}), 4);
}

}  // namespace
}  // namespace shardplan
