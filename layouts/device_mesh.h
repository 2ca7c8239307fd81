#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layouts/axis_ref.h"

namespace shardplan {

/// One named axis of a mesh.
struct MeshAxis {
  std::string name;
  std::int64_t size = 1;

  bool operator==(const MeshAxis&) const = default;
};

/// Named axes with sizes, major to minor. Ranks are the row-major points: on x=2, y=4 rank 5 is (1, 1). If the order of
/// devices is not 0, 1, 2, ..., a list gives the device at each point.
class DeviceMesh {
 public:
  DeviceMesh() = default;  // one device, no axes
  /// Throws InputError if a name is empty or given twice, a size is below 1, or the product does not fit in 31 bits.
  explicit DeviceMesh(std::vector<MeshAxis> axes);
  DeviceMesh(std::vector<MeshAxis> axes, std::vector<std::int64_t> devices);

  /// "x=2, y=4" (spaces optional); throws InputError that says what is expected.
  static DeviceMesh parse(std::string_view text);

  const std::vector<MeshAxis>& axes() const { return axes_; }
  std::int64_t num_devices() const { return num_devices_; }
  /// The device at each row-major point; empty means 0, 1, 2, ...
  const std::vector<std::int64_t>& devices() const { return devices_; }

  AxisRef whole(std::size_t axis) const;
  std::optional<AxisRef> find(std::string_view name) const;
  bool is_whole(const AxisRef& ref) const;

  /// Distance in ranks between neighbours along the axis or sub-axis.
  std::int64_t stride(const AxisRef& ref) const;
  /// The point's position along the axis or sub-axis.
  std::int64_t coordinate(std::int64_t point, const AxisRef& ref) const;
  /// Position along several axes read as one number, the first the most major; 0 for an empty list.
  std::int64_t coordinate(std::int64_t point, const std::vector<AxisRef>& refs) const;
  /// The groups of points that differ only along `axes`: one list per group, in the order of `coordinate` along `axes`;
  /// groups are ordered by their first point.
  std::vector<std::vector<std::int64_t>> groups(const std::vector<AxisRef>& axes) const;

  /// "y" or "y:(2)4".
  std::string to_string(const AxisRef& ref) const;
  /// "{y, x:(1)2}".
  std::string to_string(const std::vector<AxisRef>& refs) const;
  std::string to_string() const;  // "x=2, y=4"

  bool operator==(const DeviceMesh&) const = default;

 private:
  std::vector<MeshAxis> axes_;
  std::vector<std::int64_t> strides_;  // distance in points between neighbours along each axis
  std::int64_t num_devices_ = 1;
  std::vector<std::int64_t> devices_;
};

}  // namespace shardplan
