#include "simulator/execute/device_buffer.h"

#include <gtest/gtest.h>

#include "simulator/execute/collectives.h"

namespace shardplan {
namespace {

TEST(DeviceBufferTest, WhatOneDeviceWritesNoOtherSees) {
  DeviceBuffers buffers(3, {1, 2});
  EXPECT_EQ(buffers[0].data(), buffers[2].data());
  buffers[1].edit()[0] = 7;
  EXPECT_EQ(buffers, (DeviceBuffers{{1, 2}, {7, 2}, {1, 2}}));
  EXPECT_EQ(buffers[0].data(), buffers[2].data());
  EXPECT_NE(buffers[0].data(), buffers[1].data());
}

TEST(DeviceBufferTest, ChangesEachOnceAndGoesOnSharing) {
  const DeviceBuffer shared = {1, 2};
  DeviceBuffers buffers = {shared, {1, 2}, shared, {}};
  int calls = 0;
  change_each(buffers, [&](std::vector<double>& values) {
    ++calls;
    for (double& value : values) value += 10;
  });
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(buffers, (DeviceBuffers{{11, 12}, {11, 12}, {11, 12}, {}}));
  EXPECT_EQ(shared, (DeviceBuffer{1, 2}));
  EXPECT_EQ(buffers[0].data(), buffers[2].data());
  EXPECT_NE(buffers[0].data(), buffers[1].data());
}

TEST(DeviceBufferTest, DevicesAreAlikeThatComeWithOneKey) {
  const DeviceBuffers buffers = {{1}, {1}};
  AlikeDevices alike;
  EXPECT_EQ(alike.first_with({AlikeDevices::memory(buffers[0]), 5}, 0), 0u);
  EXPECT_EQ(alike.first_with({AlikeDevices::memory(buffers[1]), 5}, 1), 1u);  // equal numbers in other memory
  EXPECT_EQ(alike.first_with({AlikeDevices::memory(buffers[0]), 6}, 2), 2u);
  EXPECT_EQ(alike.first_with({AlikeDevices::memory(buffers[0]), 5}, 3), 0u);
}

TEST(DeviceBufferTest, CollectivesShareWhatTheyLeaveOnSeveralDevices) {
  const DeviceMesh mesh = DeviceMesh::parse("x=2,y=3");
  const Shape shape = {6};
  const std::vector<double> values = {0, 1, 2, 3, 4, 5};
  const auto layout = [&](const char* text) { return parse_layout(text, mesh); };
  const DeviceBuffers rows = scatter(values, shape, layout("[{y}]"), mesh);
  EXPECT_EQ(rows[1].data(), rows[4].data());  // copies along x
  CollectiveStep gather;
  gather.kind = CollectiveKind::kAllGather;
  gather.axes = {mesh.whole(1)};
  gather.from_dim = 0;
  gather.before = layout("[{y}]");
  gather.after = layout("[{}]");
  const DeviceBuffers whole = apply(gather, mesh, shape, rows);
  for (const DeviceBuffer& buffer : whole) {
    EXPECT_EQ(buffer, DeviceBuffer(values));
    EXPECT_EQ(buffer.data(), whole[0].data());
  }
  // If one of two groups began with other numbers, each has its own.
  DeviceBuffers other = rows;
  other[4].edit()[0] = 9;
  const DeviceBuffers differing = apply(gather, mesh, shape, other);
  EXPECT_EQ(differing[0], DeviceBuffer(values));
  EXPECT_EQ(differing[3], (DeviceBuffer{0, 1, 9, 3, 4, 5}));
  EXPECT_EQ(differing[3].data(), differing[5].data());
}

}  // namespace
}  // namespace shardplan
