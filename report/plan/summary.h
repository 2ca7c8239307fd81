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

}  // namespace shardplan
