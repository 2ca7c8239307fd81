#pragma once

#include <string>
#include <vector>

#include "base/json_text.h"
#include "report/plan/decisions_report.h"

namespace shardplan {

/// A plan as the HTML page's script reads it. Copies in the layers of a repeat are folded, so the size depends on the
/// model's text, not its depth (except for the timeline, which has a few numbers per instruction). Include in .cc files
/// only.
///
///   name, level, search, figures       what the head of the page says
///   ops    {n: name, t: type, c: copies, p: pass, b: block, s: strategy, by: who decided, in, out: [tensor, shape,
///           layout, local shape], ps: compute, cm: communication, f: its forward operator, at: place, g: grid,
///           alt: [strategy, change of step, change of peak, why]}, in program order
///   edges  [from, to, tensor] between forward operators, as positions in `ops`
///   comms  {k: collective, a: axes, w: from where to where, n: times, b: bytes, t: picoseconds, to: position in `ops`}
///   lanes, timeline [lane, start, length, position in ops, or -1 - position in comms, 1 if the critical path runs
///           through it] in nanoseconds; memory [time, bytes]
///   loop   [end of the first run of micro-batches, end of the last run] or null;  loops: the same for each worker's lane
///   path   [class, forward, backward, update, slowed] of the critical path
///   alive  [tensor, kind, layout, bytes, values] at the peak;  stored [tensor, kind, shape, layout, bytes, whole, copies]
Json page_data(const Plan& plan, const std::string& name, const std::vector<ExplainedDecision>& decisions);

}  // namespace shardplan
