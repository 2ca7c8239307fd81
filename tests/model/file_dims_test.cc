#include "model/file_dims.h"

#include <gtest/gtest.h>

#include "tests/model/read_text.h"

namespace shardplan {
namespace {

TEST(FileDimsTest, DimsOnTheCommandLine) {
  ModelOverrides overrides;
  overrides.dims = {{"D", 10}};
  const Model model = read_model("configs/basic-blocks.yaml", overrides);
  EXPECT_EQ(model.dims, (std::map<std::string, std::int64_t>{{"B", 32}, {"D", 10}}));
  EXPECT_EQ(tensor_of(model.graph, "x").type.shape, (Shape{32, 10}));
  overrides.dims = {{"E", 10}, {"B", 0}};
  EXPECT_EQ(faults_of("shardplan: 1\ndims: {B: 8}\ninputs: {x: [B]}\noperators: {a: {op: ReLU, in: x}}\n", overrides),
            "--dim: error: B is 0; expected at least 1\n"
            "--dim: error: no dim 'E'\n    the model's dims: B");
}

}  // namespace
}  // namespace shardplan
