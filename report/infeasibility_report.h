#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// Why no plan fits, and what would. Filled by `analyse_infeasibility` (report/infeasibility_analysis.h); `smallest` is the plan of least memory
/// that was found.
struct Infeasibility {
  const Plan* smallest = nullptr;
  bool proven = false;  // no plan on this mesh fits
  Bytes least = 0;      // no plan on this mesh needs less; 0: not known

  /// A change that makes it fit: "training: {micro_batches: 2}", "21.4 GiB, step about +1 %".
  struct Remedy {
    std::string change;
    std::string effect;
  };
  std::vector<Remedy> remedies;
  /// What the user decided that costs memory, each with what it costs: "--set wte.embedding_table=[{}, {}]", "0.2 GiB;
  /// without it 42.0, too much as well".
  std::vector<Remedy> in_the_way;
};

/// The block under which what an operator makes is counted: two levels inside a repeat ("layers.*.attn"), else the
/// outermost.
std::string holder_block(const std::string& name);

/// What `shardplan plan` prints with exit code 4: how much is too much, what is alive at the peak by block, what would
/// fit, what is in the way.
std::string infeasibility_report(const Infeasibility& answer, bool colour = false);
std::string infeasibility_json(const Infeasibility& answer);

}  // namespace shardplan
