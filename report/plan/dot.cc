#include "report/plan/dot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "graph/folded_names.h"
#include "program/instruction_facts.h"
#include "report/metrics/plan_metrics.h"

namespace shardplan {
namespace {

/// A quoted string of Graphviz's language; "\n" in it breaks the line.
std::string dot_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result + '"';
}

struct DotNode {
  std::string name, type, layout;
  std::size_t copies = 0;
  bool has_other_layouts = false;  // of some copies
};

class DotWriter {
 public:
  explicit DotWriter(const Plan& plan) : plan_(plan), graph_(*plan.graph) {}

  std::string run() {
    collect_nodes();
    collect_moves();
    collect_edges();
    std::string text = fmt::format(
        "digraph {} {{\n  rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"Helvetica\", fontsize=11];\n"
        "  edge [fontname=\"Helvetica\", fontsize=9];\n",
        dot_string(graph_.name()));
    for (const DotNode& node : nodes_) {
      std::string label = node.name + '\n' + node.type;
      if (node.copies > 1) label += fmt::format(", {} x", node.copies);
      if (!node.layout.empty()) label += '\n' + node.layout + (node.has_other_layouts ? ", others otherwise" : "");
      text += fmt::format("  {} [label={}];\n", dot_string(node.name), dot_string(label));
    }
    for (const auto& ends : edges_) {
      text += fmt::format("  {} -> {}", dot_string(nodes_[ends.first].name), dot_string(nodes_[ends.second].name));
      const auto moved = moves_.find({nodes_[ends.first].name, nodes_[ends.second].name});
      if (moved != moves_.end()) {
        text += fmt::format(" [label={}, penwidth=2]", dot_string(fmt::format("{}", fmt::join(moved->second, "\n"))));
      }
      text += ";\n";
    }
    return text + "}\n";
  }

 private:
  void collect_nodes() {
    for (const OperatorId id : graph_.operators().ids()) {
      const GraphOperator& op = graph_.operators()[id];
      if (op.pass != Pass::kForward) continue;
      const std::string folded = folded_name(op.name);
      const auto [found, is_new] = position_.try_emplace(folded, nodes_.size());
      if (is_new) nodes_.push_back({folded, graph_.operation(id).type->name, "", 0, false});
      DotNode& node = nodes_[found->second];
      ++node.copies;
      if (op.results.empty()) continue;
      const std::string layout =
          to_string(result_layout(graph_.operation(id), plan_.strategies[id], plan_.mesh, 0), plan_.mesh);
      if (node.layout.empty()) node.layout = layout;
      node.has_other_layouts = node.has_other_layouts || node.layout != layout;
    }
  }

  /// Collects the collectives between each pair of producer and consumer, each once.
  void collect_moves() {
    for (const Instruction& instruction : plan_.program.instructions) {
      if (instruction.pass != Pass::kForward || instruction.kind != InstructionKind::kCollective) continue;
      if (!is_communication(instruction)) continue;
      const std::string producer = folded_name(instruction.origin->producer);
      const std::string consumer = folded_name(instruction.origin->consumer);
      const std::string what =
          fmt::format("{} {}", to_string(instruction.step->kind), plan_.mesh.to_string(instruction.step->axes));
      std::vector<std::string>& list = moves_[{producer, consumer}];
      if (std::find(list.begin(), list.end(), what) == list.end()) list.push_back(what);
    }
  }

  void collect_edges() {
    for (const OperatorId id : graph_.operators().ids()) {
      const GraphOperator& op = graph_.operators()[id];
      if (op.pass != Pass::kForward) continue;
      for (const TensorId operand : op.operands) {
        const auto producer = graph_.tensor(operand).producer;
        if (!producer || graph_.operators()[*producer].pass != Pass::kForward) continue;
        const std::string from = folded_name(graph_.operators()[*producer].name), to = folded_name(op.name);
        edges_.emplace(position_.at(from), position_.at(to));
        // A value delivered to several readers has no consumer of its own, and neither has a completed result.
        const auto shared = moves_.find({from, ""});
        if (shared == moves_.end()) continue;
        std::vector<std::string>& list = moves_[{from, to}];
        for (const std::string& what : shared->second) {
          if (std::find(list.begin(), list.end(), what) == list.end()) list.push_back(what);
        }
      }
    }
  }

  const Plan& plan_;
  const OperatorGraph& graph_;
  std::vector<DotNode> nodes_;
  std::map<std::string, std::size_t> position_;  // in `nodes_`, by folded name
  std::set<std::pair<std::size_t, std::size_t>> edges_;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> moves_;
};

}  // namespace

std::string dot_graph(const Plan& plan) { return DotWriter(plan).run(); }

}  // namespace shardplan
