#include "planner/problem/copy_nodes.h"

#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

namespace shardplan {

std::size_t CopyPositions::position(std::size_t of_taker, std::optional<std::size_t> of_source,
                                    bool is_beside_copy) const {
  if (!by_pair.empty()) return by_pair[of_taker * num_sources + *of_source];
  const std::optional<std::uint32_t>& none = wanted[of_taker];
  const bool is_alike = none && (!of_source || none == offered[*of_source]);
  return is_alike && !is_beside_copy ? *none : copied[of_taker];
}

const CopyTables& CopyNodes::between(ListId takers, ListId sources, UsageTableId usage, bool frees) {
  const auto [known, is_new] = known_.try_emplace({takers.value(), sources.value(), usage.value(), frees});
  if (is_new) known->second = make(takers, sources, usage, frees);
  return known->second;
}

CopyTables CopyNodes::make(ListId takers, ListId sources, UsageTableId usage, bool frees) {
  const std::vector<ListedLayout>& wanted = layouts_.entries(takers);
  CopyPositions positions;
  std::vector<Bytes> bytes;
  std::unordered_map<LayoutId, std::uint32_t> without_copy;  // never iterated over
  for (const ListedLayout& entry : layouts_.entries(sources)) {
    const bool is_wanted = std::any_of(wanted.begin(), wanted.end(),
                                       [&](const ListedLayout& taker) { return taker.layout == entry.layout; });
    positions.offered.emplace_back();
    if (!is_wanted || (frees && !entry.shares)) continue;
    const auto next = static_cast<std::uint32_t>(bytes.size());
    const auto [position, is_first] = without_copy.try_emplace(entry.layout, next);
    if (is_first) bytes.push_back(0);
    positions.offered.back() = position->second;
  }
  CopyTables tables;
  tables.usage = usage;
  if (bytes.empty()) return tables;
  positions.first_copy = static_cast<std::uint32_t>(bytes.size());
  for (const ListedLayout& taker : wanted) {
    const auto found = without_copy.find(taker.layout);
    positions.wanted.push_back(found == without_copy.end() ? std::nullopt : std::optional(found->second));
  }
  return finished(std::move(positions), std::move(bytes), problem_.usage_tables[usage].bytes);
}

const CopyTables& CopyNodes::of_taker_alone(UsageTableId usage) {
  const auto [known, is_new] = alone_.try_emplace(usage);
  if (!is_new) return known->second;
  const std::vector<Bytes> of_copies = problem_.usage_tables[usage].bytes;
  CopyPositions positions;
  positions.first_copy = 1;
  positions.wanted.assign(of_copies.size(), 0);
  return known->second = finished(std::move(positions), {0}, of_copies);
}

/// `bytes` are those of the positions without a copy; adds the others and all tables.
CopyTables CopyNodes::finished(CopyPositions positions, std::vector<Bytes> bytes, std::vector<Bytes> of_copies) {
  std::map<Bytes, std::uint32_t> copies;
  for (const Bytes of_copy : of_copies) {
    const auto [position, is_first] = copies.try_emplace(of_copy, static_cast<std::uint32_t>(bytes.size()));
    if (is_first) bytes.push_back(of_copy);
    positions.copied.push_back(position->second);
  }
  positions.size = static_cast<std::uint32_t>(bytes.size());
  CopyTables tables;
  tables.of_taker = matrix(positions.copied.size(), positions.size, [&](std::size_t row, std::uint32_t column) {
    return positions.copied[row] == column || positions.wanted[row] == column;
  });
  if (!positions.offered.empty()) {
    tables.of_source = matrix(positions.offered.size(), positions.size, [&](std::size_t row, std::uint32_t column) {
      return positions.is_copy(column) || positions.offered[row] == column;
    });
  }
  tables.costs = problem_.strategy_tables.push_back({std::vector<Cost>(bytes.size())});
  tables.usage = problem_.usage_tables.push_back({std::move(bytes)});
  tables.positions = std::make_shared<const CopyPositions>(std::move(positions));
  return tables;
}

CopyTables CopyNodes::by_pair(const std::vector<Bytes>& bytes, std::size_t takers, std::size_t sources) {
  struct Group {
    std::span<const Bytes> row;
    std::uint32_t begin = 0, end = 0;  // positions
  };
  std::map<std::vector<Bytes>, std::size_t> known;
  std::vector<Group> groups;
  std::vector<std::size_t> group_of;  // by strategy of the taker
  std::vector<Bytes> by_position;
  CopyPositions positions;
  for (std::size_t taker = 0; taker < takers; ++taker) {
    const std::span<const Bytes> row = std::span(bytes).subspan(taker * sources, sources);
    const auto [group, is_new] = known.try_emplace({row.begin(), row.end()}, groups.size());
    group_of.push_back(group->second);
    if (is_new) {
      const auto begin = static_cast<std::uint32_t>(by_position.size());
      const std::set<Bytes> numbers(row.begin(), row.end());
      by_position.insert(by_position.end(), numbers.begin(), numbers.end());
      groups.push_back({row, begin, static_cast<std::uint32_t>(by_position.size())});
    }
    const Group& own = groups[group_of.back()];
    const auto first = by_position.begin() + own.begin, last = by_position.begin() + own.end;
    for (const Bytes number : row) {
      const auto found = std::lower_bound(first, last, number);
      positions.by_pair.push_back(static_cast<std::uint32_t>(found - by_position.begin()));
    }
  }
  positions.size = static_cast<std::uint32_t>(by_position.size());
  positions.num_sources = sources;
  std::vector<std::size_t> group_at;
  for (std::size_t group = 0; group < groups.size(); ++group) group_at.resize(groups[group].end, group);
  CopyTables tables;
  tables.of_taker = matrix(takers, positions.size,
                           [&](std::size_t row, std::uint32_t column) { return group_at[column] == group_of[row]; });
  tables.of_source = matrix(sources, positions.size, [&](std::size_t row, std::uint32_t column) {
    return groups[group_at[column]].row[row] <= by_position[column];
  });
  tables.costs = problem_.strategy_tables.push_back({std::vector<Cost>(by_position.size())});
  tables.usage = problem_.usage_tables.push_back({std::move(by_position)});
  tables.positions = std::make_shared<const CopyPositions>(std::move(positions));
  return tables;
}

MatrixId CopyNodes::copied_beside(const CopyPositions& other, const CopyPositions& positions) {
  const auto [known, is_new] = beside_.try_emplace({&other, &positions});
  if (is_new) {
    known->second = matrix(other.size, positions.size, [&](std::size_t row, std::uint32_t column) {
      return !other.is_copy(row) || positions.is_copy(column);
    });
  }
  return known->second;
}

/// Zero where allowed.
template <class Allows>
MatrixId CopyNodes::matrix(std::size_t rows, std::uint32_t columns, const Allows& allows) {
  CostMatrix costs{static_cast<std::uint32_t>(rows), columns, {}};
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::uint32_t column = 0; column < columns; ++column) {
      costs.costs.push_back(allows(row, column) ? 0 : kForbidden);
    }
  }
  return problem_.matrices.push_back(std::move(costs));
}

}  // namespace shardplan
