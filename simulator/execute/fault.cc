#include "simulator/execute/fault.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "layouts/uneven.h"
#include "simulator/execute/padding.h"

namespace shardplan {
namespace {

/// Strides of a row-major buffer with these extents.
std::vector<std::size_t> strides_of(const Shape& extents) {
  std::vector<std::size_t> strides(extents.size(), 1);
  for (std::size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * static_cast<std::size_t>(extents[d]);
  return strides;
}

/// Every device fills its new piece from its own old one: elements that it held stay correct (of a partial tensor: its
/// own summand); others take the element at the same local position, wrapped around.
DeviceBuffers without_sending(const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape,
                              const DeviceBuffers& input) {
  DeviceBuffers output(input.size());
  const std::vector<std::size_t> from = strides_of(local_shape(step.before, shape));
  for (std::size_t device = 0; device < input.size(); ++device) {
    const auto had = held_indices(step.before, mesh, shape, static_cast<std::int64_t>(device));
    const auto gets = held_indices(step.after, mesh, shape, static_cast<std::int64_t>(device));
    // By dimension and new local position: the source offset in the old buffer.
    std::vector<std::vector<std::size_t>> sources(shape.size());
    Shape held;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      for (std::size_t i = 0; i < gets[d].size(); ++i) {
        const auto at = std::lower_bound(had[d].begin(), had[d].end(), gets[d][i]);
        const bool is_held = at != had[d].end() && *at == gets[d][i];
        sources[d].push_back(from[d] * (is_held ? static_cast<std::size_t>(at - had[d].begin()) : i % had[d].size()));
      }
      held.push_back(static_cast<std::int64_t>(gets[d].size()));
    }
    std::vector<double> made(static_cast<std::size_t>(num_elements(held)));
    std::vector<std::size_t> position(shape.size(), 0);
    for (double& value : made) {
      std::size_t source = 0;
      for (std::size_t d = 0; d < shape.size(); ++d) source += sources[d][position[d]];
      value = input[device][source];
      for (std::size_t d = shape.size(); d-- > 0;) {
        if (++position[d] < sources[d].size()) break;
        position[d] = 0;
      }
    }
    const Shape buffer_shape = local_shape(step.after, shape);
    output[device] = held != buffer_shape ? with_padding(made, held, buffer_shape) : std::move(made);
  }
  return output;
}

/// Like `apply`, but keeps the last positions of the gathered dimension, whose pieces end with padding.
DeviceBuffers without_trim(const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape,
                           const DeviceBuffers& input) {
  SHARDPLAN_CHECK(step.from_dim.has_value());
  const std::size_t d = *step.from_dim;
  const std::int64_t pieces = step.before.dimensions[d].num_pieces();
  const std::int64_t padding = pieces * largest_piece(shape[d], pieces) - shape[d];
  DeviceBuffers output = apply(step, mesh, shape, input);
  for (std::size_t device = 0; device < output.size(); ++device) {
    const Shape buffer_shape = local_shape(step.after, shape);
    const Shape held = held_shape(step.after, mesh, shape, static_cast<std::int64_t>(device));
    std::int64_t inner = 1;
    for (std::size_t k = d + 1; k < shape.size(); ++k) inner *= buffer_shape[k];
    std::vector<double>& values = output[device].edit();
    const std::int64_t row = buffer_shape[d] * inner;
    for (std::int64_t begin = 0; begin < static_cast<std::int64_t>(values.size()); begin += row) {
      for (std::int64_t i = 0; i < held[d] * inner; ++i) {
        const std::int64_t from = i + padding * inner;
        values[static_cast<std::size_t>(begin + i)] =
            from < held[d] * inner ? values[static_cast<std::size_t>(begin + from)] : kPadding;
      }
    }
  }
  return output;
}

void swap_first_two(const CollectiveStep& step, const DeviceMesh& mesh, DeviceBuffers& buffers) {
  for (const std::vector<std::int64_t>& group : mesh.groups(step.axes)) {
    if (group.size() > 1)
      std::swap(buffers[static_cast<std::size_t>(group[0])], buffers[static_cast<std::size_t>(group[1])]);
  }
}

}  // namespace

std::string_view to_string(FaultKind kind) {
  switch (kind) {
    case FaultKind::kRemoved:
      return "removed";
    case FaultKind::kSwapped:
      return "swapped";
    case FaultKind::kRotated:
      return "rotated";
    case FaultKind::kDoubled:
      return "doubled";
    case FaultKind::kShifted:
      return "shifted";
    case FaultKind::kUntrimmed:
      return "not trimmed";
  }
  return "";
}

DeviceBuffers apply_wrongly(FaultKind kind, const CollectiveStep& step, const DeviceMesh& mesh, const Shape& shape,
                            const DeviceBuffers& input) {
  switch (kind) {
    case FaultKind::kRemoved:
      return without_sending(step, mesh, shape, input);
    case FaultKind::kSwapped: {
      // After an all_gather all members hold the same, so its input pieces are swapped.
      DeviceBuffers buffers = input;
      if (step.kind == CollectiveKind::kAllGather) swap_first_two(step, mesh, buffers);
      buffers = apply(step, mesh, shape, buffers);
      if (step.kind != CollectiveKind::kAllGather) swap_first_two(step, mesh, buffers);
      return buffers;
    }
    case FaultKind::kRotated: {
      DeviceBuffers buffers = input;
      std::rotate(buffers.begin(), buffers.begin() + 1, buffers.end());
      return apply(step, mesh, shape, buffers);
    }
    case FaultKind::kDoubled: {
      DeviceBuffers buffers = apply(step, mesh, shape, input);
      const auto members = static_cast<double>(num_pieces(step.axes));
      change_each(buffers, [&](std::vector<double>& values) {
        for (double& value : values) value *= members;
      });
      return buffers;
    }
    case FaultKind::kUntrimmed:
      return without_trim(step, mesh, shape, input);
    case FaultKind::kShifted:
      break;
  }
  SHARDPLAN_CHECK(kind != FaultKind::kShifted);
  return {};
}

void swap_unlike_buffers(DeviceBuffers& buffers) {
  for (std::size_t device = 1; device < buffers.size(); ++device) {
    if (!hold_the_same(buffers[device], buffers[0])) {
      std::swap(buffers[device], buffers[0]);
      return;
    }
  }
}

}  // namespace shardplan
