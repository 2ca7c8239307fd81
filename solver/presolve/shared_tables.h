#pragma once

#include <cstdint>
#include <vector>

#include "solver/interned.h"
#include "solver/strategy_problem.h"

namespace shardplan {

/// The lists and tables of a problem that is being reduced; equal ones are one object.
using Positions = Interned<std::vector<std::uint32_t>>;
using Numbers = Interned<std::vector<std::int64_t>>;
using TableRef = Interned<CostMatrix>;

inline std::uint64_t content_hash(const CostMatrix& table) {
  return mix(content_hash(table.costs.items()) + table.rows * std::uint64_t{0x10001});
}

struct SharedTables {
  InternPool<CostMatrix> tables;
  InternPool<std::vector<std::int64_t>> numbers;
  InternPool<std::vector<std::uint32_t>> positions;
};

}  // namespace shardplan
