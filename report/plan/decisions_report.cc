#include "report/plan/decisions_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/json_text.h"
#include "graph/folded_names.h"
#include "program/instruction_facts.h"
#include "program/timeline.h"
#include "report/metrics/step_shares.h"
#include "report/text/strategy_text.h"
#include "report/text/text_table.h"

namespace shardplan {
namespace {

constexpr std::size_t kMostAlternativesEach = 3;

std::string share_text(const Decision& decision, Picoseconds total) {
  const double share = static_cast<double>(decision.time()) / static_cast<double>(std::max<Picoseconds>(total, 1));
  return fmt::format("{:.1f} %", 100 * share);
}

}  // namespace

std::vector<Decision> costliest_decisions(const Plan& plan, std::size_t most) {
  const OperatorGraph& graph = *plan.graph;
  std::vector<Decision> decisions;
  std::map<std::string, std::size_t> position;
  IdVector<OperatorId, std::size_t> decision_of;
  for (const OperatorId op : graph.operators().ids()) {
    const std::string name = folded_name(graph.operators()[op].name);
    const auto [found, is_new] = position.try_emplace(name, decisions.size());
    if (is_new) decisions.push_back({op, name, 0, 0, 0});
    ++decisions[found->second].copies;
    decision_of.push_back(found->second);
  }
  for (const Instruction& instruction : plan.program.instructions) {
    const std::optional<OperatorId> op = spender(plan, instruction);
    if (!op) continue;
    Decision& decision = decisions[decision_of[*op]];
    (is_communication(instruction) ? decision.communication : decision.computation) += instruction.time_of_step();
  }
  std::stable_sort(decisions.begin(), decisions.end(),
                   [](const Decision& a, const Decision& b) { return a.time() > b.time(); });
  if (decisions.size() > most) decisions.erase(decisions.begin() + static_cast<std::ptrdiff_t>(most), decisions.end());
  return decisions;
}

std::vector<ExplainedDecision> explain_costliest(const ModelPlanner& planner, const Plan& plan, std::size_t most,
                                                 std::stop_token stop,
                                                 const std::function<void(const std::string&)>& progress) {
  std::vector<ExplainedDecision> explained;
  for (const Decision& decision : costliest_decisions(plan, most)) {
    if (progress) progress(fmt::format("searching the alternatives of {}", decision.name));
    explained.push_back({decision, explain(planner, plan, decision.op, stop)});
  }
  return explained;
}

std::string decisions_report(const Plan& plan, const std::vector<ExplainedDecision>& decisions,
                             const ExplainOptions& options) {
  const bool is_alone = plan.mesh.num_devices() == 1;
  const Timeline sums = timeline(plan.program);  // of all workers
  const Picoseconds total = sums.computation + sums.communication;
  std::string text = fmt::format(
      "{}, level {}: the {} with the largest shares of {} of computation and communication\n", plan.graph->name(),
      number_of(plan.options.level), is_alone ? "operators" : "decisions", format_time(total));
  if (is_alone) {
    text += plan.program.workers > 1 ? "place assigns all operators to workers" : "there is only one device";
    text += ": nothing is decided\n";
  }
  for (const ExplainedDecision& explained : decisions) {
    const Decision& decision = explained.decision;
    const Operation& operation = plan.graph->operation(decision.op);
    const std::string words =
        fmt::format("{}{}  {}: compute {}, communication {}", operation.type->name,
                    decision.copies > 1 ? fmt::format(", {} x", decision.copies) : "", share_text(decision, total),
                    format_time(decision.computation), format_time(decision.communication));
    const bool is_one_line = decision.name.size() + 2 + words.size() <= kTerminalWidth;
    text += fmt::format("\n{}{}{}\n", styled(decision.name, TextStyle::kBold, options.colour),
                        is_one_line ? "  " : "\n  ", words);
    if (is_alone) continue;
    text += fmt::format("  {}, {}\n", strategy_words(operation, plan.strategies[decision.op], plan.mesh),
                        decided_by(plan, decision.op));
    const std::size_t count = explained.explanation.alternatives.size();
    const std::size_t shown = options.all ? count : std::min(count, kMostAlternativesEach);
    text += count == 0 ? fmt::format("  {}\n", no_alternatives(explained.explanation))
                       : alternatives_table(explained.explanation, shown, 4, options.colour);
    if (shown < count) {
      text += fmt::format("    {} more alternative{} more expensive (--all)\n", count - shown,
                          count - shown == 1 ? " is" : "s are");
    }
  }
  return text;
}

std::string decisions_json(const Plan& plan, const std::vector<ExplainedDecision>& decisions) {
  Json list = Json::array();
  for (const ExplainedDecision& explained : decisions) {
    const Decision& decision = explained.decision;
    Json entry;
    entry["name"] = decision.name;
    entry["copies"] = decision.copies;
    entry["computation_seconds"] = to_seconds(decision.computation);
    entry["communication_seconds"] = to_seconds(decision.communication);
    entry["explanation"] = Json::parse(explain_json(explained.explanation));
    list.push_back(std::move(entry));
  }
  Json document;
  document["schema"] = "shardplan.decisions/1";
  document["model"] = plan.graph->name();
  document["seconds"] = to_seconds(plan.time.step());
  document["decisions"] = std::move(list);
  return json_document(document);
}

}  // namespace shardplan
