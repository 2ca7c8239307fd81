#pragma once

#include <string>
#include <vector>

#include "report/plan/compare_report.h"
#include "report/plan/decisions_report.h"

namespace shardplan {

/// One plan of the page, and the alternatives of its costliest decisions.
struct HtmlPlan {
  std::string name;
  const Plan* plan = nullptr;
  std::vector<ExplainedDecision> decisions;  // may be empty
};

/// A self-contained page: style, script and data are inline, so it can be mailed and opened anywhere. It shows the
/// graph with its layouts and redistributions, the timeline, memory and its peak, where each tensor is stored, all
/// plans side by side, tables to sort and search, and an operator's alternatives if they were searched. Without scripts
/// it shows `text` and the operators' table. Equal plans give equal bytes.
///
/// `text` is the terminal report; `rows` are the plans and baselines side by side. Requires at least one plan.
std::string html_report(const std::vector<HtmlPlan>& plans, const std::vector<ComparedPlan>& rows,
                        const std::string& text);

/// report.css and report.js of this folder, embedded when the program is built.
extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace shardplan
