#pragma once

#include <cstddef>
#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

struct TableOrder;  // program/instruction_table.h

/// A collective (or bucket) right behind the loop of micro-batches that is issued in the loop's last run.
struct LastRunCollective {
  std::size_t begin = 0;  // instructions
  std::size_t end = 0;
  std::size_t after = 0;  // the first instruction of the loop that comes behind it
};

/// Those of a program with `reduces_in_last_run`: the communication that stands right behind the loop, each piece issued
/// once the loop has made its inputs and what stands before it is issued. Empty for other programs.
std::vector<LastRunCollective> issued_in_last_run(const ParallelProgram& program);
std::vector<LastRunCollective> issued_in_last_run(const TableOrder& order);

}  // namespace shardplan
