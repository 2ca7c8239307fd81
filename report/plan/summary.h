#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

struct SummaryOptions {
  bool colour = false;
  bool verbose = false;              // also options, seed, assumed numbers of the cluster, statistics of the search
  std::string proof;                 // behind "proven"; empty: "no", and how to prove
  std::string out_folder;            // where files were written; empty: none were
  std::vector<std::string> written;  // their names
  std::string next;                  // a command for the last line; may be empty
};

/// What `shardplan plan` prints of a plan: whether it fits, how fast, how good and how well proven it is in the first
/// lines, then the layouts by block, the time by stage, the costliest collectives and what is alive at the peak. Repeats
/// are folded. Requires a plan that was found.
std::string summary_report(const Plan& plan, const SummaryOptions& options = {});

/// One group of collectives that look alike: a line of the summary.
struct CollectiveGroup {
  std::string what;  // "reduce_scatter  {pcie, hccs}"
  std::string axes;
  std::string from;  // "gradients of layers.*", "norm_f -> head"
  std::size_t count = 0;
  Bytes bytes = 0;        // all together
  Picoseconds time = 0;   // all together
  std::size_t first = 0;  // the first instruction of it
};
/// All collectives that take time, costliest first.
std::vector<CollectiveGroup> costliest_collectives(const Plan& plan);

/// What is alive at the peak, joined by kind and outermost block: {"activations of layers.*", bytes}; largest first.
std::vector<std::pair<std::string, Bytes>> peak_holders(const Plan& plan);

}  // namespace shardplan
