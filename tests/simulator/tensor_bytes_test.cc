#include "simulator/checkpoint/tensor_bytes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "tests/support/files.h"

namespace shardplan {
namespace {

/// What is read from a file of one tensor with these bytes, as another program might have written it.
template <class Stored>
TensorValues read_back(const std::string& dtype, const std::vector<Stored>& stored) {
  const TemporaryFolder folder;
  const std::string path = folder.at("model.safetensors");
  SafetensorsHeader header;
  header.entries = {{"w", dtype, {static_cast<std::int64_t>(stored.size())}, 0, 0}};
  SafetensorsWriter writer(path, header);
  writer.append(std::as_bytes(std::span(stored)));
  writer.finish();
  Checkpoint checkpoint(path);
  const CheckpointTensor& tensor = checkpoint.form().tensors.at(0);
  const DeviceMesh& mesh = checkpoint.form().mesh;
  return read_numbers(checkpoint, 0, held_piece(tensor.layout, mesh, tensor.shape, 0));
}

TEST(TensorBytesTest, NumbersOfEachTypeAreRead) {
  EXPECT_EQ(read_back<double>("F64", {1.5, -0.0, 1e300}), (TensorValues{1.5, -0.0, 1e300}));
  EXPECT_EQ(read_back<float>("F32", {1.5F, 0.1F}), (TensorValues{1.5, static_cast<double>(0.1F)}));
  EXPECT_EQ(read_back<std::int64_t>("I64", {-7, std::int64_t{1} << 40}), (TensorValues{-7, 1099511627776.0}));
  EXPECT_EQ(read_back<std::int32_t>("I32", {-7, INT32_MAX}), (TensorValues{-7, 2147483647.0}));
  // The upper half of a float: 1, -2, 3.140625, the largest
  EXPECT_EQ(read_back<std::uint16_t>("BF16", {0x3f80, 0xc000, 0x4049, 0x7f7f}),
            (TensorValues{1, -2, 3.140625, static_cast<double>(0x1.fep127F)}));
  EXPECT_THROW(read_back<std::uint8_t>("U8", {1, 2}), InputError);
}

// IEEE 754 binary16: named numbers; and every number is the one before it plus a step that doubles with the exponent.
TEST(TensorBytesTest, AllHalfNumbersAreRead) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t bits = 0; bits < all.size(); ++bits) all[bits] = static_cast<std::uint16_t>(bits);
  const TensorValues values = read_back<std::uint16_t>("F16", all);
  EXPECT_EQ(values[0x0000], 0);
  EXPECT_EQ(values[0x0001], 0x1p-24);
  EXPECT_EQ(values[0x0400], 0x1p-14);
  EXPECT_EQ(values[0x3555], 0.333251953125);
  EXPECT_EQ(values[0x3c00], 1);
  EXPECT_EQ(values[0xc000], -2);
  EXPECT_EQ(values[0x7bff], 65504);
  EXPECT_EQ(values[0x7c00], std::numeric_limits<double>::infinity());
  EXPECT_EQ(values[0xfc00], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(values[0x7c01]) && std::isnan(values[0xffff]));
  EXPECT_TRUE(std::signbit(values[0x8000]));
  double step = 0x1p-24;
  for (std::size_t bits = 1; bits < 0x7c00; ++bits) {
    if (bits > 0x800 && bits % 0x400 == 1) step *= 2;  // numbers below 2^-14 have the same step as the first ones above
    ASSERT_EQ(values[bits], values[bits - 1] + step) << bits;
    ASSERT_EQ(values[bits | 0x8000], -values[bits]) << bits;
  }
}

TEST(TensorBytesTest, WhatDevicesSaveIsReadBack) {
  const TensorValues values = {0.1, -1e-300, 3};
  const std::vector<std::byte> bytes = bytes_of_numbers(values);
  ASSERT_EQ(bytes.size(), 24u);
  std::vector<double> copies(3);
  std::memcpy(copies.data(), bytes.data(), bytes.size());
  EXPECT_EQ(read_back<double>(kSimulatedDtype, copies), values);
  EXPECT_TRUE(bytes_of_numbers({}).empty());
}

}  // namespace
}  // namespace shardplan
