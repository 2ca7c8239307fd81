#pragma once

#include <string>
#include <vector>

#include "report/plan/compare_report.h"
#include "report/plan/decisions_report.h"

namespace shardplan {

/// A plan of the page, and what its costliest decisions could have been.
struct HtmlPlan {
  std::string name;
  const Plan* plan = nullptr;
  std::vector<ExplainedDecision> decisions;  // may be empty
};

/// One page without requests: style, script and data are in it, so that it can be mailed and opened anywhere. It shows
/// the graph with its layouts and redistributions, the timeline, memory and its peak, where each tensor is stored, all
/// plans side by side, and tables to sort and search; an operator's alternatives where they were searched. Without script
/// it shows `text` and the operators' table. Same plans, same bytes.
///
/// `text` is what the terminal shows; `rows` are the plans and baselines side by side. Requires one plan at least.
std::string html_report(const std::vector<HtmlPlan>& plans, const std::vector<ComparedPlan>& rows,
                        const std::string& text);

/// report.css and report.js of this folder, embedded when the program is built.
extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace shardplan
