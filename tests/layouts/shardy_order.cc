#include "tests/layouts/shardy_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "layouts/index_digits.h"

namespace shardplan {
namespace {

/// A layout as lists: prime pieces by dimension, and the partial ones.
struct Lists {
  std::vector<std::vector<AxisRef>> dimensions;
  std::set<AxisRef> partial;
  Reduction reduction = Reduction::kSum;
};

Lists lists_of(const TensorLayout& layout, const std::vector<AxisRef>& pieces) {
  const auto split = [&](const std::vector<AxisRef>& axes) {
    std::vector<AxisRef> result;
    for (const AxisRef& axis : axes) {
      for (const AxisRef& piece : pieces) {
        if (piece.axis == axis.axis && piece.before >= axis.before && piece.before < axis.before * axis.size) {
          result.push_back(piece);
        }
      }
    }
    return result;
  };
  Lists lists;
  for (const DimensionLayout& dimension : layout.dimensions) lists.dimensions.push_back(split(dimension.parts[0].axes));
  for (const AxisRef& piece : split(layout.partial)) lists.partial.insert(piece);
  lists.reduction = layout.reduction;
  return lists;
}

/// Shardy's order on meshes of twos: slice what is missing, permute so that each dimension begins as it should end,
/// exchange what is in the wrong dimension, gather the rest. Collectives that differ only in their axes are merged.
ShardyOrder order_of(const Lists& from, const Lists& to, const CollectiveCosts& costs, Bytes tensor_bytes,
                     const std::vector<AxisRef>& pieces) {
  std::vector<std::vector<AxisRef>> now = from.dimensions;
  const auto shards = [&] {
    std::int64_t product = 1;
    for (const auto& list : now) product *= num_pieces(list);
    return product;
  };
  const auto cost = [&](CollectiveKind kind, std::vector<AxisRef> axes, Bytes bytes) {
    std::sort(axes.begin(), axes.end());
    return costs.time(kind, joined(axes), bytes);
  };
  std::set<AxisRef> used;
  for (const auto& list : now) used.insert(list.begin(), list.end());
  ShardyOrder order;
  order.least_shards = shards();
  for (std::size_t d = 0; d < now.size(); ++d) {
    std::vector<AxisRef> free;
    for (const AxisRef& piece : to.dimensions[d]) {
      if (!used.contains(piece)) free.push_back(piece);
    }
    for (const AxisRef& piece : pieces) {
      if (!used.contains(piece) && std::find(free.begin(), free.end(), piece) == free.end()) free.push_back(piece);
    }
    for (const AxisRef& piece : free) {
      if (now[d].size() >= to.dimensions[d].size()) break;
      now[d].push_back(piece);
      used.insert(piece);
    }
  }
  // The target of the permute: heads as in the end, then what is to be gathered, then what is to be exchanged.
  std::vector<std::vector<AxisRef>> wanted(now.size());
  std::vector<std::pair<std::size_t, AxisRef>> missing;  // by dimension, in order
  std::set<AxisRef> final_pieces;
  for (std::size_t d = 0; d < now.size(); ++d) {
    final_pieces.insert(to.dimensions[d].begin(), to.dimensions[d].end());
    for (std::size_t i = 0; i < to.dimensions[d].size(); ++i) {
      if (i < now[d].size()) {
        wanted[d].push_back(to.dimensions[d][i]);
      } else {
        missing.emplace_back(d, to.dimensions[d][i]);
      }
    }
  }
  std::vector<AxisRef> rest;  // to be gathered
  for (const AxisRef& piece : pieces) {
    if (used.contains(piece) && !final_pieces.contains(piece)) rest.push_back(piece);
  }
  std::size_t surplus = 0;
  for (std::size_t d = 0; d < now.size(); ++d) surplus += now[d].size() - wanted[d].size();
  for (const AxisRef& piece : pieces) {
    // A piece that the target needs, but that a slice has replaced by another, waits unused; then others are gathered.
    if (rest.size() + missing.size() >= surplus) break;
    if (!final_pieces.contains(piece) && std::find(rest.begin(), rest.end(), piece) == rest.end())
      rest.push_back(piece);
  }
  std::vector<std::vector<std::pair<std::size_t, AxisRef>>> moves(now.size());
  for (std::size_t d = 0; d < now.size(); ++d) {
    while (wanted[d].size() < now[d].size() && !rest.empty() &&
           (now[d].size() - wanted[d].size() > missing.size() || missing.empty())) {
      wanted[d].push_back(rest.back());
      rest.pop_back();
    }
    std::vector<std::pair<std::size_t, AxisRef>> taken;
    while (wanted[d].size() + taken.size() < now[d].size() && !missing.empty()) {
      taken.push_back(missing.back());  // the last of a dimension is appended last
      missing.pop_back();
    }
    std::reverse(taken.begin(), taken.end());
    for (const auto& move : taken) wanted[d].push_back(move.second);
    moves[d] = taken;
    while (wanted[d].size() < now[d].size() && !rest.empty()) {
      wanted[d].insert(wanted[d].end() - static_cast<std::ptrdiff_t>(taken.size()), rest.back());
      rest.pop_back();
    }
  }
  if (wanted != now) {
    Lists a{now, {}, {}};
    Lists b{wanted, {}, {}};
    std::vector<AxisRef> moved;
    const auto place = [](const Lists& lists, const AxisRef& piece) {
      for (std::size_t d = 0; d < lists.dimensions.size(); ++d) {
        for (std::size_t i = 0; i < lists.dimensions[d].size(); ++i) {
          if (lists.dimensions[d][i] == piece) return std::pair<std::size_t, std::size_t>(d, i);
        }
      }
      return std::pair<std::size_t, std::size_t>(99, 0);
    };
    for (const AxisRef& piece : pieces) {
      if (place(a, piece) != place(b, piece)) moved.push_back(piece);
    }
    order.time += cost(CollectiveKind::kCollectivePermute, moved, tensor_bytes / shards() * num_pieces(moved));
    now = wanted;
  }
  // Runs that move from one dimension to another are one all_to_all if they are appended in order.
  for (std::size_t d = 0; d < now.size(); ++d) {
    while (!moves[d].empty()) {
      const std::size_t target = moves[d].back().first;
      std::vector<AxisRef> axes;
      while (!moves[d].empty() && moves[d].back().first == target) {
        axes.insert(axes.begin(), moves[d].back().second);
        moves[d].pop_back();
      }
      order.time += cost(CollectiveKind::kAllToAll, axes, tensor_bytes / shards() * num_pieces(axes));
    }
  }
  for (std::size_t d = 0; d < now.size(); ++d) {
    std::vector<AxisRef> gathered;
    for (const AxisRef& piece : wanted[d]) {
      if (!final_pieces.contains(piece)) gathered.push_back(piece);
    }
    if (gathered.empty()) continue;
    const std::int64_t after = shards() / num_pieces(gathered);
    for (const AxisRef& piece : gathered) now[d].erase(std::find(now[d].begin(), now[d].end(), piece));
    order.time += cost(CollectiveKind::kAllGather, gathered, tensor_bytes / after);
    order.least_shards = std::min(order.least_shards, after);
  }
  return order;
}

}  // namespace

ShardyOrder shardy_order(const TensorLayout& from, const TensorLayout& to, const std::vector<AxisRef>& twos,
                         Bytes tensor_bytes, const CollectiveCosts& costs) {
  return order_of(lists_of(from, twos), lists_of(to, twos), costs, tensor_bytes, twos);
}

void Wins::add(Picoseconds best, Picoseconds other) {
  ++pairs;
  if (best == other) return;
  ++wins;
  if (best == 0) {
    ++free;
    return;
  }
  const double ratio = static_cast<double>(other) / static_cast<double>(best);
  sum_of_ratios += ratio;
  largest_ratio = std::max(largest_ratio, ratio);
}

void Wins::add(const Wins& others) {
  pairs += others.pairs;
  wins += others.wins;
  sum_of_ratios += others.sum_of_ratios;
  largest_ratio = std::max(largest_ratio, others.largest_ratio);
  free += others.free;
}

std::string Wins::text() const {
  return fmt::format("{} of {} pairs, there {:.2f} times as fast on average, at most {:.1f} times{}", wins, pairs,
                     wins == free ? 1.0 : sum_of_ratios / static_cast<double>(wins - free), largest_ratio,
                     free == 0 ? "" : fmt::format("; {} of them at no cost", free));
}

}  // namespace shardplan
