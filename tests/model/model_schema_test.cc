#include "model/model_schema.h"

#include <gtest/gtest.h>

#include "base/yaml.h"

namespace shardplan {
namespace {

TEST(ModelSchemaTest, TheShippedFileIsWhatTheReaderAccepts) {
  EXPECT_TRUE(model_schema() == read_text_file("configs/model.schema.json"))
      << "renew it: ./run schema model > configs/model.schema.json";
}

}  // namespace
}  // namespace shardplan
