#include "layouts/redistribution/search/bounded_rows.h"

namespace shardplan {
namespace {

constexpr std::size_t kRowsOfAll = 16;                     // all rows together take as long as this share one by one
constexpr std::size_t kMostTogether = 2048;                // states whose rows are computed together: 32 MiB
constexpr std::size_t kMostSingle = std::size_t{1} << 21;  // times of other rows to keep: 16 MiB

}  // namespace

void BoundedRows::expect(const BoundedTimes& graph, std::span<const Picoseconds> times, LargestOnWay largest,
                         std::size_t more) {
  const std::size_t count = graph.num_states();
  if (!all_.empty() || more == 0) return;
  if ((single_.size() + more) * kRowsOfAll >= count && count <= kMostTogether) {
    all_ = graph.all(times, largest);
    single_.clear();
  } else if (single_.size() * count > kMostSingle) {
    single_.clear();
  }
}

std::span<const Picoseconds> BoundedRows::known_row(BoundedTimes& graph, std::span<const Picoseconds> times,
                                                    LargestOnWay largest, std::uint32_t source) {
  const std::size_t count = graph.num_states();
  if (!all_.empty()) return std::span(all_).subspan(graph.place(source) * count, count);
  const auto [known, is_new] = single_.try_emplace(source);
  if (is_new) {
    const std::vector<Picoseconds> row = graph.row(source, times, largest);
    known->second.resize(count);
    for (std::uint32_t state = 0; state < count; ++state) known->second[graph.place(state)] = row[state];
  }
  return known->second;
}

std::vector<std::span<const Picoseconds>> BoundedRows::rows(BoundedTimes& graph, std::span<const Picoseconds> times,
                                                            LargestOnWay largest,
                                                            const std::vector<std::uint32_t>& sources) {
  expect(graph, times, largest, sources.size());
  std::vector<std::span<const Picoseconds>> result;
  for (const std::uint32_t source : sources) result.push_back(known_row(graph, times, largest, source));
  return result;
}

void BoundedRows::clear() {
  all_.clear();
  single_.clear();
}

}  // namespace shardplan
