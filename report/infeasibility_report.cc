#include "report/infeasibility_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json_text.h"
#include "report/folded_names.h"
#include "report/plan_metrics.h"
#include "report/text_table.h"

namespace shardplan {
namespace {

using Align = TextTable::Align;

constexpr std::size_t kMostRows = 8;

/// What is alive at the peak, joined by block.
struct Holder {
  std::string block;
  std::string what;
  Bytes whole = 0;  // of all tensors uncut
  Bytes local = 0;  // on each device
  std::int64_t least_cut = 0;
  std::int64_t most_cut = 0;
};

std::vector<Holder> holders(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  std::map<std::string, std::size_t> position;
  std::vector<Holder> list;
  for (const MemoryProfile::Alive& alive : plan.memory.alive_at_peak) {
    const ProgramValue& value = plan.program.values[alive.value];
    Holder holder{"buffers", "between the steps of redistributions", 0, 0, 0, 0};
    if (value.tensor) {
      const GraphTensor& tensor = graph.tensor(*value.tensor);
      const bool is_backward = tensor.producer && graph.operators()[*tensor.producer].pass != Pass::kForward;
      if (tensor.kind == TensorKind::kParameter || tensor.kind == TensorKind::kState) {
        holder.block = "parameters";
        holder.what = graph.is_training() ? "weights and optimizer states" : "weights";
      } else if (is_backward) {
        holder.block = "backward";
        holder.what = "gradients";
      } else {
        holder.block = holder_block(tensor.name);
        holder.what = tensor.kind == TensorKind::kInput ? "inputs" : "activations";
      }
    }
    const auto [found, is_new] = position.try_emplace(holder.block + "|" + holder.what, list.size());
    if (is_new) list.push_back(holder);
    Holder& sum = list[found->second];
    std::int64_t cut = 1;
    for (const DimensionLayout& dimension : value.layout.dimensions) cut *= dimension.num_pieces();
    sum.whole += value.type.bytes();
    sum.local += alive.bytes;
    sum.least_cut = is_new ? cut : std::min(sum.least_cut, cut);
    sum.most_cut = std::max(sum.most_cut, cut);
  }
  std::stable_sort(list.begin(), list.end(), [](const Holder& a, const Holder& b) { return a.local > b.local; });
  return list;
}

std::string cut_text(const Holder& holder) {
  if (holder.least_cut == holder.most_cut) return fmt::format("{}", holder.most_cut);
  return fmt::format("{} to {}", holder.least_cut, holder.most_cut);
}

std::string peak_name(const Plan& plan) {
  if (plan.program.instructions.empty()) return "the start";
  const Instruction& at = plan.program.instructions[plan.memory.peak_instruction];
  if (!at.op) return fmt::format("{} of {}", to_string(at.pass), at.origin.producer);
  const GraphOperator& op = plan.graph->operators()[*at.op];
  return fmt::format("{} of {}", to_string(at.pass), op.forward ? plan.graph->operators()[*op.forward].name : op.name);
}

std::string remedy_table(std::string_view title, const std::vector<Infeasibility::Remedy>& remedies) {
  TextTable table({Align::kLeft, Align::kLeft, Align::kLeft});
  for (std::size_t i = 0; i < remedies.size(); ++i) {
    table.add({i == 0 ? fmt::format("{:<12}", title) : "", remedies[i].change, remedies[i].effect});
  }
  return table.to_string(2);
}

}  // namespace

std::string holder_block(const std::string& name) {
  const std::string top = top_block(name);
  std::string block = folded_name(top);
  if (block.find('*') != std::string::npos && name.size() > top.size()) {
    const std::string inner = top_block(name.substr(top.size() + 1));
    if (inner.size() + top.size() + 1 < name.size()) block += "." + folded_name(inner);
  }
  return block;
}

std::string infeasibility_report(const Infeasibility& answer, bool colour) {
  const Plan& plan = *answer.smallest;
  const ColumnUnit unit = bytes_unit(std::max(plan.memory.peak, plan.usable));
  std::string text = fmt::format("{}, {}on {}: {} devices, mesh {}, level {} ({})\n\n", plan.graph->name(),
                                 training_words(*plan.graph), plan.cluster.name, plan.mesh.num_devices(),
                                 plan.mesh.to_string(), number_of(plan.options.level), to_string(plan.options.level));
  text += fmt::format("  {}   the smallest plan {}needs {} of {} {} per device: {} too much\n",
                      styled("does not fit", TextStyle::kRed, colour), answer.proven ? "" : "found ",
                      unit.format(plan.memory.peak), unit.format(plan.usable), unit.name,
                      unit.format(plan.memory.peak - plan.usable));
  if (answer.least > 0) {
    text += fmt::format("                 {}no plan on this mesh needs less than {} {}\n",
                        answer.proven ? "proven: " : "", unit.format(answer.least), unit.name);
  } else if (answer.proven) {
    text += "                 proven: no plan on this mesh fits\n";
  }
  const std::vector<Holder> list = holders(plan);
  const std::size_t shown = std::min(list.size(), kMostRows);
  std::size_t width = 0;
  for (std::size_t i = 0; i < shown; ++i) width = std::max(width, list[i].block.size());
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.add({fmt::format("alive at its peak, {}", peak_name(plan)), fmt::format("  {} whole", unit.name), " per device",
             " cut in"});
  for (std::size_t i = 0; i < shown; ++i) {
    table.add({fmt::format("{:<{}}  {}", list[i].block, width, list[i].what), unit.format(list[i].whole),
               unit.format(list[i].local), cut_text(list[i])});
  }
  text += '\n' + table.to_string(2);
  if (list.size() > kMostRows) {
    Bytes rest = 0;
    for (std::size_t i = kMostRows; i < list.size(); ++i) rest += list[i].local;
    text += fmt::format("  {} more hold {} {} per device\n", list.size() - kMostRows, unit.format(rest), unit.name);
  }
  if (!answer.remedies.empty()) text += '\n' + remedy_table("would fit", answer.remedies);
  if (!answer.in_the_way.empty()) {
    if (answer.remedies.empty()) text += '\n';
    text += remedy_table("in the way", answer.in_the_way);
  }
  return text;
}

std::string infeasibility_json(const Infeasibility& answer) {
  const Plan& plan = *answer.smallest;
  const auto remedies = [](const std::vector<Infeasibility::Remedy>& list) {
    Json json = Json::array();
    for (const Infeasibility::Remedy& item : list) json.push_back({{"change", item.change}, {"effect", item.effect}});
    return json;
  };
  Json alive = Json::array();
  for (const Holder& holder : holders(plan)) {
    alive.push_back({{"block", holder.block},
                     {"what", holder.what},
                     {"whole_bytes", holder.whole},
                     {"bytes", holder.local},
                     {"cut_in", {holder.least_cut, holder.most_cut}}});
  }
  Json document;
  document["schema"] = "shardplan.does_not_fit/1";
  document["model"] = plan.graph->name();
  document["cluster"] = plan.cluster.name;
  document["status"] = to_string(answer.proven ? PlanStatus::kInfeasible : PlanStatus::kNoPlanFound);
  document["peak_bytes"] = plan.memory.peak;
  document["usable_bytes"] = plan.usable;
  document["least_bytes"] = answer.least == 0 ? Json(nullptr) : Json(answer.least);
  document["alive"] = alive;
  document["would_fit"] = remedies(answer.remedies);
  document["in_the_way"] = remedies(answer.in_the_way);
  return json_document(document);
}

}  // namespace shardplan
