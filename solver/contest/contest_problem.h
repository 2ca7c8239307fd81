#pragma once

#include <optional>
#include <string>

#include "solver/limits.h"
#include "solver/strategy_problem.h"

namespace shardplan {

/// Reads a problem in the JSON form of the ASPLOS/EuroSys 2025 contest on intra-operator parallelism (google/iopddl):
///
///   {"problem": {"name": "example",
///                "nodes": {"intervals": [[30, 70], ...],
///                          "costs": [[15], [55, 65], ...],
///                          "usages": [[10], [25, 25], ...]},
///                "edges": {"nodes": [[0, 1], ...],
///                          "costs": [[30, 40], ...]},           row-major, node 0's strategy is the row
///                "usage_limit": 50}}
///
/// Keys may come in any order, unknown ones are skipped. Costs of at least kForbidden become kForbidden; node costs are taken
/// as computation, edge costs as communication. Times are renumbered: one time for each stretch between two ends of
/// intervals. The format allows edges of any number of nodes: the costs of an edge of one node are added to those of
/// its node, and three or more nodes are an error. Without a "usage_limit" there is no limit, and no usage is kept.
///
/// The file is read in pieces as it is parsed and equal lists are held once, so memory is a small multiple of the
/// numbers that differ. Throws InputError with the place for anything malformed, inconsistent, negative or out of 64
/// bits, also if every choice costs more than 64 bits hold.
StrategyProblem read_contest_problem(const std::string& path);
/// Nothing if the deadline is over before the end of the file is reached.
std::optional<StrategyProblem> read_contest_problem(const std::string& path, const Deadline& deadline);

/// The same of a text in memory; `name` stands for the file in messages.
StrategyProblem parse_contest_problem(const std::string& text, const std::string& name);
std::optional<StrategyProblem> parse_contest_problem(const std::string& text, const std::string& name,
                                                     const Deadline& deadline);

}  // namespace shardplan
