#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// A line of the summary: whether the plan is proven, and by what.
struct ProofVerdict {
  std::string word = "no";  // equal, no, NO
  std::string words = "add --validate";
};

struct SummaryOptions {
  bool colour = false;
  bool verbose = false;              // also options, seed, assumed numbers of the cluster, search statistics
  ProofVerdict proof;                // no, and how to prove, if there was no proof
  std::string out_folder;            // where files were written; empty if none were
  std::vector<std::string> written;  // names of those files
  std::string next;                  // command for the last line; may be empty
};

/// The output of `shardplan plan`: first whether the plan fits, how fast, how good and how well proven it is, then the
/// layouts by block, the time by stage, the costliest collectives and the tensors alive at the peak. Repeats are
/// folded. Requires a plan that was found.
std::string summary_report(const Plan& plan, const SummaryOptions& options = {});

}  // namespace shardplan
