#include "simulator/proof/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "simulator/execute/padding.h"

// Lists for each device the positions of the reference that its buffer should hold (with halo, without padding) and
// compares them one by one; partial values are first reduced over the group. If something differs, a few simple faults
// are tried against the numbers, so that the message can name the likely one.

namespace shardplan {
namespace {

/// The global positions in a device's buffer, including the halo, by dimension.
std::vector<std::vector<std::int64_t>> positions(const PlacedValue& placed, const ProgramValue& value,
                                                 const DeviceMesh& mesh, std::int64_t point) {
  auto held = held_indices(value.layout, mesh, value.type.shape, point);
  if (placed.shapes.empty()) return held;
  const auto device = static_cast<std::size_t>(point);
  for (std::size_t d = 0; d < held.size(); ++d) {
    if (placed.shapes[device][d] == value.local_shape[d]) continue;
    const std::int64_t begin = held[d].front() - placed.before[device][d];
    held[d].clear();
    for (std::int64_t i = 0; i < placed.shapes[device][d]; ++i) held[d].push_back(begin + i);
  }
  return held;
}

/// The contents of a device's buffer, without the padding behind a shorter piece.
TensorValues own_values(const TensorValues& buffer, const PlacedValue& placed, const ProgramValue& value,
                        std::size_t device, const std::vector<std::vector<std::int64_t>>& held) {
  const Shape& buffer_shape = placed.shapes.empty() ? value.local_shape.items() : placed.shapes[device];
  Shape shape;
  for (const std::vector<std::int64_t>& list : held) shape.push_back(static_cast<std::int64_t>(list.size()));
  return shape == buffer_shape ? buffer : without_padding(buffer, buffer_shape, shape);
}

/// The elements of the reference at the given positions: the expected contents of a device's buffer.
TensorValues cut_out(const TensorValues& reference, const Shape& shape,
                     const std::vector<std::vector<std::int64_t>>& held) {
  std::size_t size = 1;
  for (const auto& list : held) size *= list.size();
  TensorValues piece(size);
  std::vector<std::size_t> position(held.size(), 0);
  for (double& element : piece) {
    std::size_t at = 0;
    for (std::size_t d = 0; d < held.size(); ++d) {
      at = at * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(held[d][position[d]]);
    }
    element = reference[at];
    for (std::size_t d = held.size(); d-- > 0;) {
      if (++position[d] < held[d].size()) break;
      position[d] = 0;
    }
  }
  return piece;
}

/// The buffers with partial values reduced, in the order of the members.
DeviceBuffers reduced(const DeviceBuffers& data, const std::vector<AxisRef>& axes, Reduction reduction,
                      const DeviceMesh& mesh) {
  if (num_pieces(axes) == 1) return data;
  DeviceBuffers result(data.size());
  AlikeDevices alike;
  for (const std::vector<std::int64_t>& group : mesh.groups(axes)) {
    AlikeDevices::Key summands;
    for (const std::int64_t point : group) {
      summands.push_back(AlikeDevices::memory(data[static_cast<std::size_t>(point)]));
    }
    const auto leader = static_cast<std::size_t>(group.front());
    if (const std::size_t first = alike.first_with(std::move(summands), leader); first != leader) {
      const DeviceBuffer known = result[first];
      for (const std::int64_t point : group) result[static_cast<std::size_t>(point)] = known;
      continue;
    }
    TensorValues total = data[leader];
    for (std::size_t member = 1; member < group.size(); ++member) {
      const TensorValues& other = data[static_cast<std::size_t>(group[member])];
      for (std::size_t i = 0; i < total.size(); ++i) {
        total[i] = std::isnan(total[i]) || std::isnan(other[i]) ? std::numeric_limits<double>::quiet_NaN()
                   : reduction == Reduction::kSum               ? total[i] + other[i]
                   : reduction == Reduction::kMax               ? std::max(total[i], other[i])
                                                                : std::min(total[i], other[i]);
      }
    }
    const DeviceBuffer whole = std::move(total);
    for (const std::int64_t point : group) result[static_cast<std::size_t>(point)] = whole;
  }
  return result;
}

/// True if `found[device][i] * factor` is `expected[device][i]` everywhere.
bool agree(const DeviceBuffers& found, const DeviceBuffers& expected, double factor, double scale,
           const Tolerance& tolerance) {
  for (std::size_t device = 0; device < found.size(); ++device) {
    if (found[device].size() != expected[device].size()) return false;
    for (std::size_t i = 0; i < found[device].size(); ++i) {
      const double should_be = expected[device][i];
      if (!(distance(found[device][i] * factor, should_be) <= tolerance.allowed(scale, should_be))) return false;
    }
  }
  return true;
}

/// Sets of mesh axes along which the value is not sharded, smaller sets first.
std::vector<std::vector<AxisRef>> uncut_axis_sets(const TensorLayout& layout, const DeviceMesh& mesh) {
  std::vector<AxisRef> uncut;
  for (std::size_t axis = 0; axis < mesh.axes().size() && uncut.size() < 6; ++axis) {
    bool is_sharded = mesh.axes()[axis].size == 1;
    for (const DimensionLayout& dimension : layout.dimensions) {
      for (const DimensionPart& part : dimension.parts) {
        for (const AxisRef& ref : part.axes) is_sharded = is_sharded || ref.axis == axis;
      }
    }
    if (!is_sharded) uncut.push_back(mesh.whole(axis));
  }
  std::vector<std::vector<AxisRef>> sets;
  for (std::size_t mask = 1; mask < (std::size_t{1} << uncut.size()); ++mask) {
    std::vector<AxisRef> axes;
    for (std::size_t i = 0; i < uncut.size(); ++i) {
      if ((mask >> i & 1) != 0) axes.push_back(uncut[i]);
    }
    sets.push_back(std::move(axes));
  }
  std::stable_sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return sets;
}

/// If every device's piece is one of `expected`, the device whose piece the first wrong device holds.
std::optional<std::pair<std::size_t, std::size_t>> other_piece(const DeviceBuffers& found,
                                                               const DeviceBuffers& expected, double scale,
                                                               const Tolerance& tolerance) {
  const auto same = [&](const TensorValues& a, const TensorValues& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!(distance(a[i], b[i]) <= tolerance.allowed(scale, b[i]))) return false;
    }
    return true;
  };
  std::optional<std::pair<std::size_t, std::size_t>> first;
  for (std::size_t device = 0; device < found.size(); ++device) {
    if (same(found[device], expected[device])) continue;
    std::size_t other = 0;
    while (other < expected.size() && !same(found[device], expected[other])) ++other;
    if (other == expected.size()) return std::nullopt;
    if (!first) first = {device, other};
  }
  return first;
}

/// The common case: the largest difference between a device's buffer and its expected contents if all differences are
/// at most `allowed`; nothing if one is larger or NaN. Rows of the last dimension are compared in place.
std::optional<double> largest_if_all_close(const TensorValues& buffer, const Shape& buffer_shape,
                                           const TensorValues& reference, const Shape& shape,
                                           const std::vector<std::vector<std::int64_t>>& held, double allowed) {
  const std::size_t outer = held.empty() ? 0 : held.size() - 1;
  std::size_t rows = 1;
  for (std::size_t d = 0; d < outer; ++d) rows *= held[d].size();
  const std::vector<std::int64_t> one = {0};
  const std::vector<std::int64_t>& row = held.empty() ? one : held.back();
  if (row.empty()) return 0;
  const bool is_interval =
      row.back() - row.front() + 1 == static_cast<std::int64_t>(row.size()) && std::is_sorted(row.begin(), row.end());
  if (!is_interval) return std::nullopt;
  std::vector<std::size_t> position(outer, 0);
  double largest = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    std::size_t own = 0, global = 0;
    for (std::size_t d = 0; d < outer; ++d) {
      own = own * static_cast<std::size_t>(buffer_shape[d]) + position[d];
      global = global * static_cast<std::size_t>(shape[d]) + static_cast<std::size_t>(held[d][position[d]]);
    }
    if (!held.empty()) {
      own *= static_cast<std::size_t>(buffer_shape[outer]);
      global = global * static_cast<std::size_t>(shape[outer]) + static_cast<std::size_t>(row.front());
    }
    const double* const a = buffer.data() + own;
    const double* const b = reference.data() + global;
    bool is_close = true;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double difference = std::abs(a[i] - b[i]);
      is_close = is_close && difference <= allowed;
      largest = difference > largest ? difference : largest;
    }
    if (!is_close) return std::nullopt;
    for (std::size_t d = outer; d-- > 0;) {
      if (++position[d] < held[d].size()) break;
      position[d] = 0;
    }
  }
  return largest;
}

/// Compares element by element and records the first that differs.
void compare_each(std::size_t device, const TensorValues& own, const TensorValues& expected,
                  const std::vector<std::vector<std::int64_t>>& held, const Tolerance& tolerance, Comparison& result) {
  const std::int64_t before = result.num_differing;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ++result.num_compared;
    const double difference = distance(own[i], expected[i]);
    result.largest = std::max(result.largest, difference);
    const double allowed = tolerance.allowed(result.scale, expected[i]);
    if (difference > 0) result.worst = std::max(result.worst, difference / allowed);
    if (difference <= allowed) continue;
    if (result.num_differing++ > 0) continue;
    result.point = static_cast<std::int64_t>(device);
    result.found = own[i];
    result.should_be = expected[i];
    std::size_t rest = i;
    result.local_index.assign(held.size(), 0);
    result.global_index.assign(held.size(), 0);
    for (std::size_t d = held.size(); d-- > 0;) {
      result.local_index[d] = static_cast<std::int64_t>(rest % held[d].size());
      result.global_index[d] = held[d][rest % held[d].size()];
      rest /= held[d].size();
    }
  }
  if (result.num_differing > before) ++result.num_devices_wrong;
}

}  // namespace

double distance(double found, double should_be) {
  if (found == should_be) return 0;  // also infinities
  if (std::isnan(found) && std::isnan(should_be)) return 0;
  const double difference = std::abs(found - should_be);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

double Tolerance::allowed(double scale, double reference) const {
  const double size = std::abs(reference);
  const bool is_large = size >= kStandsForInfinity && size < std::numeric_limits<double>::infinity();
  return (is_large ? (relative + of_large) * size : relative * scale) + absolute;
}

double scale_of(const TensorValues& reference) {
  double scale = 0;
  for (const double value : reference) {
    if (std::abs(value) < kStandsForInfinity) scale = std::max(scale, std::abs(value));
  }
  return scale;
}

Comparison compare(const PlacedValue& placed, const ProgramValue& value, const DeviceMesh& mesh,
                   const TensorValues& reference, const Tolerance& tolerance) {
  Comparison result;
  result.scale = scale_of(reference);
  const bool is_usual = std::none_of(reference.begin(), reference.end(),
                                     [](double element) { return std::abs(element) >= kStandsForInfinity; });
  const double allowed = tolerance.allowed(result.scale, 0);
  const bool is_partial = num_pieces(value.layout->partial) > 1;
  const DeviceBuffers whole = is_partial ? completed(placed, value, mesh) : DeviceBuffers();
  const DeviceBuffers& found = is_partial ? whole : placed.data;
  // Of copies that share memory and have the same positions only one is compared.
  std::set<std::pair<const double*, std::vector<std::vector<std::int64_t>>>> close;
  for (std::size_t device = 0; device < found.size(); ++device) {
    auto held = positions(placed, value, mesh, static_cast<std::int64_t>(device));
    std::int64_t size = 1;
    for (const auto& list : held) size *= static_cast<std::int64_t>(list.size());
    std::pair key(found[device].data(), std::move(held));
    if (close.contains(key)) {
      result.num_compared += size;
      continue;
    }
    const Shape& buffer_shape = placed.shapes.empty() ? value.local_shape.items() : placed.shapes[device];
    const std::optional<double> largest =
        is_usual ? largest_if_all_close(found[device], buffer_shape, reference, value.type.shape, key.second, allowed)
                 : std::nullopt;
    if (largest) {
      close.insert(std::move(key));
      result.num_compared += size;
      result.largest = std::max(result.largest, *largest);
      if (*largest > 0) result.worst = std::max(result.worst, *largest / allowed);
      continue;
    }
    compare_each(device, own_values(found[device], placed, value, device, key.second),
                 cut_out(reference, value.type.shape, key.second), key.second, tolerance, result);
  }
  return result;
}

DeviceBuffers completed(const PlacedValue& placed, const ProgramValue& value, const DeviceMesh& mesh) {
  return reduced(placed.data, value.layout->partial, value.layout->reduction, mesh);
}

std::string looks_like(const PlacedValue& placed, const ProgramValue& value, const DeviceMesh& mesh,
                       const TensorValues& reference, const Tolerance& tolerance) {
  const double scale = scale_of(reference);
  DeviceBuffers found = completed(placed, value, mesh);
  DeviceBuffers expected;
  for (std::size_t device = 0; device < found.size(); ++device) {
    const auto held = positions(placed, value, mesh, static_cast<std::int64_t>(device));
    found[device] = own_values(found[device], placed, value, device, held);
    expected.push_back(cut_out(reference, value.type.shape, held));
  }
  const auto all_zero = [](const DeviceBuffer& buffer) {
    return std::all_of(buffer.begin(), buffer.end(), [](double element) { return element == 0; });
  };
  if (std::all_of(found.begin(), found.end(), all_zero)) return "nothing was written: every value is zero";
  bool is_uneven = false;
  for (std::size_t d = 0; d < value.local_shape.size(); ++d) {
    is_uneven = is_uneven || value.type.shape[d] % value.layout->dimensions[d].num_pieces() != 0;
  }
  for (const DeviceBuffer& buffer : found) {
    for (const double element : buffer) {
      if (!std::isnan(element)) continue;
      return is_uneven ? "a value is not a number: padding was read" : "a value is not a number";
    }
  }
  for (const std::vector<AxisRef>& axes : uncut_axis_sets(value.layout, mesh)) {
    const std::int64_t members = num_pieces(axes);
    std::string names;
    for (const AxisRef& axis : axes) names += (names.empty() ? "" : ", ") + mesh.to_string(axis);
    if (agree(reduced(found, axes, Reduction::kSum, mesh), expected, 1, scale, tolerance)) {
      return fmt::format("a sum over {} is missing: each value is one of {} summands", names, members);
    }
    for (const Reduction reduction : {Reduction::kMax, Reduction::kMin}) {
      if (agree(reduced(found, axes, reduction, mesh), expected, 1, scale, tolerance)) {
        return fmt::format("a {} over {} is missing: each value is one of {}", to_string(reduction), names, members);
      }
    }
    if (agree(found, expected, 1.0 / static_cast<double>(members), scale, tolerance)) {
      return fmt::format("summed twice over {}: each value is {} times what it should be", names, members);
    }
    if (agree(found, expected, static_cast<double>(members), scale, tolerance)) {
      return fmt::format("divided by the {} devices of {}: each value is 1/{} of what it should be", members, names,
                         members);
    }
  }
  if (const auto other = other_piece(found, expected, scale, tolerance)) {
    return fmt::format("a slice in the wrong place: rank {} holds the piece of rank {}", other->first, other->second);
  }
  return {};
}

}  // namespace shardplan
