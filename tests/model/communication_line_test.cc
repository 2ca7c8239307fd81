#include "model/blocks/communication_line.h"

#include <gtest/gtest.h>

#include "layouts/device_mesh.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

/// The attributes of one line as a rank sees them, or the first error.
struct Line {
  std::optional<Attributes> attributes;
  std::string fault;
};
Line read_line(const std::string& line, const LocalView& view,
               const std::vector<std::pair<std::string, std::int64_t>>& mesh = {}) {
  std::vector<Diagnostic> faults;
  const BlockSyntax block = read_block_syntax("inputs: {x: [8]}\noperators:\n  a: " + line + "\n", "layer", faults);
  const OperatorSyntax& op = block.operators.at(0);
  FileNumbers numbers;
  numbers.dims = {{"rank", view.rank}, {"group_size", view.group_size}};
  DimScope dims(numbers);
  TemplateOptions options;
  options.local = view;
  options.mesh = mesh;
  BlockFaults block_faults(faults, "", std::nullopt);
  Line result;
  try {
    result.attributes =
        read_communication(op, *find_operator_type(op.type.text), *block.document, dims, options, block_faults);
  } catch (const InputError& error) {
    result.fault = error.diagnostics().at(0).message;
  }
  if (!faults.empty()) result.fault = faults[0].message;
  return result;
}

using Ranks = std::vector<std::int64_t>;
Ranks group_of(const Line& line) {
  EXPECT_EQ(line.fault, "");
  return line.attributes->contains("group") ? std::get<Ranks>(line.attributes->at("group")) : Ranks{};
}
std::int64_t size_of(const Line& line) { return std::get<std::int64_t>(line.attributes->at("rank_size")); }

// The groups along an axis are those of the mesh.
TEST(CommunicationLineTest, AnAxisNamesTheRanksAlongIt) {
  for (const char* text : {"dp=2,mp=4", "a=3,b=2,c=2", "only=6", "a=4,b=1"}) {
    const DeviceMesh mesh = DeviceMesh::parse(text);
    std::vector<std::pair<std::string, std::int64_t>> axes;
    for (const MeshAxis& axis : mesh.axes()) axes.emplace_back(axis.name, axis.size);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      std::size_t ranks = 0;
      for (const Ranks& group : mesh.groups({mesh.whole(i)})) {
        for (const std::int64_t rank : group) {
          const Line line =
              read_line("{op: AllReduce, in: x, group: " + axes[i].first + "}", {rank, mesh.num_devices()}, axes);
          EXPECT_EQ(group_of(line), group) << text << " " << axes[i].first << " at rank " << rank;
          EXPECT_EQ(size_of(line), axes[i].second);
          ++ranks;
        }
      }
      EXPECT_EQ(static_cast<std::int64_t>(ranks), mesh.num_devices());
    }
  }
}

TEST(CommunicationLineTest, OfSeveralGroupsTheOneOfTheRankCounts) {
  const auto group = [](const char* text, std::int64_t rank) {
    return group_of(read_line("{op: AllReduce, in: x, group: " + std::string(text) + "}", {rank, 4}));
  };
  EXPECT_EQ(group("[[0, 2], [1, 3]]", 3), (Ranks{1, 3}));
  EXPECT_EQ(group("[[0, 2], [1, 3]]", 0), (Ranks{0, 2}));
  EXPECT_EQ(group("((0, 2), (1, 3))", 0), (Ranks{0, 2}));  // as Python prints it
  EXPECT_EQ(group("[3, 1]", 1), (Ranks{3, 1}));            // in the given order
  EXPECT_EQ(group("[rank, (rank+2)%4]", 1), (Ranks{1, 3}));
  EXPECT_EQ(group("WORLD_COMM_GROUP", 1), Ranks{});
  EXPECT_EQ(group("[]", 1), Ranks{});
  EXPECT_EQ(size_of(read_line("{op: AllReduce, in: x}", {1, 4})), 4);
  EXPECT_EQ(size_of(read_line("{op: AllReduce, in: x, group: [1, 3]}", {1, 4})), 2);
}

TEST(CommunicationLineTest, ReadsReductionsAsMindSporeNamesThem) {
  const Line line = read_line("{op: AllReduce, in: x, reduce: ReduceOp.MAX}", {0, 4});
  ASSERT_EQ(line.fault, "");
  EXPECT_EQ(std::get<std::string>(line.attributes->at("reduce")), "max");
}

TEST(CommunicationLineTest, SaysWhichRankIsWrong) {
  const auto fault = [](const char* text, std::int64_t rank) {
    return read_line("{op: AllReduce, in: x, group: " + std::string(text) + "}", {rank, 4}, {{"mp", 4}}).fault;
  };
  EXPECT_EQ(fault("[0, 1]", 2), "rank 2 has AllReduce, but is in none of its groups");
  EXPECT_EQ(fault("[0, 4]", 0), "group: there is no rank 4: they are 0 to 3");
  EXPECT_EQ(fault("[0, 1, 1]", 0), "group: rank 1 stands in it twice");
  EXPECT_EQ(fault("[[0, 1], [1, 2]]", 0), "group: rank 1 stands in it twice");
  EXPECT_EQ(fault("dp", 0), "group is 'dp'; the mesh has mp");
  EXPECT_EQ(read_line("{op: AllReduce, in: x, group: [0, 1], rank_size: 4}", {0, 4}).fault,
            "rank_size is 4, but the group has 2 ranks");
}

}  // namespace
}  // namespace shardplan
