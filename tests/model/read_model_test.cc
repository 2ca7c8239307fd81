#include "model/read_model.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

const char* kModel = R"(shardplan: 1
dims: {B: 8, H: 4}
inputs: {x: [B, H]}
operators:
  fc:  {block: nn.Dense, in: x, out_channels: 2*H}
  out: {op: ReLU, in: fc}
)";

std::vector<Shape> shapes(const Model& model) {
  std::vector<Shape> result;
  for (const GraphTensor& tensor : model.graph.tensors()) result.push_back(tensor.type.shape);
  return result;
}

TEST(ModelSourceTest, AModelCanBeAskedForAtOtherSizes) {
  const Model model = read_model_text(kModel, "m.yaml");
  ModelOverrides overrides;
  overrides.dims = {{"H", 6}};
  overrides.strategies = {{"out", "((2, 1),)"}};
  const Model other = model.source->at(overrides);
  EXPECT_EQ(other.dims.at("H"), 6);
  EXPECT_EQ(other.dims.at("B"), 8);
  EXPECT_EQ(shapes(other), shapes(read_model_text(kModel, "m.yaml", overrides)));
  EXPECT_EQ(other.graph.operators()[*other.graph.find_operator("out")].strategy->in.size(), 1u);
  EXPECT_EQ(other.source, model.source);
  // The source is unchanged.
  EXPECT_EQ(shapes(model.source->at({})), shapes(model));
}

TEST(ModelSourceTest, WhatAPlanFileKeepsIsAnEqualSource) {
  const auto source = model_source(kModel, "m.yaml");
  const auto again = model_source(source->text(), source->file());
  EXPECT_EQ(again->text(), kModel);
  EXPECT_EQ(shapes(again->at({})), shapes(source->at({})));
}

TEST(ModelSourceTest, FaultsAreReportedEachTime) {
  const auto source =
      model_source("shardplan: 1\ninputs: {x: [4]}\noperators: {a: {op: Relu, in: x}}\nodd: 1\n", "m.yaml");
  for (int i = 0; i < 2; ++i) {
    try {
      source->at({});
      FAIL() << "no fault was found";
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(),
                   "m.yaml:3:21: error: a: no operator 'Relu'; did you mean 'ReLU'?\n"
                   "m.yaml:4:1: error: unknown key 'odd'");
    }
  }
}

}  // namespace
}  // namespace shardplan
