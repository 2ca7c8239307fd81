#include "simulator/checkpoint/checkpoint_form.h"

#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/seconds_of.h"

namespace shardplan {
namespace {

/// One rank's file of `count` tensors with one element each.
CheckpointForm many_tensors(std::size_t count, bool is_per_device) {
  CheckpointForm form;
  form.model = "m";
  form.is_per_device = is_per_device;
  form.mesh = is_per_device ? mesh_of_ranks(1) : DeviceMesh::parse("x=1");
  for (std::size_t i = 0; i < count; ++i) {
    CheckpointTensor tensor{"layers." + std::to_string(i) + ".bias", "U8", {1}, TensorLayout::replicated(1)};
    if (is_per_device) tensor.pieces[0] = whole_piece({1});
    form.tensors.push_back(std::move(tensor));
  }
  return form;
}

/// Looking up each tensor's metadata among those of all others would take minutes.
TEST(CheckpointFormTest, ManyTensorsAreReadInLinearTime) {
  const TemporaryFolder folder;
  for (const bool is_per_device : {false, true}) {
    const CheckpointForm form = many_tensors(60'000, is_per_device);
    const std::string path = folder.at("rank_0.safetensors");
    SafetensorsWriter writer(path, header_of(form, 0));
    for (std::size_t i = 0; i < form.tensors.size(); ++i) writer.append(std::vector<std::byte>(1));
    writer.finish();
    CheckpointForm read;
    EXPECT_LT(processor_seconds_of([&] { read = form_of_file(SafetensorsReader(path)); }), 20) << is_per_device;
    EXPECT_TRUE(read == form) << is_per_device;
  }
}

}  // namespace
}  // namespace shardplan
