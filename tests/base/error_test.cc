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
