#include "layouts/layout_axes.h"

namespace shardplan {

std::vector<AxisRef> axes_along(const DimensionLayout& dimension) {
  std::vector<AxisRef> axes;
  for (const DimensionPart& part : dimension.parts) axes.insert(axes.end(), part.axes.begin(), part.axes.end());
  return axes;
}

std::vector<AxisRef> cutting_axes(const TensorLayout& layout) {
  std::vector<AxisRef> axes;
  for (const DimensionLayout& dimension : layout.dimensions) {
    const std::vector<AxisRef> along = axes_along(dimension);
    axes.insert(axes.end(), along.begin(), along.end());
  }
  return axes;
}

std::vector<AxisRef> axes_of(const TensorLayout& layout) {
  std::vector<AxisRef> axes = cutting_axes(layout);
  axes.insert(axes.end(), layout.partial.begin(), layout.partial.end());
  return axes;
}

std::vector<AxisRef> without(std::vector<AxisRef> axes, const std::vector<AxisRef>& others) {
  for (const AxisRef& other : others) {
    std::vector<AxisRef> left;
    for (const AxisRef& axis : axes) {
      if (!overlaps(axis, other)) {
        left.push_back(axis);
      } else if (contains(axis, other)) {
        left.push_back({axis.axis, axis.before, other.before / axis.before});
        left.push_back({axis.axis, other.end(), axis.end() / other.end()});
      }
    }
    axes = joined(left);  // drops empty parts
  }
  return axes;
}

}  // namespace shardplan
