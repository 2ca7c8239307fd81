#include "base/error.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

TEST(ErrorTest, TextNamesThePlaceAndIndentsTheHint) {
  const InputError error({Diagnostic{{"m.yaml", 7, 64}, "fc1: cut in 8", "possible: 1, 2\nor D=16"},
                          Diagnostic{{"m.yaml", 0, 0}, "empty", ""}});
  EXPECT_STREQ(error.what(),
               "m.yaml:7:64: error: fc1: cut in 8\n    possible: 1, 2\n    or D=16\nm.yaml: error: empty");
}

TEST(ErrorTest, AFaultOfManyCopiesIsSaidOnce) {
  std::vector<Diagnostic> faults;
  for (int i = 0; i < 80; ++i) {
    faults.push_back({{"m.yaml", 7, 3}, fmt::format("layers.{}.up: cannot be cut in 160", i), ""});
    faults.push_back({{"m.yaml", 9, 3}, fmt::format("{}: expected 0.{} or 1.5", i, i), ""});
  }
  faults.push_back({{"m.yaml", 8, 3}, "layers.3.up: cannot be cut in 160", ""});
  const InputError error(faults);
  ASSERT_EQ(error.diagnostics().size(), 82u);
  EXPECT_EQ(error.diagnostics()[0].message, "layers.0.up: cannot be cut in 160 (and the same of 79 more)");
  EXPECT_EQ(error.diagnostics()[81].message, "layers.3.up: cannot be cut in 160");
}

TEST(ErrorTest, AFileThatAKeyNamesIsFoundAtTheKey) {
  const SourcePlace key{"m.yaml", 3, 10};
  const InputError missing(SourcePlace{"k.yaml", 0, 0}, "cannot be read"), unplaced(SourcePlace{}, "too many devices");
  const InputError inside(SourcePlace{"k.yaml", 7, 2}, "unknown key");
  EXPECT_STREQ(named_at(key, missing).what(), "m.yaml:3:10: error: k.yaml: cannot be read");
  EXPECT_STREQ(named_at(key, unplaced).what(), "m.yaml:3:10: error: too many devices");
  EXPECT_STREQ(named_at(key, inside).what(), "k.yaml:7:2: error: unknown key");
  EXPECT_STREQ(named_at({}, missing).what(), "k.yaml: error: cannot be read") << "named on the command line";
  EXPECT_STREQ(named_at({"ranks.json", 0, 0}, unplaced).what(), "ranks.json: error: too many devices");
}

TEST(ErrorTest, NearestNamePrefersLetterCaseAndRefusesTheFarFetched) {
  EXPECT_EQ(nearest_name("Relu", {"Real", "ReLU", "Relay"}), "ReLU");
  EXPECT_EQ(nearest_name("weigth", {"bias", "weight"}), "weight");
  EXPECT_EQ(nearest_name("paralel_mode", {"parallel_mode", "search_mode"}), "parallel_mode");
  EXPECT_EQ(nearest_name("modle", {"mode", "model"}), "mode");
  EXPECT_EQ(nearest_name("scael", {"scan", "scale"}), "scale");
  EXPECT_EQ(nearest_name("b", {"a", "B"}), "B");
  EXPECT_EQ(nearest_name("b", {"a", "bb"}), "");
  EXPECT_EQ(nearest_name("xyz", {"weight", "bias"}), "");
}

}  // namespace
}  // namespace shardplan
