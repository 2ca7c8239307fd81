#include "report/catalogue_report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

TEST(CatalogueReportTest, ReportsOneOperator) {
  EXPECT_EQ(operator_report(*find_operator_type("MatMul")),
            "MatMul(x1, x2) -> y        transpose_a = false, transpose_b = false, dtype\n"
            "  rule      ... m k, k n -> ... m n          k: sum; all others pass through\n"
            "  linear in x1 and in x2: a partial sum passes through either\n"
            "  strategy  ((.., a, b), (b, c)), with transpose_b ((.., a, b), (c, b)); b > 1 adds all_reduce,\n"
            "            or reduce_scatter with out_strategy ((.., a*b, c))\n"
            "  errors    cuts x1 in A along the summed dimension but x2 in B\n"
            "  flops     2 m k n        gradient  yes        proven by execution on 2, 4, 8 devices\n"
            "  transpose_a  x1 is [.., k, m]\n"
            "  transpose_b  x2 is [.., n, k]\n"
            "  dtype        of y; that of the operands if not given\n");
}

TEST(CatalogueReportTest, ReportsWhichPartialOperandsPassThrough) {
  const auto line = [](const char* name) {
    const std::string text = operator_report(*find_operator_type(name));
    const std::size_t begin = std::min(text.find("\n  linear"), text.find("\n  monotone"));
    return begin == std::string::npos ? "" : text.substr(begin + 3, text.find('\n', begin + 1) - begin - 3);
  };
  EXPECT_EQ(line("ReLU"), "monotone in x");
  EXPECT_EQ(line("Mul"), "linear in x1 and in x2: a partial sum passes through either");
  EXPECT_EQ(line("Sub"), "linear in x1 and x2 together, monotone in x1");
  EXPECT_EQ(line("AddN"), "linear in all x together, monotone in each x");
  EXPECT_EQ(line("RotaryEmbedding"), "linear in x, and in cos and sin together");
  EXPECT_EQ(line("Cast"), "linear and monotone in x; only monotone to or from integers");
  EXPECT_EQ(line("GeLU"), "");
}

TEST(CatalogueReportTest, ReportsAllOperators) {
  const std::string text = catalogue_report();
  EXPECT_NE(text.find("\nSoftmax                              ... k -> ... k; k: normalised"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("SoftmaxGrad"), std::string::npos) << "internal operators are not for model files";
  EXPECT_TRUE(text.ends_with(" operators\n"));
}

TEST(CatalogueReportTest, FindsOperatorsAndBlocksByName) {
  EXPECT_EQ(catalogue_report("MatMul"), operator_report(*find_operator_type("MatMul")));
  EXPECT_TRUE(catalogue_report("nn.Dense").starts_with("nn.Dense: ")) << catalogue_report("nn.Dense");
  try {
    catalogue_report("Relu");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "error: no operator 'Relu'; did you mean 'ReLU'?");
  }
}

}  // namespace
}  // namespace shardplan
