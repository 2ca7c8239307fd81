#include "planner/problem/operand_copies.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace shardplan {

std::size_t CopyPositions::position(std::size_t of_operator, std::size_t of_version) const {
  const std::optional<std::uint32_t>& none = wanted[of_operator];
  return none && none == offered[of_version] ? *none : copied[of_operator];
}

const CopyTables& OperandCopies::between(ListId operands, ListId versions, UsageTableId usage, bool frees) {
  const auto [known, is_new] = known_.try_emplace({operands.value(), versions.value(), usage.value(), frees});
  if (is_new) known->second = make(operands, versions, usage, frees);
  return known->second;
}

CopyTables OperandCopies::make(ListId operands, ListId versions, UsageTableId usage, bool frees) {
  const std::vector<ListedLayout>& wanted = layouts_.entries(operands);
  CopyPositions positions;
  std::vector<Bytes> bytes;
  std::unordered_map<LayoutId, std::uint32_t> without_copy;  // never iterated over
  for (const ListedLayout& entry : layouts_.entries(versions)) {
    const bool is_wanted = std::any_of(wanted.begin(), wanted.end(),
                                       [&](const ListedLayout& operand) { return operand.layout == entry.layout; });
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

  std::map<Bytes, std::uint32_t> copies;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto found = without_copy.find(wanted[i].layout);
    positions.wanted.push_back(found == without_copy.end() ? std::nullopt : std::optional(found->second));
    const Bytes of_copy = problem_.usage_tables[usage].bytes[i];
    const auto [position, is_first] = copies.try_emplace(of_copy, static_cast<std::uint32_t>(bytes.size()));
    if (is_first) bytes.push_back(of_copy);
    positions.copied.push_back(position->second);
  }
  const auto columns = static_cast<std::uint32_t>(bytes.size());
  const auto matrix = [&](std::size_t rows, const auto& allows) {
    CostMatrix costs{static_cast<std::uint32_t>(rows), columns, {}};
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::uint32_t column = 0; column < columns; ++column) {
        costs.costs.push_back(allows(row, column) ? 0 : kForbidden);
      }
    }
    return problem_.matrices.push_back(std::move(costs));
  };
  const std::size_t first_copy = without_copy.size();
  tables.of_operator = matrix(positions.copied.size(), [&](std::size_t row, std::uint32_t column) {
    return positions.copied[row] == column || positions.wanted[row] == column;
  });
  tables.of_version = matrix(positions.offered.size(), [&](std::size_t row, std::uint32_t column) {
    return column >= first_copy || positions.offered[row] == column;
  });
  tables.costs = problem_.strategy_tables.push_back({std::vector<Cost>(bytes.size())});
  tables.usage = problem_.usage_tables.push_back({std::move(bytes)});
  tables.positions = std::make_shared<const CopyPositions>(std::move(positions));
  return tables;
}

}  // namespace shardplan
