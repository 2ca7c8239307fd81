// Which operators run as one kernel.
//
// Compilers (TorchInductor, XLA, MindSpore's graph kernels) and hand-written kernels (Megatron-LM's bias + GeLU, bias +
// dropout + add, scale + mask + softmax; Apex's norms and optimizers) agree on the same chains, which are the rule
// here:
//   - Operators that compute element by element join the kernel that makes an operand, but for casts to f8, which scale by
//     the largest element and so need it first. One operator of the kernel may run over rows (softmax, norm, loss) or
//     reduce; behind a reduction nothing follows.
//   - A kernel reads each tensor from outside once and writes what is read outside. What is between its operators, and
//     constants, stays in registers and takes no memory.
//   - Optimizers run over all parameters at once (multi-tensor kernels): a worker's update starts once.
//   - A bias that is added to a contraction is added while the contraction writes; a weight of one byte that is cast for
//     a contraction alone is read and widened by the contraction, before it computes: with the sum of both times gpt-fast's
//     runs with int8 weights come to 0.94 of the published ones, with the larger of both to 0.83 (docs/accuracy.md).
//     A sum over micro-batches converts what it adds.
//   - Transposes, slices and splits are views for kernels that read strides, which is all kernels but what a reshape
//     makes of several dimensions at once; a concatenation is where its operands are made, if nothing else reads them,
//     and otherwise a kernel that reads strides. A transpose of what a fused kernel makes is its way of writing.
// Libraries alone (`Fusion::kLibrary`, eager PyTorch) make no chains: of these rules only those about the optimizer,
// the bias and strided reads apply; and sums, and in f16 softmaxes, convert what they read to the type of their result
// (PyTorch's `dtype`, which autocast sets). Hand-written kernels (`Fusion::kHandWritten`, Megatron-LM: Narayanan et al., SC'21,
// 4.2) are chains without rows, and the softmax with what precedes it, in its gradient with what follows it: dropout of
// probabilities, norms and sums are separate kernels. All operators of a kernel belong to one pass and one worker, and
// the kernel reads nothing that is computed from its own results: no path may leave it and come back.
//
// What is read from registers is read from them in every plan, even if the layouts of the two sides differ and a
// collective is between them: the collective's time includes its own reading and writing. Only an operator that runs in
// phases is charged in full. An exact account would turn these terms into costs of edges, which a search could not
// distinguish from communication. Operators that the user says are not compiled have the kernels of libraries.

#include "costmodel/kernel_fusion.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "operators/families/communication.h"

namespace shardplan {
namespace {

enum class KernelKind {
  kPointwise,    // element by element
  kRow,          // over rows; results as large as the operand or one number per row
  kReduction,    // a sum or maximum
  kMove,         // the same elements elsewhere
  kView,         // the same memory
  kContraction,  // a library kernel
  kOther,
};

/// The dimensions walk every factor with more than one value.
bool is_full(const TensorWalk& walk, const std::vector<Factor>& factors) {
  std::vector<char> walked(factors.size(), 0);
  for (const DimensionWalk& dimension : walk) {
    if (dimension.window) return false;
    for (const std::uint32_t factor : dimension.factors) walked[factor] = 1;
  }
  for (std::size_t factor = 0; factor < factors.size(); ++factor) {
    if (!walked[factor] && factors[factor].size > 1) return false;
  }
  return true;
}

bool is_move(const Operation& operation) {
  constexpr std::string_view kMoves[] = {"Transpose", "Split", "Slice", "StridedSlice", "Concat", "Stack"};
  return std::find(std::begin(kMoves), std::end(kMoves), operation.type->name) != std::end(kMoves);
}

bool joins_operands(const Operation& operation) {
  return operation.type->name == "Concat" || operation.type->name == "Stack";
}

KernelKind kind_of(const Operation& operation) {
  const OperatorType& type = *operation.type;
  if (is_communication(type)) return KernelKind::kOther;
  if (type.work == WorkKind::kView) return KernelKind::kView;
  if (type.work == WorkKind::kContraction) return KernelKind::kContraction;
  if (is_move(operation)) return KernelKind::kMove;
  const bool has_elements = !operation.operands.empty() && !operation.results.empty();
  if (type.accumulates || type.in_place != InPlace::kNo || !has_elements) return KernelKind::kOther;
  const ShardingRule& rule = operation.rule;
  const bool reads_full = std::any_of(rule.operands.begin(), rule.operands.end(),
                                      [&](const TensorWalk& walk) { return is_full(walk, rule.factors); });
  if (!reads_full) return KernelKind::kOther;
  bool has_row = false, has_sum = false;
  for (const Factor& factor : rule.factors) {
    if (factor.size == 1) continue;
    has_row |= factor.kind == FactorKind::kNormalised || factor.kind == FactorKind::kNeedReplication;
    has_sum |= factor.kind == FactorKind::kReduction;
  }
  if (has_row) return KernelKind::kRow;
  if (has_sum) return KernelKind::kReduction;
  return is_full(rule.results[0], rule.factors) ? KernelKind::kPointwise : KernelKind::kOther;
}

/// A forward statistic over dimensions other than the last (batch norm) needs its operand twice: nothing can be
/// computed while reading it.
bool takes_prologue(const Operation& operation, Pass pass) {
  if (pass != Pass::kForward) return true;
  const TensorWalk& walk = operation.rule.operands[0];
  bool behind = false;
  for (const DimensionWalk& dimension : walk) {
    for (const std::uint32_t factor : dimension.factors) {
      const Factor& walked = operation.rule.factors[factor];
      if (walked.size == 1) continue;
      if (walked.kind == FactorKind::kNormalised) {
        behind = true;
      } else if (behind && walked.kind == FactorKind::kPassThrough) {
        return false;
      }
    }
  }
  return true;
}

/// A reshape that merges dimensions which are apart in a permuted tensor (or, for the last dimension, in a sliced one).
bool merges_dimensions(const Shape& from, const Shape& to, bool only_last) {
  std::int64_t rest = 1;  // of a dimension of `from` that is split
  std::size_t next = 0;
  for (const std::int64_t size : to) {
    std::int64_t product = rest;
    int parts = rest > 1 ? 1 : 0;
    for (; product < size && next < from.size(); ++next) {
      parts += from[next] > 1 ? 1 : 0;
      product *= from[next];
    }
    if (product % size != 0) return true;
    if (parts > 1 && (!only_last || next == from.size())) return true;
    rest = product / size;
  }
  return false;
}

/// Matrices that lie at more than one distance: of [B, T, H, D] seen as [B, H, T, D] one image's heads are D apart, the
/// next image's H * T * D. A library's batched product takes one distance, so it copies them first.
bool has_two_strides(const Operation& transpose) {
  const auto& order = transpose.list("perm");
  const Shape& from = transpose.operands[0].shape;
  std::int64_t last = -1;
  for (std::size_t d = 0; d + 2 < order.size(); ++d) {
    const std::int64_t rank = static_cast<std::int64_t>(order.size()), dimension = (order[d] + rank) % rank;
    if (from[static_cast<std::size_t>(dimension)] == 1) continue;
    if (last >= 0 && dimension != last + 1) return true;
    last = dimension;
  }
  return false;
}

class FusedChains {
 public:
  FusedChains(const OperatorGraph& graph, Fusion fusion)
      : graph_(graph), makes_chains_(fusion != Fusion::kLibrary), only_written_(fusion == Fusion::kHandWritten) {
    const std::size_t num_operators = graph.operators().size(), num_tensors = graph.tensors().size();
    for (const OperatorId op : graph.operators().ids()) kinds_.push_back(kind_of(graph.operation(op)));
    kernel_of_.resize(num_operators, kNone);
    source_.resize(num_tensors);
    readers_.resize(num_tensors);
    escapes_.resize(num_tensors, 0);
    traffic_.resize(num_operators);
    result_.in_registers.resize(num_tensors, 0);
  }

  KernelFusion run() {
    find_sources();
    for (const OperatorId op : graph_.operators().ids()) place(op);
    for (const OperatorId op : graph_.operators().ids()) {
      if (kernel_of_[op] != kNone) set_traffic(op);
    }
    for (std::size_t op = graph_.operators().size(); op-- > 0;) free_move(OperatorId(op));
    for (const OperatorId op : graph_.operators().ids()) read_values_with_keys(op);
    for (const TensorId id : graph_.tensors().ids()) result_.in_registers[id] = result_.in_registers[source_[id]];
    for (const OperatorId op : graph_.operators().ids()) {
      const GraphOperator& info = graph_.operators()[op];
      if (kernel_of_[op] == kNone) continue;
      for (std::size_t i = 0; i < info.results.size(); ++i) {
        traffic_[op].to_registers[i] = result_.in_registers[info.results[i]];
      }
    }
    share_traffic();
    return std::move(result_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  /// Chains further apart than this are left alone, so that the search for a path back stays short.
  static constexpr std::size_t kMostVisited = 256;
  static constexpr std::size_t kMostMembers = 64;  // of one kernel

  struct Kernel {
    std::vector<OperatorId> members;  // in program order
    bool has_reducer = false;
    std::set<TensorId> read;  // from outside
  };

  /// Of a million operators, those with one operation have a handful of different ones.
  void share_traffic() {
    IdVector<OperationId, std::vector<SharedValue<KernelTraffic>>> known(graph_.operations().size());
    result_.traffic.reserve(traffic_.size());
    for (const OperatorId id : graph_.operators().ids()) {
      auto& of_operation = known[op_(id).operation];
      auto found = std::ranges::find(of_operation, traffic_[id], &SharedValue<KernelTraffic>::operator*);
      if (found == of_operation.end()) found = of_operation.insert(found, std::move(traffic_[id]));
      result_.traffic.push_back(*found);
    }
  }

  const GraphOperator& op_(OperatorId id) const { return graph_.operators()[id]; }

  /// Whether chains are made of the operator, which for a backward one is that of its forward operator.
  bool makes_chains(OperatorId id) const {
    const GraphOperator& op = op_(id);
    return makes_chains_ && (op.forward ? op_(*op.forward) : op).is_compiled;
  }

  /// Looks through views: the result of a view stands for its source.
  void find_sources() {
    for (const TensorId id : graph_.tensors().ids()) source_[id] = id;
    for (const OperatorId id : graph_.operators().ids()) {
      const GraphOperator& op = op_(id);
      if (kinds_[id] == KernelKind::kView && is_beside_operand(id)) {
        for (const TensorId result : op.results) source_[result] = source_[op.operands[0]];
        continue;
      }
      for (std::size_t i = 0; i < op.operands.size(); ++i) readers_[source_[op.operands[i]]].push_back({id, i});
    }
    for (const TensorId id : graph_.tensors().ids()) {
      const GraphTensor& tensor = graph_.tensor(id);
      if (tensor.is_output || tensor.updates) escapes_[source_[id]] = 1;
    }
  }

  /// The results of another worker are sent.
  bool is_beside_operand(OperatorId id) const {
    const std::optional<OperatorId>& producer = graph_.tensor(op_(id).operands[0]).producer;
    return !producer || op_(*producer).worker == op_(id).worker;
  }

  bool runs_together(OperatorId a, OperatorId b) const {
    return op_(a).pass == op_(b).pass && graph_.runs(a) == graph_.runs(b) && op_(a).worker == op_(b).worker;
  }

  bool is_fusable(OperatorId op) const {
    return kinds_[op] == KernelKind::kPointwise || kinds_[op] == KernelKind::kRow ||
           kinds_[op] == KernelKind::kReduction;
  }

  /// True if the operand comes element for element from a kernel that may be extended.
  bool continues(OperatorId op, std::size_t operand) const {
    const TensorId tensor = source_[op_(op).operands[operand]];
    const std::optional<OperatorId>& producer = graph_.tensor(tensor).producer;
    if (!producer || kernel_of_[*producer] == kNone || !runs_together(*producer, op)) return false;
    const Operation& from = graph_.operation(*producer);
    const Operation& to = graph_.operation(op);
    return kinds_[*producer] != KernelKind::kReduction &&
           is_full(from.rule.results[graph_.tensor(tensor).result], from.rule.factors) &&
           is_full(to.rule.operands[operand], to.rule.factors);
  }

  /// Something that `op` reads is computed, outside the kernel, from the kernel's own results.
  bool closes_cycle(OperatorId op, std::size_t kernel) const {
    const std::size_t first = kernels_[kernel].members.front().value();
    std::vector<OperatorId> open;
    std::set<OperatorId> seen;
    const auto visit_operands = [&](OperatorId of, bool from_kernel) {
      for (const TensorId operand : op_(of).operands) {
        const std::optional<OperatorId>& producer = graph_.tensor(operand).producer;
        if (!producer) continue;
        const std::size_t other = kernel_of_[*producer];
        if (from_kernel && other == kernel) continue;
        const std::size_t last = other == kNone ? producer->value() : kernels_[other].members.back().value();
        if (last >= first && seen.insert(*producer).second) open.push_back(*producer);
      }
    };
    visit_operands(op, true);
    for (const OperatorId member : kernels_[kernel].members) visit_operands(member, true);
    while (!open.empty()) {
      const OperatorId next = open.back();
      open.pop_back();
      if (kernel_of_[next] == kernel || seen.size() > kMostVisited) return true;
      if (kernel_of_[next] == kNone) {
        visit_operands(next, false);
        continue;
      }
      for (const OperatorId member : kernels_[kernel_of_[next]].members) visit_operands(member, false);
    }
    return false;
  }

  bool is_bias_of_contraction(OperatorId id) const {
    if (graph_.operation(id).type->name != "BiasAdd") return false;
    const TensorId product = source_[op_(id).operands[0]];
    const std::optional<OperatorId>& producer = graph_.tensor(product).producer;
    return producer && kinds_[*producer] == KernelKind::kContraction && runs_together(*producer, id) &&
           readers_[product].size() == 1 && !escapes_[product];
  }

  /// Whether a library's kernel converts between types: of what a sum or a softmax reads, or the softmax's gradient
  /// writes. PyTorch's softmaxes convert f16 only.
  bool converts(OperatorId id, OperatorId before) const {
    const Operation &last = graph_.operation(id), &first = graph_.operation(before);
    const std::string_view name = last.type->name;
    if (first.type->role == OperatorRole::kConversion) {
      if (name == "ReduceSum") return true;
      return (name == "Softmax" || name == "LogSoftmax") && first.operands[0].dtype == DataType::kF16;
    }
    const bool is_slope = first.type->name == "SoftmaxGrad" || first.type->name == "LogSoftmaxGrad";
    return is_slope && last.type->role == OperatorRole::kConversion && last.results[0].dtype == DataType::kF16;
  }

  /// Scaled to the range of one byte (PyTorch's float8: amax, then scale and cast): a kernel of its own.
  bool needs_largest_first(OperatorId id) const {
    const Operation& operation = graph_.operation(id);
    return operation.type->role == OperatorRole::kConversion && operation.results[0].dtype == DataType::kF8E4M3;
  }

  /// Whether there is a kernel that executes `id` after the members of `kernel`.
  bool is_written(OperatorId id, const Kernel& kernel) const {
    if (makes_chains(id) != makes_chains(kernel.members.front())) return false;
    if (!makes_chains(id)) return kernel.members.size() == 1 && converts(id, kernel.members.front());
    if (!only_written_) return true;
    const auto is = [&](OperatorId op, std::string_view name) { return graph_.operation(op).type->name == name; };
    if (kinds_[id] != KernelKind::kPointwise) return is(id, "Softmax");
    return !kernel.has_reducer || is(kernel.members.front(), "SoftmaxGrad");
  }

  bool adds_to_sum(OperatorId id) const { return graph_.operation(id).type->accumulates; }

  /// The only reader of what a Cast makes, if it converts while it reads: a product a weight of one byte, a sum over
  /// micro-batches anything.
  std::optional<Reader> converting_reader(OperatorId id) const {
    const Operation& operation = graph_.operation(id);
    if (operation.type->role != OperatorRole::kConversion) return std::nullopt;
    const TensorId wide = op_(id).results[0];
    if (escapes_[wide] || readers_[wide].size() != 1) return std::nullopt;
    const Reader& reader = readers_[wide][0];
    if (!runs_together(id, reader.op)) return std::nullopt;
    if (adds_to_sum(reader.op)) return reader;
    const GraphTensor& weight = graph_.tensor(op_(id).operands[0]);
    const bool is_weight = weight.kind == TensorKind::kParameter && element_bytes(weight.type.dtype) == 1;
    const bool is_widened = element_bytes(operation.results[0].dtype) > 1;
    const bool is_product = kinds_[reader.op] == KernelKind::kContraction;
    return makes_chains(id) && is_weight && is_widened && is_product ? std::optional(reader) : std::nullopt;
  }

  void place(OperatorId id) {
    if (!is_fusable(id)) return;
    if (const std::optional<Reader> reader = converting_reader(id)) {
      traffic_[id].is_free = true;
      KernelTraffic& traffic = traffic_[reader->op];
      traffic.from_registers.resize(op_(reader->op).operands.size(), 0);
      traffic.from_registers[reader->operand] = 1;
      if (traffic.widened_from.empty()) {
        for (const TensorType& operand : graph_.operation(reader->op).operands) {
          traffic.widened_from.push_back(operand.dtype);
        }
      }
      traffic.widened_from[reader->operand] = graph_.operation(id).operands[0].dtype;
      // Where gradients are reduced before they are added, they are so in the type of the sum.
      if (!adds_to_sum(reader->op)) result_.in_registers[op_(id).results[0]] = 1;
      return;
    }
    if (is_bias_of_contraction(id)) {
      traffic_[id].is_free = true;
      result_.in_registers[source_[op_(id).operands[0]]] = 1;
      return;
    }
    const bool reduces = kinds_[id] != KernelKind::kPointwise;
    std::size_t best = kNone;
    Bytes most = 0;
    const bool may_join = !needs_largest_first(id) &&
                          (kinds_[id] != KernelKind::kRow || takes_prologue(graph_.operation(id), op_(id).pass));
    for (std::size_t i = 0; may_join && i < op_(id).operands.size(); ++i) {
      if (!continues(id, i)) continue;
      const TensorId tensor = op_(id).operands[i];
      const std::size_t kernel = kernel_of_[*graph_.tensor(source_[tensor]).producer];
      if (kernels_[kernel].members.size() == kMostMembers || (reduces && kernels_[kernel].has_reducer)) continue;
      if (!is_written(id, kernels_[kernel])) continue;
      const Bytes bytes = graph_.tensor(tensor).type.bytes();
      if (bytes <= most || closes_cycle(id, kernel)) continue;
      best = kernel;
      most = bytes;
    }
    if (best == kNone) {
      best = kernels_.size();
      kernels_.emplace_back();
    }
    kernels_[best].members.push_back(id);
    kernels_[best].has_reducer |= reduces;
    kernel_of_[id] = best;
  }

  void set_traffic(OperatorId id) {
    const GraphOperator& op = op_(id);
    Kernel& kernel = kernels_[kernel_of_[id]];
    KernelTraffic& traffic = traffic_[id];
    traffic.is_started = kernel.members.front() == id;
    if (traffic.is_started && op.pass == Pass::kUpdate) traffic.is_started = started_updates_.insert(op.worker).second;
    traffic.from_registers.resize(op.operands.size(), 0);
    traffic.to_registers.resize(op.results.size(), 0);
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const TensorId source = source_[op.operands[i]];
      const GraphTensor& tensor = graph_.tensor(source);
      const bool is_inside = tensor.producer && kernel_of_[*tensor.producer] == kernel_of_[id];
      const bool is_made_on_the_way = makes_chains(id) && tensor.kind == TensorKind::kConstant;
      traffic.from_registers[i] = is_inside || is_made_on_the_way || !kernel.read.insert(source).second;
    }
    for (const TensorId result : op.results) {
      const auto& readers = readers_[result];
      const bool stays = !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](const Reader& reader) {
        return kernel_of_[reader.op] == kernel_of_[id];
      });
      if (stays && !escapes_[result]) result_.in_registers[result] = 1;
    }
  }

  // ---- moves

  /// Whether every reader of the tensor, also through views that keep the strides, is a kernel that reads strided
  /// memory. A concatenation that copies is one; where its operands are made in its result, none reads them.
  bool is_read_in_strides(TensorId tensor, bool only_last) const {
    if (graph_.tensor(tensor).is_output || graph_.tensor(tensor).updates) return false;
    const auto& readers = graph_.tensor(tensor).readers;
    return std::all_of(readers.begin(), readers.end(), [&](const Reader& reader) {
      if (kinds_[reader.op] == KernelKind::kMove) return traffic_[reader.op].is_free != joins(reader.op);
      if (kinds_[reader.op] != KernelKind::kView) return is_fusable(reader.op) || is_contraction(reader.op);
      const TensorId view = op_(reader.op).results[0];
      const bool merges =
          merges_dimensions(graph_.tensor(tensor).type.shape, graph_.tensor(view).type.shape, only_last);
      return !merges && is_read_in_strides(view, only_last);
    });
  }

  bool is_in_batched_product(TensorId tensor) const {
    const auto& readers = graph_.tensor(tensor).readers;
    return std::any_of(readers.begin(), readers.end(),
                       [&](const Reader& reader) { return graph_.operation(reader.op).type->name == "BatchMatMul"; });
  }
  bool is_contraction(OperatorId op) const { return kinds_[op] == KernelKind::kContraction; }
  bool joins(OperatorId op) const { return joins_operands(graph_.operation(op)); }

  /// The only reader of the result of a kernel of the same pass.
  bool takes_over(OperatorId id, std::size_t operand) const {
    const TensorId source = source_[op_(id).operands[operand]];
    const std::optional<OperatorId>& producer = graph_.tensor(source).producer;
    return producer && readers_[source].size() == 1 && !escapes_[source] && runs_together(*producer, id) &&
           kinds_[*producer] != KernelKind::kOther;
  }

  void free_move(OperatorId id) {
    if (kinds_[id] != KernelKind::kMove) return;
    const GraphOperator& op = op_(id);
    KernelTraffic& traffic = traffic_[id];
    if (joins(id)) {
      traffic.is_free = makes_chains(id);
      for (std::size_t i = 0; i < op.operands.size(); ++i) traffic.is_free = traffic.is_free && takes_over(id, i);
      return;
    }
    const bool permutes = graph_.operation(id).type->name == "Transpose";
    if (permutes && !makes_chains(id) && has_two_strides(graph_.operation(id)) && is_in_batched_product(op.results[0]))
      return;
    traffic.is_free = std::all_of(op.results.begin(), op.results.end(),
                                  [&](TensorId result) { return is_read_in_strides(result, !permutes); });
    if (traffic.is_free || !makes_chains(id) || !permutes || !takes_over(id, 0)) return;
    const TensorId source = source_[op.operands[0]];
    if (kernel_of_[*graph_.tensor(source).producer] == kNone) return;
    traffic.is_free = true;  // the kernel writes the permuted tensor instead
  }

  /// The tensor in whose memory this one is: what it is a view or a slice of.
  TensorId memory_of(TensorId tensor) const {
    while (true) {
      tensor = source_[tensor];
      const std::optional<OperatorId>& producer = graph_.tensor(tensor).producer;
      if (!producer || kinds_[*producer] != KernelKind::kMove || !traffic_[*producer].is_free) return tensor;
      if (!graph_.operation(*producer).type->name.ends_with("Slice")) return tensor;
      tensor = op_(*producer).operands[0];
    }
  }

  /// Attention whose values are its keys, or a slice of them (a latent cache, DeepSeek's FlashMLA), has them already.
  void read_values_with_keys(OperatorId id) {
    const Operation& operation = graph_.operation(id);
    if (operation.type->name != "FlashAttention") return;
    const GraphOperator& op = op_(id);
    if (memory_of(op.operands[1]) != memory_of(op.operands[2])) return;
    const bool has_more_keys = operation.operands[1].bytes() >= operation.operands[2].bytes();
    KernelTraffic& traffic = traffic_[id];
    traffic.from_registers.resize(op.operands.size(), 0);
    traffic.from_registers[has_more_keys ? 2 : 1] = 1;
  }

  const OperatorGraph& graph_;
  const bool makes_chains_;
  const bool only_written_;  // only kernels that exist as hand-written ones
  IdVector<OperatorId, KernelKind> kinds_;
  IdVector<OperatorId, std::size_t> kernel_of_;
  std::vector<Kernel> kernels_;
  IdVector<TensorId, TensorId> source_;
  IdVector<TensorId, std::vector<Reader>> readers_;  // of sources, through views
  IdVector<TensorId, char> escapes_;
  std::set<int> started_updates_;  // the workers whose update has started
  IdVector<OperatorId, KernelTraffic> traffic_;
  KernelFusion result_;
};

}  // namespace

KernelFusion kernel_fusion(const OperatorGraph& graph, Fusion fusion) {
  if (fusion != Fusion::kNone) return FusedChains(graph, fusion).run();
  KernelFusion none;
  none.traffic.resize(graph.operators().size());
  none.in_registers.resize(graph.tensors().size(), 0);
  return none;
}

}  // namespace shardplan
