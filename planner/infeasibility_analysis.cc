// Remedies are found by trying: each change that a user could make is applied, one at a time, to a copy of the model
// or the cluster, which is then planned for the least memory. If that plan fits, the change is a remedy. The plan
// with the least memory shows what to change, since whatever holds its peak must go in any case.

#include "planner/infeasibility_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "costmodel/cluster/cluster.h"
#include "graph/folded_names.h"
#include "model/planned_model.h"
#include "model/syntax/expression.h"
#include "model/syntax/strategy_syntax.h"
#include "planner/model_planner.h"
#include "planner/search/default_limits.h"

namespace shardplan {
namespace {

/// Work limit for the search of one changed model.
constexpr std::uint64_t kWork = 100'000'000;
/// Limit for user strategies that are left out one by one.
constexpr std::size_t kMostDecisions = 4;
/// Limit for how many times as many micro-batches or nodes are tried.
constexpr std::int64_t kMostTimes = 1024;

/// A decision that the user wrote in one place, with all operators and tensors it concerns.
struct Decision {
  Infeasibility::Obstacle obstacle;
  std::vector<OperatorId> operators;
  std::vector<TensorId> tensors;
  std::vector<TensorId> pinned;  // parameters whose gradients or states it lays out
};

/// The same types, laid out as the modes or the search decide.
ParameterPins without_layouts(const ParameterPins& pins) {
  ParameterPins left = pins;
  left.gradient_strategy.reset();
  left.state_strategy.reset();
  return left;
}

std::string entries_text(const std::vector<StrategyEntry>& entries) {
  std::string text;
  for (const StrategyEntry& entry : entries) text += (text.empty() ? "[" : ", ") + to_string(entry);
  return text + "]";
}

class InfeasibilityAnalysis {
 public:
  InfeasibilityAnalysis(const Plan& smallest, std::stop_token stop) : smallest_(smallest), stop_(std::move(stop)) {
    answer_.smallest = &smallest;
    answer_.least = smallest.bound.amount;
    answer_.proven = smallest.bound.amount > smallest.usable;
  }

  Infeasibility run() {
    // Parameters and states take the same memory however the computation changes; only more devices make their shards
    // smaller.
    const bool fits_stored = least_stored(smallest_.cluster.num_devices()) <= smallest_.usable;
    if (fits_stored) try_free_layers();
    if (fits_stored && smallest_.graph->is_training()) try_training();
    try_more_nodes();
    Infeasibility::Remedy larger;
    larger.device_memory = smallest_.memory.peak + smallest_.cluster.device.reserved;
    larger.peak = smallest_.memory.peak;
    answer_.remedies.push_back(larger);
    find_obstacles();
    return std::move(answer_);
  }

 private:
  /// The least that one of `devices` devices holds of parameters and optimizer states, evenly sharded.
  Bytes least_stored(std::int64_t devices) const {
    Bytes sum = 0;
    for (const GraphTensor& tensor : smallest_.graph->tensors()) {
      if (tensor.kind == TensorKind::kParameter || tensor.kind == TensorKind::kState) sum += tensor.type.bytes();
    }
    return sum / devices;
  }

  /// The plan with the least memory of a changed model, which recomputes these blocks too; nothing if it cannot be
  /// planned.
  std::optional<Plan> smallest_of(Model model, const Cluster& cluster, PlanOptions options,
                                  const std::vector<std::string>& recomputed = {}) const {
    if (stop_.stop_requested()) return std::nullopt;
    options.work_limit = kWork;
    if (cluster.num_devices() != smallest_.cluster.num_devices()) options.pieces.clear();  // of another mesh
    try {
      if (!recomputed.empty()) model = recomputing(one_micro_batch(model), recomputed);
      const ModelPlanner planning(std::make_shared<const Model>(std::move(model)), cluster, options);
      Plan plan = planning.smallest(stop_);
      if (!plan.program.instructions.empty()) return plan;
    } catch (const InputError&) {
      // The change does not suit the model: a batch that cannot be divided, a mesh for other devices.
    }
    return std::nullopt;
  }

  /// Records the change if it makes the plan with the least memory fit.
  void note_if_fits(Infeasibility::Remedy remedy, const std::optional<Plan>& plan) {
    if (!plan || !plan->fits()) return;
    const auto before = static_cast<double>(smallest_.time.step());
    remedy.peak = plan->memory.peak;
    remedy.step_change = (static_cast<double>(plan->time.step()) - before) / before;
    answer_.remedies.push_back(std::move(remedy));
  }

  void try_free_layers() {
    if (!smallest_.has_uniform_layers || smallest_.graph->operators().size() > kMostFreeOperators) return;
    PlanOptions options = smallest_.options;
    options.uniform_layers = false;
    Infeasibility::Remedy remedy;
    remedy.kind = Infeasibility::Remedy::Kind::kFreeLayers;
    note_if_fits(std::move(remedy), smallest_of(*smallest_.model, smallest_.cluster, std::move(options)));
  }

  /// The least power of two, at least 2, that the memory above what is stored is to be divided by.
  std::int64_t least_times(const Plan& plan) const {
    const Bytes stored = least_stored(plan.cluster.num_devices());
    std::int64_t times = 2;
    while (times < kMostTimes && (plan.usable - stored) * times < plan.memory.peak - stored) times *= 2;
    return times;
  }

  /// The plan that recomputes `blocks` too, in `times` as many micro-batches.
  std::optional<Plan> try_training(const std::vector<std::string>& blocks, std::int64_t times) {
    Model model = *smallest_.model;
    model.training->micro_batches *= times;
    Infeasibility::Remedy remedy;
    remedy.kind = Infeasibility::Remedy::Kind::kTraining;
    if (!blocks.empty()) {
      const auto is_in_blocks = [&](const std::string& name) {
        return std::ranges::any_of(blocks, [&](const std::string& block) { return is_within(name, block); });
      };
      std::ranges::remove_copy_if(model.training->recompute, std::back_inserter(remedy.recompute), is_in_blocks);
    }
    remedy.recompute.insert(remedy.recompute.end(), blocks.begin(), blocks.end());
    if (times > 1) remedy.micro_batches = model.training->micro_batches;
    std::optional<Plan> plan = smallest_of(std::move(model), smallest_.cluster, smallest_.options, blocks);
    note_if_fits(std::move(remedy), plan);
    return plan;
  }

  /// As few micro-batches, by powers of two, as make `plan`, which recomputes `blocks` too, fit. They add up gradients, so
  /// the least number that divides the memory may be one power too few.
  void try_micro_batches(const Plan& plan, const std::vector<std::string>& blocks) {
    const std::size_t before = answer_.remedies.size();
    const std::int64_t least = least_times(plan);
    try_training(blocks, least);
    if (answer_.remedies.size() == before) try_training(blocks, 2 * least);
  }

  /// What may be recomputed beside what the file lists: the block inside a layer whose activations take the most memory
  /// at the peak, the layer of which they take the most, and all layers.
  std::vector<std::vector<std::string>> blocks_to_recompute() const {
    std::map<std::string, Bytes> inner, outer;
    for (const MemoryProfile::Alive& alive : smallest_.memory.alive_at_peak) {
      const std::optional<TensorId>& tensor = smallest_.program.values[alive.value].tensor;
      if (!tensor || !smallest_.graph->tensor(*tensor).producer) continue;
      const GraphOperator& op = smallest_.graph->operators()[*smallest_.graph->tensor(*tensor).producer];
      const std::string block = holder_block(op.name);
      const std::size_t star = block.find(".*");
      if (op.pass != Pass::kForward || star == std::string::npos) continue;
      const std::string layer = block.substr(0, star + 2), recomputed = folded_name(op.recompute_scope.str());
      if (!is_within(layer, recomputed)) outer[layer] += alive.bytes;
      if (block != layer && !is_within(block, recomputed)) inner[block] += alive.bytes;
    }
    std::vector<std::vector<std::string>> choices;
    for (const auto* sums : {&inner, &outer}) {
      const auto most = std::max_element(sums->begin(), sums->end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      if (most != sums->end()) choices.push_back({most->first});
    }
    if (outer.size() > 1) {
      choices.emplace_back();
      for (const auto& [block, bytes] : outer) choices.back().push_back(block);
    }
    return choices;
  }

  /// The copy of a repeated block in which an operator lies: "layers.3.attn" of "layers.3.attn.qkv.matmul".
  static std::string own_scope(const std::string& name, const std::string& block) {
    std::size_t end = 0;
    for (auto parts = std::count(block.begin(), block.end(), '.'); parts >= 0; --parts) end = name.find('.', end + 1);
    return name.substr(0, end);
  }

  static Model recomputing(Model model, const std::vector<std::string>& blocks) {
    OperatorGraphBuilder builder(model.graph);
    for (const OperatorId id : model.graph.operators().ids()) {
      const std::string& name = model.graph.operators()[id].name;
      for (const std::string& block : blocks) {
        if (is_within(folded_name(name), block)) builder.op(id).recompute_scope = own_scope(name, block);
      }
    }
    model.graph = builder.build();
    return model;
  }

  /// More micro-batches, more recomputed blocks, and both where neither is enough.
  void try_training() {
    if (!is_name(smallest_.model->batch)) answer_.undivided_batch = smallest_.model->batch;
    const std::size_t before = answer_.remedies.size();
    try_micro_batches(smallest_, {});
    const std::vector<std::vector<std::string>> choices = blocks_to_recompute();
    std::optional<Plan> last;
    for (const std::vector<std::string>& blocks : choices) last = try_training(blocks, 1);
    if (last && answer_.remedies.size() == before) try_micro_batches(*last, choices.back());
  }

  /// 2, 4, ... times the nodes: "ascend-910" as "ascend-910x2", "dgx-a100x8" as "dgx-a100x16"; of presets only, whose
  /// nodes are all used.
  void try_more_nodes() {
    const ParallelOptions& parallel = smallest_.model->parallel;
    if (!parallel.mesh.empty() || parallel.device_num || parallel.parallel_mode == ParallelMode::kStandAlone) return;
    std::string name = smallest_.cluster.name;
    const std::size_t x = name.rfind('x');
    std::int64_t nodes = 1;
    if (x != std::string::npos && x + 1 < name.size() &&
        name.find_first_not_of("0123456789", x + 1) == std::string::npos) {
      nodes = std::stoll(name.substr(x + 1, 6));
      name.resize(x);
    }
    std::int64_t times = 2;
    while (times < kMostTimes && smallest_.usable * times < smallest_.memory.peak) times *= 2;
    if (least_stored(times * smallest_.cluster.num_devices()) > smallest_.usable) return;
    const std::size_t before = answer_.remedies.size();
    for (const std::int64_t more : {times, 2 * times}) {
      Infeasibility::Remedy remedy;
      remedy.kind = Infeasibility::Remedy::Kind::kMoreNodes;
      remedy.cluster = fmt::format("{}x{}", name, more * nodes);
      try {
        const Cluster cluster = read_cluster(remedy.cluster);
        if (cluster.num_devices() != more * smallest_.cluster.num_devices()) return;  // --device-num leaves some out
        note_if_fits(std::move(remedy), smallest_of(*smallest_.model, cluster, smallest_.options));
      } catch (const InputError&) {
        return;  // not a preset, or more nodes than one may have
      }
      if (answer_.remedies.size() > before) return;
    }
  }

  // ---- user strategies

  std::vector<Decision> decisions() const {
    std::vector<Decision> result;
    std::map<std::tuple<std::string, std::string, bool, int>, std::size_t> position;
    const auto add = [&](const std::string& name, const std::string& entry, const SourcePlace& place) -> Decision& {
      Infeasibility::Obstacle obstacle;
      obstacle.name = folded_name(name);
      obstacle.entry = entry;
      obstacle.is_option = place.file == "--set";
      obstacle.line = obstacle.is_option ? 0 : place.line;
      const auto [found, is_new] =
          position.try_emplace(std::tuple(obstacle.name, entry, obstacle.is_option, obstacle.line), result.size());
      if (is_new) result.push_back({std::move(obstacle), {}, {}, {}});
      return result[found->second];
    };
    const OperatorGraph& graph = smallest_.model->graph;
    for (const OperatorId id : graph.operators().ids()) {
      const GraphOperator& op = graph.operators()[id];
      const bool has_in = !op.strategy->in.empty();
      if (!has_in && op.strategy->out.empty()) continue;
      const std::string& name = (op.border_of.empty() ? op.name : op.border_of).str();
      add(name, entries_text(has_in ? op.strategy->in : op.strategy->out),
          has_in ? op.strategy->in_place : op.strategy->out_place)
          .operators.push_back(id);
    }
    for (const TensorId id : graph.tensors().ids()) {
      const GraphTensor& tensor = graph.tensor(id);
      if (tensor.layout) add(tensor.name, to_string(*tensor.layout), tensor.layout->place).tensors.push_back(id);
      if (!tensor.pins) continue;
      for (const auto* pin : {&tensor.pins->gradient_strategy, &tensor.pins->state_strategy}) {
        if (*pin) add(tensor.name, to_string(**pin), (*pin)->place).pinned.push_back(id);
      }
    }
    return result;
  }

  Model without(const std::vector<Decision>& left_out) const {
    Model model = *smallest_.model;
    OperatorGraphBuilder builder(model.graph);
    for (const Decision& decision : left_out) {
      for (const OperatorId id : decision.operators) builder.op(id).strategy = {};
      for (const TensorId id : decision.tensors) builder.tensor(id).layout.reset();
      for (const TensorId id : decision.pinned) builder.tensor(id).pins = without_layouts(*builder.tensor(id).pins);
    }
    model.graph = builder.build();
    return model;
  }

  void try_without(Infeasibility::Obstacle obstacle, const std::vector<Decision>& left_out) {
    const std::optional<Plan> plan = smallest_of(without(left_out), smallest_.cluster, smallest_.options);
    // A decision whose removal saves less than half a per cent is not an obstacle.
    const Bytes least_saved = obstacle.name.empty() ? 1 : std::max<Bytes>(1, smallest_.memory.peak / 200);
    if (!plan || smallest_.memory.peak - plan->memory.peak < least_saved) return;
    obstacle.peak_without = plan->memory.peak;
    obstacle.fits_without = plan->fits();
    answer_.obstacles.push_back(std::move(obstacle));
  }

  void find_obstacles() {
    const std::vector<Decision> all = decisions();
    for (std::size_t i = 0; i < std::min(all.size(), kMostDecisions); ++i) try_without(all[i].obstacle, {all[i]});
    if (all.size() < 2) return;
    Infeasibility::Obstacle together;
    together.num_joined = all.size();
    try_without(together, all);
  }

  const Plan& smallest_;
  std::stop_token stop_;
  Infeasibility answer_;
};

}  // namespace

Infeasibility analyse_infeasibility(const Plan& smallest, std::stop_token stop) {
  return InfeasibilityAnalysis(smallest, std::move(stop)).run();
}

}  // namespace shardplan
