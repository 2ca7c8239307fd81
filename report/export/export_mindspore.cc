#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "layouts/mindspore_layout.h"
#include "report/export/export.h"
#include "report/export/exported_plan.h"
#include "report/export/python_text.h"
#include "report/metrics/plan_metrics.h"

// MindSpore expresses sharding in two ways: tuples of counts, over devices in the order of the cluster, for all
// operators, and Layouts with named axes for a few. `ShardCall` uses tuples if they express the plan exactly, else
// Layouts, else reports the operator as not expressible. `MindSporeWriter` writes the context, these calls, stored
// layouts and fusion ids into one module.

namespace shardplan {
namespace {

constexpr std::string_view kMindSporeHowTo =
    "# How to use it, as plan.py, in graph mode; cells and operators of the net must have the model's names:\n"
    "#   plan.configure()\n"
    "#   net = plan.shard(net)\n"
    "# The order of collectives is MindSpore's and cannot be expressed here.\n";

constexpr char kPlaceHowTo[] =
    "# How to use it, as plan.py, in graph mode; cells and operators of the net must have the model's names:\n"
    "#   plan.configure()\n"
    "#   net = plan.place(net)\n"
    "# Every process runs the same script; which one it is stands in its environment: MS_ROLE, MS_WORKER_NUM,\n"
    "# MS_SCHED_HOST and MS_SCHED_PORT.\n";

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_identifier(std::string_view part) {
  constexpr std::array<std::string_view, 35> kKeywords{
      "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
  if (part.empty() || is_number(part.substr(0, 1))) return false;
  if (std::find(kKeywords.begin(), kKeywords.end(), part) != kKeywords.end()) return false;
  return std::all_of(part.begin(), part.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// "net.layers[i].attn.qkv.matmul" for "layers.*.attn.qkv.matmul" in `net`; the n-th '*' from `star` on becomes the
/// n-th index.
std::string cell_text(std::string text, std::string_view name, std::size_t star = 0) {
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(part.size() + 1, name.size()));
    if (part == "*") {
      text += fmt::format("[{}]", python_index(star++));
    } else if (is_number(part)) {
      text += fmt::format("[{}]", part);
    } else if (is_identifier(part)) {
      text += fmt::format(".{}", part);
    } else {
      text = fmt::format("getattr({}, {})", text, python_text(part));
    }
  }
  return text;
}

/// layout("pcie", "None", ("hccs", "x")).
std::optional<std::string> layout_call(const TensorLayout& layout, const RefinedAxes& axes, std::string* why) {
  const auto dimensions = dimension_axes(layout, axes, why);
  if (!dimensions) return std::nullopt;
  if (dimensions->empty()) {
    *why = "a Layout needs a dimension";
    return std::nullopt;
  }
  std::vector<std::string> entries;
  for (const std::vector<std::string>& names : *dimensions) {
    std::vector<std::string> quoted;
    for (const std::string& name : names) quoted.push_back(python_text(name));
    entries.push_back(quoted.empty() ? python_text("None") : quoted.size() == 1 ? quoted[0] : python_tuple(quoted));
  }
  return fmt::format("layout({})", fmt::join(entries, ", "));
}

/// The arguments of `shard` for one operator. MindSpore takes tuples for all operators and Layouts for few, never both
/// in one call. Tuples are used if they express the plan exactly.
class ShardCall {
 public:
  ShardCall(const Plan& plan, const RefinedAxes& axes, OperatorId id)
      : plan_(plan),
        axes_(axes),
        op_(plan.graph->operators()[id]),
        operation_(plan.graph->operation(id)),
        strategy_(plan.strategies[id]) {}

  /// `wanted`: by operator, the whole first results to which the plan redistributes.
  ExportedEntry entry(const std::map<std::string, const ExportedTensor*>& wanted) const {
    std::vector<TensorLayout> in;
    for (std::size_t i = 0; i < operation_.operands.size(); ++i) {
      in.push_back(operand_layout(operation_, strategy_, plan_.mesh, i));
      if (is_uneven(operation_, strategy_)) return problem(in.back(), "MindSpore wants pieces of one size");
      if (!in.back().partial.empty()) return problem(in.back(), "MindSpore completes sums before the next operator");
    }
    if (operation_.type->name == "OneHot") return one_hot(in[0]);
    const std::vector<TensorLayout> out = other_results(wanted);
    if (out.empty()) {
      if (const auto tuples = input_tuples(operation_, strategy_, plan_.mesh)) {
        std::vector<std::string> items;
        for (const std::vector<std::int64_t>& tuple : *tuples) items.push_back(python_tuple(tuple));
        return {op_.name, fmt::format("shard(in_strategy={})", python_tuple(items)), ""};
      }
    }
    std::vector<std::string> calls;
    for (const auto* layouts : {&std::as_const(in), &out}) {
      for (const TensorLayout& layout : *layouts) {
        std::string why;
        const auto call = layout_call(layout, axes_, &why);
        if (!call) return problem(layout, why);
        calls.push_back(*call);
      }
    }
    const auto first_out = calls.begin() + static_cast<std::ptrdiff_t>(in.size());
    const std::vector<std::string> in_calls(calls.begin(), first_out), out_calls(first_out, calls.end());
    std::string text = fmt::format("shard(in_strategy={}", python_tuple(in_calls));
    if (!out.empty()) text += fmt::format(", out_strategy={}", python_tuple(out_calls));
    return {op_.name, text + ")", ""};
  }

 private:
  /// The layouts that the plan requires of the results, if the operator's own differ and its sums are complete.
  std::vector<TensorLayout> other_results(const std::map<std::string, const ExportedTensor*>& wanted) const {
    std::vector<TensorLayout> layouts;
    bool is_other = false;
    for (std::size_t i = 0; i < op_.results.size(); ++i) {
      TensorLayout layout = result_layout(operation_, strategy_, plan_.mesh, i);
      layout.partial.clear();
      const auto found = i == 0 ? wanted.find(op_.name) : wanted.end();
      if (found != wanted.end() && found->second->layout != layout) {
        layout = found->second->layout;
        is_other = true;
      }
      layouts.push_back(layout);
    }
    return is_other ? layouts : std::vector<TensorLayout>();
  }

  /// MindSpore's primitive also reads the two values, and its first tuple has the pieces of the depth after those of
  /// the indices (its tests/ut/python/parallel/test_onehot.py).
  ExportedEntry one_hot(const TensorLayout& indices) const {
    const std::int64_t axis = operation_.integer("axis");
    if (operation_.operands[0].shape.size() != 1 || (axis != -1 && axis != 1)) {
      return problem(indices, "MindSpore takes a strategy for indices of one dimension, with the depth behind it");
    }
    const auto tuples = output_tuples(operation_, strategy_, plan_.mesh);
    if (!tuples) return problem(indices, "MindSpore takes tuples for OneHot");
    return {op_.name, fmt::format("shard(in_strategy=({}, (), ()))", python_tuple((*tuples)[0])), ""};
  }

  ExportedEntry problem(const TensorLayout& layout, std::string_view why) const {
    return {op_.name, "", fmt::format("{} {}; {}", op_.name, to_string(layout, plan_.mesh), why)};
  }

  const Plan& plan_;
  const RefinedAxes& axes_;
  const GraphOperator& op_;
  const Operation& operation_;
  const Strategy& strategy_;
};

/// Whether MindSpore's data_parallel runs the plan: everything is replicated but what has the batch. There each device
/// reads its own rows, and gradients may be sums; semi_auto_parallel reads whole batches too.
bool is_of_data_parallel_mode(const Plan& plan, const ExportedPlan& exported) {
  const ParallelOptions& parallel = plan.model->parallel;
  const bool sums_gradients = parallel.gradients_mean && !parallel.gradients_mean->value;
  if (parallel.parallel_mode != ParallelMode::kDataParallel || (parallel.full_batch && !sums_gradients)) return false;
  for (const GraphOperator& op : plan.graph->operators()) {
    if (op.pass == Pass::kForward && !op.strategy->in.empty()) return false;
  }
  const auto is_whole = [](const ExportedTensor& tensor) { return num_shards(tensor.layout) == 1; };
  const auto is_cut_by_rows = [&](const ExportedTensor& input) {
    const std::int64_t shards = num_shards(input.layout);
    return shards == 1 || (shards == plan.mesh.num_devices() && input.layout.dimensions[0].num_pieces() == shards &&
                           unequal_pieces(input).empty());
  };
  return std::ranges::all_of(exported.parameters, is_whole) && std::ranges::all_of(exported.states, is_whole) &&
         std::ranges::all_of(exported.inputs, is_cut_by_rows);
}

class MindSporeWriter {
 public:
  explicit MindSporeWriter(const Plan& plan)
      : plan_(plan),
        exported_(exported_plan(plan)),
        axes_(exported_axes(plan, exported_)),
        is_data_parallel_(is_of_data_parallel_mode(plan, exported_)) {}

  ExportedText run() {
    const PythonMesh mesh = python_mesh(axes_);
    result_.text = python_comment(export_title(plan_));
    result_.text += kMindSporeHowTo;
    std::vector<std::string> left = left_to_the_program(plan_);
    if (const auto recomputed = recomputed_operators(plan_)) std::erase(left, *recomputed);  // cells have a call for it
    result_.text += python_refusals(left, result_.cannot_say);
    result_.text += "import mindspore\n";
    if (!is_data_parallel_) {
      result_.text += fmt::format("from mindspore import Layout\n\nlayout = Layout({}, {})\n", mesh.sizes, mesh.names);
    }
    result_.text += "\n\n";
    if (is_data_parallel_) {
      write_data_parallel_context();
    } else {
      write_context();
    }
    result_.text += "\n\ndef shard(net):\n";
    if (!is_data_parallel_) {
      write_shards();
      write_stored();
    }
    write_recomputed();
    write_fusion_ids();
    result_.text += "    return net\n";
    return result_;
  }

 private:
  void refuse(const std::string& what) {
    result_.text += "    " + python_comment("cannot be expressed: " + what);
    result_.cannot_say.push_back(what);
  }

  void begin_context() {
    result_.text += "def configure():\n";
    if (plan_.mesh.devices().empty()) return;
    refuse(
        fmt::format("the order of the devices {}; the rank table counts them", fmt::join(plan_.mesh.devices(), ", ")));
  }

  void write_data_parallel_context() {
    begin_context();
    const ParallelOptions& parallel = plan_.model->parallel;
    if (parallel.full_batch) refuse("full_batch: true; in data_parallel each device reads its own rows");
    const bool sums_gradients = parallel.gradients_mean && !parallel.gradients_mean->value;
    const std::string fusion = comm_fusion_argument();
    result_.text += fmt::format(
        "    mindspore.set_auto_parallel_context(\n"
        "        parallel_mode=\"data_parallel\",\n"
        "        device_num={},\n"
        "        gradients_mean={},\n"
        "{}{}{}    )\n",
        plan_.mesh.num_devices(), sums_gradients ? "False" : "True", broadcast_argument(), fusion,
        gradient_and_file_arguments());
  }

  const char* broadcast_argument() const {
    return plan_.program.broadcasts.empty() ? "" : "        parameter_broadcast=True,\n";
  }

  void write_context() {
    begin_context();
    const auto& gradients_mean = plan_.model->parallel.gradients_mean;
    if (gradients_mean && !gradients_mean->value) {
      refuse("gradients_mean: false; in semi_auto_parallel gradients are those of the mean loss");
    }
    std::vector<std::string> inputs;
    for (const ExportedTensor& tensor : exported_.inputs) {
      if (const auto tuple = tuple_of_layout(tensor.layout, plan_.mesh, tensor.type.shape)) {
        inputs.push_back(python_tuple(*tuple));
      } else {
        refuse(fmt::format("input {} {}; dataset_strategy takes tuples", tensor.name,
                           to_string(tensor.layout, plan_.mesh)));
      }
    }
    const bool has_all = !inputs.empty() && inputs.size() == exported_.inputs.size();
    std::map<std::string, const TensorLayout*> parameters;
    for (const ExportedTensor& tensor : exported_.parameters) parameters.emplace(tensor.name, &tensor.layout);
    const bool cuts_states =
        std::any_of(exported_.states.begin(), exported_.states.end(), [&](const ExportedTensor& state) {
          const auto found = parameters.find(state.name);
          return found != parameters.end() && num_shards(state.layout) > num_shards(*found->second);
        });
    result_.text += fmt::format(
        "    mindspore.set_auto_parallel_context(\n"
        "        parallel_mode=\"semi_auto_parallel\",\n"
        "        device_num={},\n"
        "        dataset_strategy={},\n"
        "        enable_parallel_optimizer={},\n"
        "{}{}{}    )\n",
        plan_.mesh.num_devices(), has_all ? python_tuple(inputs) : python_text("full_batch"),
        cuts_states ? "True" : "False", broadcast_argument(), comm_fusion_argument(), gradient_and_file_arguments());
  }

  /// The model's options on gradients and strategy files.
  std::string gradient_and_file_arguments() {
    const ParallelOptions& parallel = plan_.model->parallel;
    if (!parallel.strategy_load_file.value.empty()) {
      refuse(
          "strategy_ckpt_load_file: MindSpore's files are of another form; the strategies are those of shard() below");
    }
    std::string text;
    if (parallel.gradient_fp32_sync) {
      text += fmt::format("        gradient_fp32_sync={},\n", parallel.gradient_fp32_sync->value ? "True" : "False");
    }
    if (!parallel.strategy_save_file.empty()) {
      text += fmt::format("        strategy_ckpt_save_file={},\n", python_text(parallel.strategy_save_file));
    }
    return text;
  }

  /// The model's comm_fusion for the kinds that MindSpore has rules for; empty if it has none.
  std::string comm_fusion_argument() {
    const CommFusions& fusions = plan_.model->parallel.comm_fusion;
    if (!fusions.place) return "";
    std::vector<std::string> entries{fmt::format("\"openstate\": {}", fusions.asks_for_some() ? "True" : "False")};
    const std::array<std::pair<const char*, const CommFusion*>, 3> kinds{{{"allreduce", &fusions.all_reduce},
                                                                          {"allgather", &fusions.all_gather},
                                                                          {"reducescatter", &fusions.reduce_scatter}}};
    for (const auto& [name, fusion] : kinds) {
      if (fusion->mode == CommFusion::Mode::kSize) {
        entries.push_back(fmt::format("\"{}\": {{\"mode\": \"size\", \"config\": {}}}", name, fusion->size >> 20));
      } else if (fusion->mode == CommFusion::Mode::kIndex) {
        entries.push_back(
            fmt::format("\"{}\": {{\"mode\": \"index\", \"config\": [{}]}}", name, fmt::join(fusion->config, ", ")));
      } else if (fusion->mode == CommFusion::Mode::kBest) {
        refuse(fmt::format("comm_fusion: {} in the buckets that hide the most; MindSpore takes sizes", name));
      }
    }
    return fmt::format("        comm_fusion={{{}}},\n", fmt::join(entries, ", "));
  }

  /// The fusion ids that the model sets for parameters.
  void write_fusion_ids() {
    bool is_first = true;
    for (const GraphTensor& tensor : plan_.graph->tensors()) {
      if (tensor.kind != TensorKind::kParameter || !tensor.comm_fusion) continue;
      if (is_first)
        result_.text += "    parameters = {parameter.name: parameter for parameter in net.trainable_params()}\n";
      is_first = false;
      result_.text +=
          fmt::format("    parameters[{}].comm_fusion = {}\n", python_text(tensor.name), *tensor.comm_fusion);
    }
  }

  void write_shards() {
    std::map<std::string, const ExportedTensor*> wanted;
    for (const ExportedTensor& tensor : exported_.constraints) wanted.emplace(tensor.name, &tensor);
    std::vector<ExportedEntry> entries;
    for (const OperatorId op : plan_.graph->operators().ids()) {
      const GraphOperator& info = plan_.graph->operators()[op];
      if (info.pass != Pass::kForward || info.is_inserted || is_border(*plan_.graph, op)) continue;
      entries.push_back(ShardCall(plan_, axes_, op).entry(wanted));
    }
    write_calls(entries);
  }

  /// Cells keep what they return, and primitives nothing, as here.
  void write_recomputed() {
    std::vector<ExportedEntry> entries;
    for (const std::string& scope : recomputed_scopes(*plan_.graph)) entries.push_back({scope, "recompute()", ""});
    write_calls(entries);
  }

  /// A line for every entry, in loops over the copies of a repeat; or why there is none.
  void write_calls(const std::vector<ExportedEntry>& entries) {
    std::string loop;  // the last line's loop: the name up to the last '*', and its indices
    for (const ExportedEntry& entry : fold_entries(entries)) {
      if (!entry.problem.empty()) {
        refuse(entry.problem);
        loop.clear();
        continue;
      }
      if (entry.indices.empty()) {
        result_.text += fmt::format("    {}.{}\n", cell_text("net", entry.name), entry.value);
        loop.clear();
        continue;
      }
      const std::size_t depth = entry.indices.size();
      const std::string copy = entry.name.substr(0, entry.name.rfind('*') + 1);
      std::string head;
      for (std::size_t i = 0; i < depth; ++i) {
        head += fmt::format("{:{}}for {} in {}:\n", "", 4 * (i + 1), python_index(i), python_indices(entry.indices[i]));
      }
      head += fmt::format("{:{}}copy = {}\n", "", 4 * (depth + 1), cell_text("net", copy));
      if (loop != head) result_.text += head;
      loop = head;
      const std::string inside = entry.name.size() > copy.size() ? entry.name.substr(copy.size() + 1) : "";
      result_.text += fmt::format("{:{}}{}.{}\n", "", 4 * (depth + 1), cell_text("copy", inside), entry.value);
    }
  }

  /// A parameter is stored as its first reader takes it, its states likewise or sharded further along dimension 0.
  void write_stored() {
    std::map<std::string, const TensorLayout*> stored;
    std::vector<ExportedEntry> kept;
    for (const ExportedTensor& parameter : exported_.parameters) {
      stored.emplace(parameter.name, &parameter.layout);
      const GraphTensor& tensor = plan_.graph->tensor(*plan_.graph->find_tensor(parameter.name));
      if (tensor.readers.empty()) continue;
      const Reader& reader = tensor.readers.front();
      const TensorLayout taken =
          operand_layout(plan_.graph->operation(reader.op), plan_.strategies[reader.op], plan_.mesh, reader.operand);
      if (taken != parameter.layout) {
        kept.push_back({parameter.name, "",
                        fmt::format("{} stored {}; a parameter is stored as its first reader takes it", parameter.name,
                                    to_string(parameter.layout, plan_.mesh))});
      }
    }
    for (const ExportedTensor& state : exported_.states) {
      const auto found = stored.find(state.name);
      if (found != stored.end() && *found->second == state.layout) continue;
      kept.push_back({state.name, "",
                      fmt::format("{} optimizer states {}; enable_parallel_optimizer=True decides on its own",
                                  state.name, to_string(state.layout, plan_.mesh))});
    }
    for (const ExportedEntry& entry : fold_entries(kept)) refuse(entry.problem);
  }

  const Plan& plan_;
  const ExportedPlan exported_;
  const RefinedAxes axes_;
  const bool is_data_parallel_;
  ExportedText result_;
};

}  // namespace

ExportedText export_mindspore(const Plan& plan) { return MindSporeWriter(plan).run(); }

ExportedText export_mindspore_place(const Plan& plan) {
  ExportedText result;
  result.text = python_comment(export_title(plan)) + kPlaceHowTo;
  result.text += fmt::format(
      "import mindspore\n"
      "from mindspore.communication import init\n\n\n"
      "def configure():\n"
      "    mindspore.set_context(mode=mindspore.GRAPH_MODE)\n"
      "    init()  # MS_WORKER_NUM={}\n\n\n"
      "def place(net):\n",
      plan.program.workers);
  const OperatorGraph& graph = *plan.graph;
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    if (op.pass != Pass::kForward || !op.is_placed || is_border(graph, id)) continue;
    result.text += fmt::format("    {}.place(\"MS_WORKER\", {})\n", cell_text("net", op.name), op.worker);
  }
  result.text += "    return net\n";
  return result;
}

}  // namespace shardplan
