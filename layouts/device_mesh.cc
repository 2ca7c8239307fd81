#include "layouts/device_mesh.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/integer.h"
#include "base/shortened.h"

namespace shardplan {
namespace {

constexpr std::int64_t kMostDevices = INT32_MAX;

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

}  // namespace

DeviceMesh::DeviceMesh(std::vector<MeshAxis> axes) : DeviceMesh(std::move(axes), {}) {}

DeviceMesh::DeviceMesh(std::vector<MeshAxis> axes, std::vector<std::int64_t> devices)
    : axes_(std::move(axes)), strides_(axes_.size()), devices_(std::move(devices)) {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const MeshAxis& axis = axes_[i];
    if (!is_name(axis.name)) {
      throw InputError({}, "mesh axis {} is named '{}'; expected letters, digits, '_', '.' or '-'", i, axis.name);
    }
    if (axis.size < 1) throw InputError({}, "mesh axis '{}' has size {}; expected at least 1", axis.name, axis.size);
    for (std::size_t j = 0; j < i; ++j) {
      if (axes_[j].name == axis.name) throw InputError({}, "mesh axis '{}' is given twice", axis.name);
    }
  }
  for (std::size_t i = axes_.size(); i-- > 0;) {
    strides_[i] = num_devices_;
    if (axes_[i].size > kMostDevices / num_devices_) {
      throw InputError({}, "mesh {} has more than {} devices", to_string(), kMostDevices);
    }
    num_devices_ *= axes_[i].size;
  }
  if (devices_.empty()) return;
  if (static_cast<std::int64_t>(devices_.size()) != num_devices_) {
    throw InputError({}, "mesh {} has {} points, but the list of devices has {}", to_string(), num_devices_,
                     devices_.size());
  }
  std::vector<std::int64_t> sorted = devices_;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) throw InputError({}, "mesh {}: device {} is listed twice", to_string(), *twice);
  if (sorted.front() < 0) throw InputError({}, "mesh {}: device {} is negative", to_string(), sorted.front());
  bool in_order = true;
  for (std::size_t i = 0; i < sorted.size(); ++i) in_order = in_order && devices_[i] == static_cast<std::int64_t>(i);
  if (in_order) devices_.clear();
}

DeviceMesh DeviceMesh::parse(std::string_view text) {
  std::vector<MeshAxis> axes;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = trimmed(rest.substr(0, comma));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      throw InputError({}, "mesh '{}': found '{}'; expected axes and sizes such as x=2, y=4", shortened(text),
                       shortened(item));
    }
    const std::string_view name = trimmed(item.substr(0, equals));
    const std::string_view digits = trimmed(item.substr(equals + 1));
    std::int64_t size = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9' || size > kMostDevices) {
        size = -1;
        break;
      }
      size = size * 10 + (c - '0');
    }
    if (digits.empty() || size < 1) {
      throw InputError({}, "mesh '{}': axis '{}' has size '{}'; expected a whole number from 1 to {}", shortened(text),
                       shortened(name), shortened(digits), kMostDevices);
    }
    axes.push_back({std::string(name), size});
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  return DeviceMesh(std::move(axes));
}

AxisRef DeviceMesh::whole(std::size_t axis) const {
  SHARDPLAN_CHECK(axis < axes_.size());
  return {static_cast<std::uint32_t>(axis), 1, axes_[axis].size};
}

std::optional<AxisRef> DeviceMesh::find(std::string_view name) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return whole(i);
  }
  return std::nullopt;
}

bool DeviceMesh::is_whole(const AxisRef& ref) const { return ref == whole(ref.axis); }

std::int64_t DeviceMesh::stride(const AxisRef& ref) const {
  return strides_[ref.axis] * (axes_[ref.axis].size / ref.end());
}

std::int64_t DeviceMesh::coordinate(std::int64_t point, const AxisRef& ref) const {
  return point / stride(ref) % ref.size;
}

std::int64_t DeviceMesh::coordinate(std::int64_t point, const std::vector<AxisRef>& refs) const {
  std::int64_t position = 0;
  for (const AxisRef& ref : refs) position = position * ref.size + coordinate(point, ref);
  return position;
}

std::vector<std::vector<std::int64_t>> DeviceMesh::groups(const std::vector<AxisRef>& axes) const {
  std::vector<std::int64_t> offsets = {0};  // each member's distance from the first, in the order of `coordinate`
  for (const AxisRef& ref : axes) {
    std::vector<std::int64_t> refined;
    refined.reserve(offsets.size() * static_cast<std::size_t>(ref.size));
    for (const std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < ref.size; ++i) refined.push_back(offset + i * stride(ref));
    }
    offsets = std::move(refined);
  }
  std::vector<std::vector<std::int64_t>> result;
  for (std::int64_t point = 0; point < num_devices_; ++point) {
    if (coordinate(point, axes) != 0) continue;
    std::vector<std::int64_t>& group = result.emplace_back(offsets);
    for (std::int64_t& member : group) member += point;
  }
  return result;
}

std::string DeviceMesh::to_string(const AxisRef& ref) const {
  const std::string& name = axes_[ref.axis].name;
  return is_whole(ref) ? name : fmt::format("{}:({}){}", name, ref.before, ref.size);
}

std::string DeviceMesh::to_string(const std::vector<AxisRef>& refs) const {
  std::string text = "{";
  for (const AxisRef& ref : refs) {
    if (text.size() > 1) text += ", ";
    text += to_string(ref);
  }
  return text + "}";
}

std::string DeviceMesh::to_string() const {
  std::string text;
  for (const MeshAxis& axis : axes_) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", axis.name, axis.size);
  return text;
}

}  // namespace shardplan
