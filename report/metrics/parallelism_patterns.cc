// Operators and stored bytes vote for the axes that shard them: products by their work, weights and states by their bytes.
// A pattern is what most votes agree on, so a few operators that are sharded otherwise do not hide it.
//
// Batch, context and weights are one vote of every product with a weight, since a framework's degrees are those of such
// products and an axis has one meaning in all of them. Attention has no weight and does not vote: over the axes of
// tensor parallelism it may cut the batch where heads are few, over those of context parallelism it may cut heads. Nor
// do products that cut stacked weights by expert: those axes mean something else in the rest of the model.
#include "report/metrics/parallelism_patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "graph/batch_factors.h"
#include "graph/weights.h"
#include "layouts/layout_axes.h"
#include "planner/problem/expert_factors.h"

namespace shardplan {
namespace {

/// The vote with the largest total weight; the first one added wins ties.
template <typename Vote>
class Majority {
 public:
  void add(Vote vote, double weight) {
    const auto found =
        std::find_if(votes_.begin(), votes_.end(), [&](const auto& known) { return known.first == vote; });
    if (found == votes_.end()) {
      votes_.emplace_back(std::move(vote), weight);
    } else {
      found->second += weight;
    }
  }
  bool is_empty() const { return votes_.empty(); }
  Vote winner() const {
    const auto best = std::max_element(votes_.begin(), votes_.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return best == votes_.end() ? Vote() : best->first;
  }

 private:
  std::vector<std::pair<Vote, double>> votes_;
};
using AxesMajority = Majority<std::vector<AxisRef>>;

std::vector<AxisRef> sorted_cutting_axes(const TensorLayout& layout) {
  std::vector<AxisRef> axes = cutting_axes(layout);
  std::sort(axes.begin(), axes.end());
  return axes;
}

bool is_weight(const GraphTensor& tensor) {
  return tensor.kind == TensorKind::kParameter && tensor.type.shape.size() >= 2;
}

/// Whether these have at least half of the bytes of all weights.
bool are_most_weights(const OperatorGraph& graph, const std::set<TensorId>& some) {
  Bytes all = 0, of_these = 0;
  for (const TensorId id : graph.tensors().ids()) {
    if (!is_weight(graph.tensor(id))) continue;
    const Bytes bytes = graph.tensor(id).type.bytes();
    all += bytes;
    if (some.contains(id)) of_these += bytes;
  }
  return all > 0 && 2 * of_these >= all;
}

/// For each parameter the most pieces in which a forward operator reads it, or its cast to another type.
IdVector<TensorId, std::int64_t> used_pieces(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  IdVector<TensorId, std::int64_t> pieces(graph.tensors().size(), 1);
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    if (op.pass != Pass::kForward || graph.operation(id).type->role == OperatorRole::kConversion) continue;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const TensorId stored = behind_casts(graph, op.operands[i]);
      if (graph.tensor(stored).kind != TensorKind::kParameter) continue;
      const TensorLayout taken = operand_layout(graph.operation(id), plan.strategies[id], plan.mesh, i);
      pieces[stored] = std::max(pieces[stored], num_pieces(sorted_cutting_axes(taken)));
    }
  }
  return pieces;
}

/// Bytes of which a part follows a pattern; it needs half of them.
struct Share {
  double all = 0, of_it = 0;

  void add(double bytes, bool is_of_it) {
    all += bytes;
    of_it += is_of_it ? bytes : 0;
  }
  bool is_half() const { return all > 0 && 2 * of_it >= all; }
};

/// ZeRO: weights that are gathered where they are used, states that are sharded further than their weights are used.
void find_stored_patterns(const Plan& plan, ParallelismPatterns& patterns) {
  const OperatorGraph& graph = *plan.graph;
  const IdVector<TensorId, std::int64_t> used = used_pieces(plan);
  std::map<TensorId, std::vector<AxisRef>> stored;  // by weight
  Share weights, trained, cut, cut_further;
  AxesMajority gathered, states;
  for (const Binding& binding : plan.program.given) {
    const GraphTensor& tensor = graph.tensor(binding.tensor);
    if (!is_weight(tensor)) continue;
    const std::vector<AxisRef> axes = sorted_cutting_axes(plan.program.values[binding.value].layout);
    const auto bytes = static_cast<double>(tensor.type.bytes());
    stored.emplace(binding.tensor, axes);
    const bool is_gathered = num_pieces(axes) > used[binding.tensor];
    weights.add(bytes, is_gathered);
    if (tensor.requires_grad) trained.add(bytes, is_gathered);
    if (is_gathered) gathered.add(axes, bytes);
  }
  for (const Binding& binding : plan.program.given) {
    const GraphTensor& tensor = graph.tensor(binding.tensor);
    const auto weight = tensor.state_of ? stored.find(*tensor.state_of) : stored.end();
    if (weight == stored.end()) continue;
    const std::vector<AxisRef> axes = sorted_cutting_axes(plan.program.values[binding.value].layout);
    const auto bytes = static_cast<double>(tensor.type.bytes());
    const bool is_cut = num_pieces(axes) > used[weight->first];
    cut.add(bytes, is_cut);
    cut_further.add(bytes, num_pieces(axes) > num_pieces(weight->second));
    if (is_cut) states.add(axes, bytes);
  }
  // Frozen weights may be sharded or not beside trained ones.
  if (weights.is_half() || trained.is_half()) patterns.gathered = gathered.winner();
  if (cut.is_half()) patterns.states = states.winner();
  patterns.states_as_weights = cut_further.all > 0 && !cut_further.is_half();
}

/// How a product with a weight is cut.
struct ProductCut {
  std::vector<AxisRef> batch, sequence, weights;

  bool operator==(const ProductCut&) const = default;
};

/// The factor of a product's batch. Where it cannot be followed, as past sums over the edges that end in a node, it is
/// the first dimension of the result if that has the batch's size and the operand `weight` has none of it.
std::optional<std::uint32_t> batch_of_product(const ShardingRule& rule, std::size_t weight,
                                              const std::optional<std::uint32_t>& followed, std::int64_t batch_size) {
  if (followed) return followed;
  const std::optional<std::uint32_t> first = leading_factor(rule.results[0]);
  if (!first || rule.factors[*first].size != batch_size || walks(rule.operands[weight], *first)) return {};
  return first;
}

/// Of the product with its operand `weight`. The sequence is the second of three or more dimensions, unless the weight
/// has it too or a window slides along it; `stacked` is the factor that numbers experts.
ProductCut product_cut(const Plan& plan, OperatorId id, std::size_t weight, const std::optional<std::uint32_t>& batch,
                       const std::optional<std::uint32_t>& stacked) {
  const Operation& operation = plan.graph->operation(id);
  const Strategy& strategy = plan.strategies[id];
  const auto axes_of_factor = [&](const std::optional<std::uint32_t>& factor) {
    return factor ? joined(strategy.factors[*factor]) : std::vector<AxisRef>();
  };
  ProductCut cut;
  cut.batch = axes_of_factor(batch);
  const TensorWalk& result = operation.rule.results[0];
  if (const auto second = leading_factor(result, 1); second && result.size() >= 3 && second != batch && !stacked) {
    const bool is_slid = std::ranges::any_of(operation.rule.operands[0], [&](const DimensionWalk& dimension) {
      return dimension.window && dimension.window->output == *second;
    });
    if (!is_slid && !walks(operation.rule.operands[weight], *second)) cut.sequence = axes_of_factor(second);
  }
  const TensorLayout read = operand_layout(operation, strategy, plan.mesh, weight);
  cut.weights = without(without(sorted_cutting_axes(read), axes_of_factor(stacked)), cut.batch);
  return cut;
}

/// Whether most bytes of the gradients (of their sums over micro-batches) are in as many pieces as the optimizer states.
bool gradients_are_cut(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  std::map<TensorId, std::int64_t> state_pieces;  // by parameter
  for (const Binding& binding : plan.program.given) {
    const GraphTensor& tensor = graph.tensor(binding.tensor);
    if (tensor.kind != TensorKind::kState || !tensor.state_of || tensor.type.shape.empty()) continue;
    std::int64_t& pieces = state_pieces[*tensor.state_of];
    pieces = std::max(pieces, num_shards(plan.program.values[binding.value].layout));
  }
  // For each parameter the gradient that its update reads, or the sum over micro-batches.
  std::map<TensorId, std::pair<Bytes, std::int64_t>> gradients;  // bytes of the whole, pieces
  for (const ProgramValue& value : plan.program.values) {
    if (!value.tensor || plan.program.micro_batches > 1) continue;
    const std::optional<TensorId>& parameter = graph.tensor(*value.tensor).gradient_of;
    if (parameter) gradients[*parameter] = {value.type.bytes(), num_shards(value.layout)};
  }
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    if (!op.parameter || !graph.operation(id).type->accumulates) continue;
    const TensorLayout layout = result_layout(graph.operation(id), plan.strategies[id], plan.mesh, 0);
    gradients[*op.parameter] = {graph.tensor(op.results[0]).type.bytes(), num_shards(layout)};
  }
  double bytes = 0, cut = 0;
  for (const auto& [parameter, gradient] : gradients) {
    const auto found = state_pieces.find(parameter);
    if (found == state_pieces.end()) continue;
    bytes += static_cast<double>(gradient.first);
    if (gradient.second >= found->second) cut += static_cast<double>(gradient.first);
  }
  return bytes > 0 && 2 * cut >= bytes;
}

}  // namespace

ParallelismPatterns find_parallelism_patterns(const Plan& plan) {
  const OperatorGraph& graph = *plan.graph;
  std::int64_t vocabulary_size = 0;
  const ExpertFactors experts = find_experts(graph);
  const BatchFactors batches = find_batch(graph);
  const std::int64_t num_rows = batch_size(graph);
  Majority<ProductCut> dense, by_expert;
  AxesMajority other_batch, sequence, queries, keys, heads, stacked, vocabulary, columns;
  std::set<TensorId> tables;
  std::vector<AxesMajority> image;
  for (const OperatorId id : graph.operators().ids()) {
    const GraphOperator& op = graph.operators()[id];
    if (op.pass != Pass::kForward) continue;
    const Operation& operation = graph.operation(id);
    const Strategy& strategy = plan.strategies[id];
    if (operation.type->role == OperatorRole::kLookup && weight_of(graph, op.operands[0]) != nullptr) {
      const std::int64_t rows = operation.operands[0].shape[0];
      if (rows >= vocabulary_size) vocabulary = AxesMajority();
      vocabulary_size = std::max(vocabulary_size, rows);
      const TensorLayout table = operand_layout(operation, strategy, plan.mesh, 0);
      if (rows == vocabulary_size) vocabulary.add(axes_along(table.dimensions[0]), 1);
      const TensorId stored = behind_casts(graph, op.operands[0]);
      columns.add(joined(axes_along(table.dimensions[1])), static_cast<double>(graph.tensor(stored).type.bytes()));
      tables.insert(stored);
    }
    if (operation.type->role == OperatorRole::kTokenNorm && operation.results[0].shape.size() >= 3) {
      sequence.add(axes_along(result_layout(operation, strategy, plan.mesh, 0).dimensions[1]), 1);
    }
    if (operation.type->work != WorkKind::kContraction || operation.results.empty()) continue;
    std::vector<std::int64_t> extents;
    for (const Factor& factor : operation.rule.factors) extents.push_back(factor.size);
    const double work = flops(operation, extents);
    const TensorLayout result = result_layout(operation, strategy, plan.mesh, 0);
    if (const std::optional<std::uint32_t>& batch = batches.factors[id]) {
      other_batch.add(joined(strategy.factors[*batch]), work);
    }
    std::size_t slid = 0;  // dimensions, from the innermost outwards
    for (std::size_t d = operation.rule.operands[0].size(); d-- > 0;) {
      const std::optional<Window>& window = operation.rule.operands[0][d].window;
      if (!window) continue;
      if (image.size() <= slid) image.emplace_back();
      image[slid++].add(joined(strategy.factors[window->output]), work);
    }
    const auto head_dimension = operation.type->head_dimension;
    if (const auto d = head_dimension != nullptr ? head_dimension(operation) : std::nullopt) {
      heads.add(axes_along(result.dimensions[*d]), work);
    }
    if (operation.type->role == OperatorRole::kAttention) {
      const auto of_factor = [&](std::string_view name) {
        const std::optional<std::uint32_t> factor = operation.rule.find(name);
        return factor ? joined(strategy.factors[*factor]) : std::vector<AxisRef>();
      };
      queries.add(of_factor("s"), work);
      keys.add(of_factor("t"), work);
      continue;  // stored keys and values are no weights
    }
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const GraphTensor* weight = weight_of(graph, op.operands[i]);
      if (weight == nullptr || weight->type.shape[0] == vocabulary_size) continue;
      std::optional<std::uint32_t> number = experts.factors[id];
      if (weight->layerwise_parallel || stacked_factor(operation.rule, i) != number) number.reset();
      if (number) stacked.add(joined(strategy.factors[*number]), work);
      const auto batch = batch_of_product(operation.rule, i, batches.factors[id], num_rows);
      const bool is_cut_by_expert = number && !strategy.factors[*number].empty();
      (is_cut_by_expert ? by_expert : dense).add(product_cut(plan, id, i, batch, number), work);
    }
  }
  ParallelismPatterns patterns;
  const ProductCut cut = dense.is_empty() ? by_expert.winner() : dense.winner();
  patterns.batch = cut.batch;
  patterns.context = cut.sequence;
  patterns.weights = cut.weights;
  if (dense.is_empty() && cut.batch.empty()) patterns.batch = without(other_batch.winner(), cut.weights);
  for (const AxesMajority& dimension : image) patterns.image.push_back(dimension.winner());
  patterns.sequence = sequence.winner();
  patterns.queries = queries.winner();
  patterns.keys = keys.winner();
  patterns.heads = heads.winner();
  patterns.stacked = stacked.winner();
  patterns.vocabulary = vocabulary.winner();
  if (are_most_weights(graph, tables)) patterns.columns = columns.winner();
  find_stored_patterns(plan, patterns);
  return patterns;
}

int zero_stage(const Plan& plan, const ParallelismPatterns& patterns) {
  if (!patterns.gathered.empty()) return 3;
  if (patterns.states.empty()) return 0;
  return gradients_are_cut(plan) ? 2 : 1;
}

std::string parallelism_patterns(const Plan& plan) {
  const ParallelismPatterns patterns = find_parallelism_patterns(plan);
  std::string text;
  const auto say = [&](std::string_view what, const std::vector<AxisRef>& axes, std::string_view remark = {}) {
    if (axes.empty()) return;
    if (!text.empty()) text += ", ";
    const std::int64_t pieces = num_pieces(axes);
    text += fmt::format("{} in {}", what, pieces);
    if (pieces != plan.mesh.num_devices()) {
      const std::string names = plan.mesh.to_string(axes);
      text += fmt::format(" over {}", axes.size() == 1 ? names.substr(1, names.size() - 2) : names);
    }
    text += remark;
  };
  say("batch", patterns.batch);
  constexpr std::string_view kOfImage[] = {"width", "height", "depth"};
  for (std::size_t i = std::min(patterns.image.size(), std::size(kOfImage)); i-- > 0;) {
    say(patterns.image.size() == 1 ? "length" : kOfImage[i], patterns.image[i]);
  }
  constexpr std::string_view kContext = " (context parallel)";
  const bool are_alike = patterns.queries == patterns.context;
  say(are_alike ? "sequence and queries" : "sequence", patterns.context, kContext);
  say("sequence", without(patterns.sequence, patterns.context), " around norms (sequence parallel)");
  if (!are_alike) say("queries", patterns.queries, kContext);
  say("keys", patterns.keys, kContext);
  const std::vector<AxisRef> always = without(patterns.heads, patterns.context);
  say("heads", always);
  say("heads", without(patterns.heads, always), " inside attention (Ulysses)");
  say("stacked weights", patterns.stacked, " (as expert parallelism)");
  say("weights", patterns.weights, " (tensor parallel)");
  say("vocabulary", patterns.vocabulary);
  say("columns of embedding tables", patterns.columns);
  if (!patterns.gathered.empty()) {
    say(patterns.states_as_weights ? "weights and optimizer states" : "weights stored", patterns.gathered,
        " (as ZeRO-3)");
  } else {
    say("optimizer states", patterns.states, fmt::format(" (as ZeRO-{})", zero_stage(plan, patterns)));
  }
  return text;
}

}  // namespace shardplan
