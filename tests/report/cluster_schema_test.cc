#include "report/cluster_schema.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/write_files.h"
#include "base/yaml.h"
#include "costmodel/cluster/cluster.h"

namespace shardplan {
namespace {

TEST(ClusterSchemaTest, TheShippedFileIsIt) {
  EXPECT_TRUE(cluster_schema() == read_text_file("configs/cluster.schema.json"))
      << "renew it: ./run schema cluster > configs/cluster.schema.json";
}

// What the schema does not list, the reader rejects by name; what it lists, the reader accepts.
TEST(ClusterSchemaTest, ListsTheKeysThatTheReaderAccepts) {
  const auto both = nlohmann::json::parse(cluster_schema());
  const auto& schema = both["else"];
  const std::string text = cluster_presets().front().second;
  EXPECT_FALSE(schema["additionalProperties"].get<bool>());
  std::set<std::string> keys;
  for (const auto& [key, value] : schema["properties"].items()) keys.insert(key);
  EXPECT_EQ(keys, (std::set<std::string>{"shardplan", "cluster", "collectives", "device", "fusion", "levels",
                                         "rank_table", "ranks", "tables", "tf32", "sources", "base"}));
  for (const std::string needed : schema["required"]) {
    const std::string without = "\n" + text;
    const std::size_t at = without.find("\n" + needed + ":");
    ASSERT_NE(at, std::string::npos) << needed;
    EXPECT_THROW(read_cluster_text(without.substr(0, at + 1) + "x" + without.substr(at + 1), "x.yaml"), InputError);
  }
}

TEST(ClusterSchemaTest, AFileWithABaseNeedsOnlyNames) {
  const auto schema = nlohmann::json::parse(cluster_schema());
  EXPECT_EQ(schema["if"]["required"], nlohmann::json::array({"base"}));
  const auto& difference = schema["then"];
  EXPECT_EQ(difference["required"], nlohmann::json::array({"shardplan", "cluster"}));
  EXPECT_FALSE(difference["properties"]["device"].contains("required"));
  EXPECT_EQ(difference["properties"]["levels"]["items"]["required"], nlohmann::json::array({"name"}));
  EXPECT_TRUE(schema["else"]["properties"]["device"].contains("required"));
}

}  // namespace
}  // namespace shardplan
