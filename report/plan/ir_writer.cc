#include "report/plan/ir_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/folded_names.h"
#include "report/metrics/plan_metrics.h"
#include "report/text/ir_text.h"
#include "report/text/strategy_text.h"

namespace shardplan {
namespace {

std::vector<const TensorLayout*> pointers(const std::vector<TensorLayout>& layouts) {
  std::vector<const TensorLayout*> result;
  for (const TensorLayout& layout : layouts) result.push_back(&layout);
  return result;
}

}  // namespace

std::string parameter_name(std::size_t number, const GraphTensor& tensor) {
  return fmt::format("%para{}_{}", number, tensor.name);
}

IrWriter::IrWriter(const Plan& plan, DeviceMesh mesh) : plan_(plan), graph_(*plan.graph), mesh_(std::move(mesh)) {
  for (const TensorKind kind : {TensorKind::kInput, TensorKind::kParameter, TensorKind::kState}) {
    for (const TensorId id : graph_.tensors().ids()) {
      if (graph_.tensor(id).kind == kind) head_.push_back(id);
    }
  }
}

std::string IrWriter::title(std::string_view file) const {
  return fmt::format("# shardplan {}, {}, {}, level {}, search {}, seed {}\n", SHARDPLAN_VERSION, file, graph_.name(),
                     number_of(plan_.options.level), plan_.options.search, plan_.options.seed);
}

std::string IrWriter::mesh_text() const {
  return mesh_.axes().empty() ? "" : fmt::format(", mesh {}", mesh_.to_string());
}

std::size_t IrWriter::num_parameters() const {
  return static_cast<std::size_t>(std::count_if(graph_.tensors().begin(), graph_.tensors().end(),
                                                [](const auto& t) { return t.kind == TensorKind::kParameter; }));
}

std::size_t IrWriter::emit(const IrLine& line) {
  text_ += fmt::format("%{}({}) = {}({}) {{instance name: {}}} primitive_attrs: {{{}}}", next_, line.name, line.op,
                       fmt::join(line.inputs, ", "), line.instance, line.attributes);
  if (!line.strategy.empty()) text_ += fmt::format(" {}", line.strategy);
  text_ += fmt::format("\n    : ({}) -> ({})\n", fmt::join(line.in_types, ", "), fmt::join(line.out_types, ", "));
  for (const std::string& remark : line.remarks) text_ += fmt::format("    # {}\n", remark);
  return next_++;
}

std::vector<TensorLayout> IrWriter::operand_layouts(const Operation& operation, const Strategy& strategy) const {
  std::vector<TensorLayout> layouts;
  for (std::size_t i = 0; i < operation.operands.size(); ++i) {
    layouts.push_back(operand_layout(operation, strategy, mesh_, i));
  }
  return layouts;
}

std::vector<TensorLayout> IrWriter::result_layouts(const Operation& operation, const Strategy& strategy) const {
  std::vector<TensorLayout> layouts;
  for (std::size_t i = 0; i < operation.results.size(); ++i) {
    layouts.push_back(result_layout(operation, strategy, mesh_, i));
  }
  return layouts;
}

IrLine IrWriter::operator_line(OperatorId id, const Operation& operation, const Strategy& strategy,
                               const std::string& name) const {
  const GraphOperator& op = graph_.operators()[id];
  IrLine line;
  line.name = name;
  line.op = operation.type->name;
  line.instance = last_part(name);
  std::vector<std::string> attributes;
  std::vector<std::string> inputs = operation.type->signature.operands;
  if (operation.type->signature.num_optional > 0) inputs.resize(operation.operands.size());
  attributes.push_back(names_text("input_names", inputs));
  // MindSpore calls a single result "output", whatever its name in the catalogue.
  attributes.push_back(names_text("output_names", operation.results.size() == 1 ? std::vector<std::string>{"output"}
                                                                                : operation.type->signature.results));
  for (const auto& [key, value] : operation.attributes) {
    if (is_given(value)) attributes.push_back(fmt::format("{}: {}", key, to_string(value)));
  }
  const auto tuples = input_tuples(operation, strategy, mesh_);
  const std::string layouts = matrices_text(pointers(operand_layouts(operation, strategy)), mesh_);
  const auto has_layout = [](const std::vector<StrategyEntry>& entries) {
    return std::any_of(entries.begin(), entries.end(),
                       [](const StrategyEntry& entry) { return entry.kind == StrategyEntry::Kind::kLayout; });
  };
  if (has_layout(op.strategy->in)) {
    attributes.push_back("in_layout: " + layouts);
  } else if (!op.strategy->in.empty()) {
    attributes.push_back("in_strategy: " + entries_text(op.strategy->in));
  } else if (tuples) {
    attributes.push_back("gen_strategy: " + tuple_text(*tuples));
  }
  std::string out;
  if (has_layout(op.strategy->out)) {
    out = "out_layout: " + matrices_text(pointers(result_layouts(operation, strategy)), mesh_);
  } else if (!op.strategy->out.empty()) {
    out = "out_strategy: " + entries_text(op.strategy->out);
  }
  if (!out.empty()) attributes.push_back(out);
  line.attributes = fmt::format("{}", fmt::join(attributes, ", "));
  line.strategy = fmt::format("{{{}{}}}", tuples ? "in_strategy: " + tuple_text(*tuples) : "in_layout: " + layouts,
                              out.empty() ? "" : ", " + out);
  return line;
}

std::string IrWriter::scope_remark(const GraphOperator& op) const {
  std::string text = fmt::format("scope: ({}Default{}{})", op.pass == Pass::kBackward ? "Gradients/" : "",
                                 op.scope.empty() ? "" : "/", op.scope);
  if (op.place.line > 0) text += fmt::format(", In file {}:{}", op.place.file, op.place.line);
  return text;
}

std::string IrWriter::names_text(std::string_view key, const std::vector<std::string>& names) {
  std::vector<std::string> plain;
  for (const std::string& name : names) plain.push_back(name.ends_with("...") ? name.substr(0, name.size() - 3) : name);
  return fmt::format("{}: [{}]", key, fmt::join(plain, ", "));
}

}  // namespace shardplan
