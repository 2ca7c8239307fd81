#pragma once

#include <cstddef>
#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

struct TableOrder;  // program/instruction_table.h

/// A collective (or bucket) right after the micro-batch loop that is issued during the loop's last iteration.
struct LastRunCollective {
  std::size_t begin = 0;  // instructions
  std::size_t end = 0;
  std::size_t after = 0;  // the first instruction of the loop that comes after it
};

/// These collectives, for a program with `reduces_in_last_run`: each is issued once the loop has produced its inputs
/// and everything before it is issued. Empty for other programs.
std::vector<LastRunCollective> issued_in_last_run(const ParallelProgram& program);
std::vector<LastRunCollective> issued_in_last_run(const TableOrder& order);

}  // namespace shardplan
