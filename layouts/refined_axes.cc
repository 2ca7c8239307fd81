#include "layouts/refined_axes.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan {

RefinedAxes::RefinedAxes(const DeviceMesh& mesh, const std::vector<AxisRef>& refs) {
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    // Positions (products of the parts to the left) at which the axis is cut; each must divide the next.
    std::vector<std::int64_t> cuts{1, mesh.axes()[axis].size};
    for (const AxisRef& ref : refs) {
      if (ref.axis != axis) continue;
      for (const std::int64_t cut : {ref.before, ref.end()}) {
        const bool fits = std::all_of(cuts.begin(), cuts.end(), [&](std::int64_t other) {
          return cut == other || (cut > other ? cut % other : other % cut) == 0;
        });
        if (fits && std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (std::size_t i = 0; i + 1 < cuts.size() || (cuts.size() == 1 && i == 0); ++i) {
      const std::int64_t size = cuts.size() == 1 ? 1 : cuts[i + 1] / cuts[i];
      const std::string& name = mesh.axes()[axis].name;
      axes_.push_back({cuts.size() <= 2 ? name : fmt::format("{}_{}", name, i), size});
      parts_.push_back({static_cast<std::uint32_t>(axis), cuts[i], size});
    }
  }
}

std::optional<std::vector<std::size_t>> RefinedAxes::find(const AxisRef& ref) const {
  std::vector<std::size_t> found;
  std::int64_t reached = ref.before;
  for (std::size_t i = 0; i < parts_.size() && reached < ref.end(); ++i) {
    if (parts_[i].axis != ref.axis || parts_[i].before != reached || parts_[i].size == 1) continue;
    found.push_back(i);
    reached *= parts_[i].size;
  }
  if (reached != ref.end()) return std::nullopt;
  return found;
}

}  // namespace shardplan
