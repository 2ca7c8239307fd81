#include "layouts/tensor_layout.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/integer.h"
#include "base/random.h"
#include "layouts/index_digits.h"

namespace shardplan {

std::string check_axes(const TensorLayout& layout, const DeviceMesh& mesh) {
  std::map<std::uint32_t, std::vector<AxisRef>> used;
  const auto use = [&](const std::vector<AxisRef>& axes) -> std::string {
    for (const AxisRef& ref : axes) {
      if (ref.axis >= mesh.axes().size())
        return fmt::format("axis {} does not exist on mesh {}", ref.axis, mesh.to_string());
      const MeshAxis& axis = mesh.axes()[ref.axis];
      const auto end = ref.before < 1 || ref.size < 1 ? std::nullopt : checked_multiply(ref.before, ref.size);
      if (!end || axis.size % *end != 0) {
        return fmt::format("{}:({}){} is not part of axis {} of size {}; {} * {} must divide it", axis.name, ref.before,
                           ref.size, axis.name, axis.size, ref.before, ref.size);
      }
      if (ref.size > 1) used[ref.axis].push_back(ref);
    }
    return {};
  };
  for (const DimensionLayout& dimension : layout.dimensions) {
    for (const DimensionPart& part : dimension.parts) {
      if (std::string fault = use(part.axes); !fault.empty()) return fault;
    }
  }
  if (std::string fault = use(layout.partial); !fault.empty()) return fault;
  for (auto& [axis, refs] : used) {
    std::sort(refs.begin(), refs.end());
    for (std::size_t i = 1; i < refs.size(); ++i) {
      const AxisRef& a = refs[i - 1];
      const AxisRef& b = refs[i];
      if (a == b) return fmt::format("axis {} is used twice", mesh.to_string(a));
      if (overlaps(a, b)) return fmt::format("{} and {} overlap", mesh.to_string(a), mesh.to_string(b));
    }
  }
  return {};
}

std::string_view to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kMax:
      return "max";
    case Reduction::kMin:
      return "min";
  }
  return "?";
}

TensorLayout TensorLayout::replicated(std::size_t rank) {
  TensorLayout layout;
  layout.dimensions.assign(rank, DimensionLayout{{DimensionPart{}}});
  return layout;
}

bool TensorLayout::is_replicated() const {
  return shardplan::num_pieces(partial) == 1 &&
         std::none_of(dimensions.begin(), dimensions.end(), [](const DimensionLayout& d) { return d.is_sharded(); });
}

TensorLayout canonical(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape) {
  SHARDPLAN_CHECK(layout.dimensions.size() == shape.size());
  static_cast<void>(mesh);
  TensorLayout result;
  result.dimensions.reserve(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    result.dimensions.push_back(dimension_of_digits(index_digits(layout.dimensions[i], shape[i])));
  }
  result.partial = layout.partial;
  std::sort(result.partial.begin(), result.partial.end());
  result.partial = joined(result.partial);
  if (!result.partial.empty()) result.reduction = layout.reduction;
  return result;
}

std::string check_layout(const TensorLayout& layout, const DeviceMesh& mesh, const Shape& shape) {
  if (layout.dimensions.size() != shape.size()) {
    return fmt::format("the layout has {} dimensions, the tensor {} has {}", layout.dimensions.size(), to_string(shape),
                       shape.size());
  }
  if (std::string fault = check_axes(layout, mesh); !fault.empty()) return fault;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::vector<DimensionPart>& parts = layout.dimensions[i].parts;
    std::optional<std::int64_t> product = 1;
    for (const DimensionPart& part : parts) {
      const std::int64_t size = part.size == 0 && parts.size() == 1 ? shape[i] : part.size;
      if (size < 1 && !(parts.size() == 1 && shape[i] == 0 && num_pieces(part.axes) == 1)) {
        return fmt::format("a part of dimension {} has size {}; expected at least 1", i, size);
      }
      if (size % num_pieces(part.axes) != 0) {
        const std::string what = parts.size() > 1 ? fmt::format("the part of size {} of dimension {}", size, i)
                                                  : fmt::format("dimension {} of size {}", i, size);
        return fmt::format("{} cannot be split into {} by {}", what, num_pieces(part.axes), mesh.to_string(part.axes));
      }
      if (product) product = checked_multiply(*product, size);
    }
    if (!parts.empty() && product != shape[i]) {
      return fmt::format("the parts of dimension {} multiply to {}, but its size is {}", i,
                         product ? std::to_string(*product) : "more than 2^63", shape[i]);
    }
  }
  return {};
}

Shape local_shape(const TensorLayout& layout, const Shape& shape) {
  SHARDPLAN_CHECK(layout.dimensions.size() == shape.size());
  Shape local(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t pieces = layout.dimensions[i].num_pieces();
    local[i] = (shape[i] + pieces - 1) / pieces;
  }
  return local;
}

std::int64_t num_shards(const TensorLayout& layout) {
  std::int64_t shards = 1;
  for (const DimensionLayout& dimension : layout.dimensions) shards *= dimension.num_pieces();
  return shards;
}

std::vector<std::vector<std::int64_t>> held_indices(const TensorLayout& layout, const DeviceMesh& mesh,
                                                    const Shape& shape, std::int64_t point) {
  SHARDPLAN_CHECK(layout.dimensions.size() == shape.size());
  std::vector<std::vector<std::int64_t>> held(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::vector<std::int64_t> indices = {0};
    for (const IndexDigit& digit : index_digits(layout.dimensions[i], shape[i])) {
      std::vector<std::int64_t> longer;
      for (const std::int64_t index : indices) {
        if (digit.axis) {
          longer.push_back(index * digit.size + mesh.coordinate(point, *digit.axis));
        } else {
          for (std::int64_t j = 0; j < digit.size; ++j) longer.push_back(index * digit.size + j);
        }
      }
      indices = std::move(longer);
    }
    // In an uneven dimension the digits also count through the padding.
    while (!indices.empty() && indices.back() >= shape[i]) indices.pop_back();
    held[i] = std::move(indices);
  }
  return held;
}

}  // namespace shardplan

std::size_t std::hash<shardplan::TensorLayout>::operator()(const shardplan::TensorLayout& layout) const noexcept {
  std::uint64_t value = layout.dimensions.size() * 4 + static_cast<std::uint64_t>(layout.reduction);
  const auto add = [&](std::uint64_t item) { value = shardplan::mix(value ^ item); };
  const auto add_axes = [&](const std::vector<shardplan::AxisRef>& axes) {
    add(axes.size());
    for (const shardplan::AxisRef& ref : axes) {
      add((std::uint64_t{ref.axis} << 48) ^ (static_cast<std::uint64_t>(ref.before) << 24) ^
          static_cast<std::uint64_t>(ref.size));
    }
  };
  for (const shardplan::DimensionLayout& dimension : layout.dimensions) {
    for (const shardplan::DimensionPart& part : dimension.parts) {
      add(static_cast<std::uint64_t>(part.size));
      add_axes(part.axes);
    }
    add(~std::uint64_t{0});
  }
  add_axes(layout.partial);
  return value;
}
