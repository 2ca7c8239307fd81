// Figures and remedies come from the analysis; this file sums what is alive at the peak by block and kind, and fits both
// to the page.

#include "report/plan/infeasibility_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json_text.h"
#include "graph/folded_names.h"
#include "graph/stored_updates.h"
#include "report/metrics/plan_metrics.h"
#include "report/text/text_table.h"

namespace shardplan {
namespace {

using Align = TextTable::Align;

constexpr std::size_t kMostRows = 8;

/// Tensors alive at the peak, joined by block.
struct Holder {
  std::string block;
  std::string what;
  Bytes whole = 0;  // of all tensors unsharded
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
    Holder holder{"buffers", "between steps of redistributions", 0, 0, 0, 0};
    if (value.tensor) {
      const GraphTensor& tensor = graph.tensor(*value.tensor);
      const bool is_backward = tensor.producer && graph.operators()[*tensor.producer].pass != Pass::kForward;
      if (tensor.kind == TensorKind::kParameter && is_cache(graph, *value.tensor)) {
        holder.block = "stored";
        holder.what = "caches";
      } else if (tensor.kind == TensorKind::kParameter || tensor.kind == TensorKind::kState) {
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
    for (const DimensionLayout& dimension : value.layout->dimensions) cut *= dimension.num_pieces();
    sum.whole += value.type.bytes();
    sum.local += alive.bytes;
    sum.least_cut = is_new ? cut : std::min(sum.least_cut, cut);
    sum.most_cut = std::max(sum.most_cut, cut);
  }
  std::stable_sort(list.begin(), list.end(), [](const Holder& a, const Holder& b) { return a.local > b.local; });
  return list;
}

std::string shards_text(const Holder& holder) {
  if (holder.least_cut == holder.most_cut) return fmt::format("{}", holder.most_cut);
  return fmt::format("{} to {}", holder.least_cut, holder.most_cut);
}

std::string peak_name(const Plan& plan) {
  if (plan.program.instructions.empty()) return "the start";
  const Instruction& at = plan.program.instructions[plan.memory.peak_instruction];
  if (!at.op) return fmt::format("{} of {}", to_string(at.pass), at.origin->producer);
  const GraphOperator& op = plan.graph->operators()[*at.op];
  return fmt::format("{} of {}", to_string(at.pass), op.forward ? plan.graph->operators()[*op.forward].name : op.name);
}

/// A change or a decision in the notation of the model file or the command line, and its effect.
struct TableLine {
  std::string change;
  std::string effect;
  std::string short_change = {};  // in tables, if it is not empty
};

/// Settings of `training`, "training: {recompute: [layers.*], micro_batches: 2}".
std::string training_settings(const Infeasibility::Remedy& remedy, std::string_view recomputed) {
  std::vector<std::string> settings;
  if (!remedy.recompute.empty()) settings.push_back(fmt::format("recompute: [{}]", recomputed));
  if (remedy.micro_batches > 0) settings.push_back(fmt::format("micro_batches: {}", remedy.micro_batches));
  return fmt::format("training: {{{}}}", fmt::join(settings, ", "));
}

/// The same for a table: of many names to recompute without those that the file lists.
std::string short_training_settings(const Infeasibility::Remedy& remedy, const Plan& smallest) {
  constexpr std::size_t kLongest = 50;
  if (fmt::format("{}", fmt::join(remedy.recompute, ", ")).size() <= kLongest) return {};
  const std::vector<std::string>& listed = smallest.model->training->recompute;
  std::string names = "...";
  for (const std::string& name : remedy.recompute) {
    if (std::ranges::find(listed, name) == listed.end()) names += ", " + name;
  }
  return training_settings(remedy, names);
}

TableLine line_of(const Infeasibility::Remedy& remedy, const Plan& smallest, const ColumnUnit& unit) {
  using Kind = Infeasibility::Remedy::Kind;
  const std::string peak = fmt::format("{} {}", unit.format(remedy.peak), unit.name);
  const bool is_as_long = remedy.step_change > -0.005 && remedy.step_change < 0.005;
  const std::string peak_and_step =
      is_as_long ? peak + ", step as long" : fmt::format("{}, step about {:+.0f} %", peak, 100 * remedy.step_change);
  switch (remedy.kind) {
    case Kind::kFreeLayers:
      return {"--layers free", peak_and_step};
    case Kind::kTraining:
      return {training_settings(remedy, fmt::format("{}", fmt::join(remedy.recompute, ", "))), peak_and_step,
              short_training_settings(remedy, smallest)};
    case Kind::kMoreNodes:
      return {"--cluster " + remedy.cluster, peak};
    case Kind::kLargerDevices:
      break;
  }
  const Bytes reserved = smallest.cluster.device.reserved;
  return {fmt::format("devices of {}", format_bytes_above(remedy.device_memory)),
          reserved == 0 ? std::string()
                        : fmt::format("({} and {} reserved)", format_bytes(remedy.peak), format_bytes(reserved))};
}

TableLine line_of(const Infeasibility::Obstacle& obstacle, const Plan& smallest, const ColumnUnit& unit) {
  std::string change;
  if (obstacle.name.empty()) {
    change = fmt::format("all {} strategies together", obstacle.num_joined);
  } else if (obstacle.is_option) {
    change = fmt::format("--set {}={}", obstacle.name, obstacle.entry);
  } else {
    change = fmt::format("{}: {} (line {})", obstacle.name, obstacle.entry, obstacle.line);
  }
  return {change,
          fmt::format("{} {}; without it {}, {}", unit.format(smallest.memory.peak - obstacle.peak_without), unit.name,
                      unit.format(obstacle.peak_without), obstacle.fits_without ? "which fits" : "still too much")};
}

template <class Item>
std::vector<TableLine> lines_of(const std::vector<Item>& items, const Plan& smallest) {
  const ColumnUnit unit = bytes_unit(std::max(smallest.memory.peak, smallest.usable));
  std::vector<TableLine> lines;
  for (const Item& item : items) lines.push_back(line_of(item, smallest, unit));
  return lines;
}

std::string line_table(std::string_view title, const std::vector<TableLine>& lines) {
  TextTable table({Align::kLeft, Align::kLeft, Align::kLeft});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const TableLine& line = lines[i];
    table.add({i == 0 ? fmt::format("{:<12}", title) : "", line.short_change.empty() ? line.change : line.short_change,
               line.effect});
  }
  return table.to_string(2);
}

Json lines_json(const std::vector<TableLine>& lines) {
  Json json = Json::array();
  for (const TableLine& line : lines) json.push_back({{"change", line.change}, {"effect", line.effect}});
  return json;
}

}  // namespace

std::string infeasibility_report(const Infeasibility& answer, bool colour) {
  const Plan& plan = *answer.smallest;
  const ColumnUnit unit = bytes_unit(std::max(plan.memory.peak, plan.usable));
  std::string text = paragraph_lines(fmt::format("{}, {}on {}: {}, mesh {}, level {} ({})", plan.graph->name(),
                                                 training_words(*plan.graph), plan.cluster.name,
                                                 counted(plan.cluster.num_devices(), "device"), mesh_words(plan.mesh),
                                                 number_of(plan.options.level), to_string(plan.options.level))) +
                     '\n';
  text += fmt::format(
      "  {}   the smallest plan {}needs {} per device, {} too much:\n                 {} are available\n",
      styled("does not fit", TextStyle::kRed, colour), answer.proven ? "" : "found ", format_bytes(plan.memory.peak),
      format_bytes(plan.memory.peak - plan.usable), format_bytes(plan.usable));
  const std::string_view of_layers = plan.has_uniform_layers ? " with uniform layers" : "";
  if (answer.least > 0) {
    text += fmt::format(
        "                 {}no plan{} on this mesh needs less than {}\n                 in the order of the graph\n",
        answer.proven ? "proven: " : "", of_layers, format_bytes(answer.least));
  } else if (answer.proven) {
    text += fmt::format("                 proven: no plan{} on this mesh fits\n", of_layers);
  }
  const std::vector<Holder> list = holders(plan);
  // Holders below 1 % of the peak get no row.
  const auto is_worth = [&](const Holder& holder) { return holder.local * 100 >= plan.memory.peak; };
  const auto worth = std::count_if(list.begin(), list.end(), is_worth);
  const std::size_t shown = std::min(static_cast<std::size_t>(worth), kMostRows);
  std::size_t width = 0;
  for (std::size_t i = 0; i < shown; ++i) width = std::max(width, list[i].block.size());
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.add({fmt::format("live at its peak, {}", peak_name(plan)), fmt::format("  {} global", unit.name), " per device",
             " shards"});
  for (std::size_t i = 0; i < shown; ++i) {
    table.add({fmt::format("{:<{}}  {}", list[i].block, width, list[i].what), unit.format(list[i].whole),
               unit.format(list[i].local), shards_text(list[i])});
  }
  text += '\n' + table.to_string(2);
  if (list.size() > shown) {
    Bytes rest = 0;
    for (std::size_t i = shown; i < list.size(); ++i) rest += list[i].local;
    text += fmt::format("  {} more hold{} {} per device\n", list.size() - shown, list.size() - shown == 1 ? "s" : "",
                        format_bytes(rest));
  }
  if (!answer.remedies.empty()) text += '\n' + line_table("would fit", lines_of(answer.remedies, plan));
  if (!answer.obstacles.empty()) {
    if (answer.remedies.empty()) text += '\n';
    text += line_table("in the way", lines_of(answer.obstacles, plan));
  }
  if (!answer.undivided_batch.empty()) {
    text += wrapped_line("batch",
                         fmt::format("{} is not the name of a dim; as one, in dims: {{B: 256}}, it could be divided "
                                     "by training: {{micro_batches: 2}}",
                                     answer.undivided_batch));
  }
  return text;
}

std::string infeasibility_json(const Infeasibility& answer) {
  const Plan& plan = *answer.smallest;
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
  document["would_fit"] = lines_json(lines_of(answer.remedies, plan));
  document["in_the_way"] = lines_json(lines_of(answer.obstacles, plan));
  document["undivided_batch"] = answer.undivided_batch.empty() ? Json(nullptr) : Json(answer.undivided_batch);
  return json_document(document);
}

}  // namespace shardplan
