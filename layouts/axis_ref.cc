#include "layouts/axis_ref.h"

namespace shardplan {

bool overlaps(const AxisRef& a, const AxisRef& b) {
  if (a.axis != b.axis || a.size == 1 || b.size == 1) return false;
  // Disjoint digits of one axis: one begins where the other ends, or at a multiple of that position.
  return b.before % a.end() != 0 && a.before % b.end() != 0;
}

bool contains(const AxisRef& whole, const AxisRef& part) {
  return whole.axis == part.axis && part.before % whole.before == 0 && whole.end() % part.end() == 0;
}

bool is_followed_by(const AxisRef& major, const AxisRef& minor) {
  return major.axis == minor.axis && major.end() == minor.before;
}

std::vector<AxisRef> joined(const std::vector<AxisRef>& axes) {
  std::vector<AxisRef> result;
  for (const AxisRef& axis : axes) {
    if (axis.size == 1) continue;
    if (!result.empty() && is_followed_by(result.back(), axis)) {
      result.back().size *= axis.size;
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

std::int64_t num_pieces(const std::vector<AxisRef>& axes) {
  std::int64_t pieces = 1;
  for (const AxisRef& ref : axes) pieces *= ref.size;
  return pieces;
}

}  // namespace shardplan
