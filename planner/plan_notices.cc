#include "planner/plan_notices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "graph/folded_names.h"
#include "graph/written_attention.h"
#include "model/syntax/settings_table.h"
#include "planner/mesh_shapes.h"
#include "planner/micro_batch_notices.h"
#include "program/buckets.h"

namespace shardplan {

std::vector<std::string> per_device_notices(const OperatorGraph& graph, const ParallelOptions& parallel) {
  std::vector<std::string> notices;
  std::vector<std::string> own;
  for (const GraphTensor& tensor : graph.tensors()) {
    if (!tensor.layerwise_parallel) continue;
    if (tensor.requires_grad) own.push_back(tensor.name);
  }
  constexpr std::size_t kMostNamed = 3;
  if (!own.empty()) {
    const std::size_t named = std::min(own.size(), kMostNamed);
    notices.push_back(
        fmt::format("each device has its own values of {}{} (layerwise_parallel), also in the proof's reference",
                    fmt::join(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                    own.size() > named ? fmt::format(" and {} more", own.size() - named) : ""));
  }
  if (parallel.local_batch_norm && graph.is_training()) {
    const bool has_any = std::ranges::any_of(graph.operators(), [&](const GraphOperator& op) {
      return graph.operations()[op.operation].type->name.starts_with("BatchNorm");
    });
    notices.push_back(has_any
                          ? "batch normalisation is over each device's part of the batch, also in the proof's reference"
                          : "batch_norm: local has no effect: the model has no batch normalisation");
  }
  return notices;
}

std::optional<std::string> attention_as_written(const OperatorGraph& forward, const ParallelOptions& parallel) {
  if (!parallel.fuses_attention) return std::nullopt;
  std::size_t count = 0;
  std::string softmax, decided;
  for (const OperatorId id : forward.operators().ids()) {
    if (forward.operation(id).type->name != "Softmax") continue;
    const std::optional<OperatorId> inner = decided_in_attention(forward, id);
    if (!inner || ++count > 1) continue;
    softmax = forward.operators()[id].name;
    decided = forward.operators()[*inner].name;
  }
  if (count == 0) return std::nullopt;
  return fmt::format(
      "attention: fused leaves the attention around {}{} as written, since {} has a strategy, recompute or another key "
      "of its own; give these to what it reads and to its readers, or to the block around it",
      softmax, count > 1 ? fmt::format(" and {} more", count - 1) : "", decided);
}

std::vector<std::string> unfused_attention(const OperatorGraph& forward, const ParallelOptions& parallel) {
  if (!parallel.fuses_attention) return {};
  bool has_attention = false;
  std::vector<std::string> biased, others;
  for (const OperatorId id : forward.operators().ids()) {
    const OperatorType& type = *forward.operation(id).type;
    has_attention = has_attention || type.role == OperatorRole::kAttention;
    if (type.name != "Softmax" || decided_in_attention(forward, id)) continue;
    const bool is_written = written_attention(forward, id).has_value();
    if (is_written || resembles_attention(forward, id)) {
      (is_written ? biased : others).push_back(forward.operators()[id].name);
    }
  }
  const auto named = [](const std::vector<std::string>& softmaxes) {
    return softmaxes[0] + (softmaxes.size() > 1 ? fmt::format(" and {} more", softmaxes.size() - 1) : "");
  };
  std::vector<std::string> notices;
  if (!biased.empty()) {
    notices.push_back(fmt::format(
        "attention: fused leaves the attention around {} as written, since its bias varies over some of the batch "
        "dimensions or heads only; broadcast it over all of them",
        named(biased)));
  }
  if (!others.empty()) {
    notices.push_back(fmt::format(
        "attention: fused leaves what resembles attention around {} as written: only scale, biases, a causal mask, "
        "Softmax over the last dimension and Dropout may stand between its two products, of one type and read by "
        "nothing else",
        named(others)));
  }
  if (notices.empty() && !has_attention && !attention_as_written(forward, parallel)) {
    notices.push_back("attention: fused has no effect: no attention is written out in the model");
  }
  return notices;
}

std::vector<std::string> idle_recomputation(const Model& model, const OperatorGraph& planned) {
  std::vector<std::string> notices;
  if (!model.training || !planned.is_training()) return notices;
  std::set<std::string> marked, recomputed;  // blocks
  for (const GraphOperator& op : planned.operators()) {
    if (op.is_inserted && op.recompute_scope == op.name) continue;  // a cast: it goes with the operator that reads it
    if (op.pass == Pass::kForward && !op.is_copy && !op.recompute_scope.empty()) marked.insert(op.recompute_scope);
    if (op.is_copy) recomputed.insert(planned.operators()[*op.forward].recompute_scope);
  }
  const auto add_if_idle = [&](const std::string& pattern) {
    const auto is_of_it = [&](const std::string& block) { return matches_name(pattern, block); };
    if (std::ranges::none_of(marked, is_of_it) || std::ranges::any_of(recomputed, is_of_it)) return;
    notices.push_back(fmt::format("recompute: {} has no effect: the backward pass reads nothing of it", pattern));
  };
  for (const std::string& pattern : model.training->recompute) add_if_idle(pattern);
  // Those that are marked beside the block or operator: the copies of a repeat together.
  std::set<std::string> beside;
  for (const std::string& block : marked) {
    const auto names_it = [&](const std::string& pattern) { return matches_name(pattern, block); };
    if (std::ranges::none_of(model.training->recompute, names_it)) beside.insert(folded_name(block));
  }
  for (const std::string& pattern : beside) add_if_idle(pattern);
  return notices;
}

std::vector<std::string> separate_levels(const OperatorGraph& graph, Level level) {
  std::vector<std::string> notices;
  std::set<std::string> scopes;
  for (const GraphOperator& op : graph.operators()) {
    if (!op.level || *op.level == number_of(level) || !scopes.insert(op.level_scope).second) continue;
    notices.push_back(fmt::format("{} is searched separately at level {}, and the rest of the model at level {}",
                                  op.level_scope, *op.level, number_of(level)));
  }
  return notices;
}

std::vector<std::string> model_notices(const Model& model, const OperatorGraph& planned) {
  std::vector<std::string> notices = per_device_notices(planned, model.parallel);
  if (std::optional<std::string> text = attention_as_written(model.graph, model.parallel)) {
    notices.push_back(*std::move(text));
  }
  for (std::string& notice : unfused_attention(model.graph, model.parallel)) notices.push_back(std::move(notice));
  for (std::string& notice : idle_recomputation(model, planned)) notices.push_back(std::move(notice));
  for (std::string& notice : micro_batch_notices(model)) notices.push_back(std::move(notice));
  return notices;
}

std::optional<std::string> unused_fusion_index(const ParallelProgram& program, const OperatorGraph& graph,
                                               const CommFusions& fusions) {
  if (fusions.all_reduce.mode != CommFusion::Mode::kIndex) return std::nullopt;
  std::vector<std::uint32_t> sequence(program.instructions.size());
  std::iota(sequence.begin(), sequence.end(), std::uint32_t{0});
  std::int64_t count = 0;
  for (const JoinableCollective& one : joinable_collectives(program, graph, sequence)) {
    if (one.kind == CollectiveKind::kAllReduce && !graph.tensor(one.parameter).comm_fusion) ++count;
  }
  const auto first = std::find_if(fusions.all_reduce.config.begin(), fusions.all_reduce.config.end(),
                                  [&](std::int64_t index) { return index >= count; });
  if (first == fusions.all_reduce.config.end()) return std::nullopt;
  return fmt::format(
      "comm_fusion: allreduce: index {} has no effect: there {} {} all_reduce{} of gradients to join, counted "
      "from 0",
      *first, count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
}

void add_notice(std::vector<std::string>& notices, std::string text) {
  if (std::find(notices.begin(), notices.end(), text) == notices.end()) notices.push_back(std::move(text));
}

void note_out_of_time(Plan& plan) {
  plan.ended_early = true;
  add_notice(plan.notices, fmt::format("the time limit of {:g} s ended the search: this is the best plan so far",
                                       plan.options.time_limit));
}

void note_interruption(Plan& plan) {
  plan.ended_early = true;
  add_notice(plan.notices, "interrupted: this is the best plan so far");
}

// With pieces of at most 8 the shapes of a mesh differed by less than 3 % (64 devices); DCN-v2 on 256 v5e took 26 %
// longer with the usual pieces 16, 2 and 8 than with 16, 8 and 2, DeepSeek-V3 on 512 H100 22 % longer with 64, 2 and 4
// than with 8, 8 and 8.
void note_other_shapes(Plan& plan) {
  constexpr double kFarFromBound = 0.05;
  constexpr std::int64_t kLargePiece = 16;
  const ParallelOptions& parallel = plan.model->parallel;
  const bool is_asked_for = !plan.options.pieces.empty() || !parallel.mesh.empty();
  if (is_asked_for || plan.options.level != Level::kSpeed || !is_found(plan.status)) return;
  if (parallel.parallel_mode != ParallelMode::kAutoParallel || open_gap(plan).value_or(0) < kFarFromBound) return;
  if (std::ranges::none_of(plan.pieces, [](const AxisRef& piece) { return piece.size >= kLargePiece; })) return;
  const std::size_t others = mesh_shapes(plan.mesh).size() - 1;
  if (others == 0) return;
  std::vector<std::int64_t> sizes;
  for (const AxisRef& piece : plan.pieces) sizes.push_back(piece.size);
  add_notice(
      plan.notices,
      fmt::format("the step is far from its bound with mesh pieces {}; `parallel: {{mesh: auto}}` also plans with "
                  "{} other {}, which takes as many times as long",
                  fmt::join(sizes, " x "), others, others == 1 ? "shape" : "shapes"));
}

}  // namespace shardplan
