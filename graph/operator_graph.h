#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/index.h"
#include "base/optional_index.h"
#include "base/rare_value.h"
#include "base/shared_text.h"
#include "base/shared_value.h"
#include "base/short_vector.h"
#include "graph/name_table.h"
#include "graph/padded_shape.h"
#include "operators/operation.h"
#include "operators/operator_type.h"

namespace shardplan {

using OperatorId = Index<struct OperatorTag>;
using OperationId = Index<struct OperationTag>;

enum class TensorKind : std::uint8_t {
  kInput,      // new values in each step, or in each of its micro-batches
  kParameter,  // stored between steps; trained unless requires_grad is false
  kState,      // the optimizer's, stored between steps
  kConstant,   // generated on each device, in the layout that its reader takes; never communicated
  kResult,     // what an operator computes
};

enum class Pass : std::uint8_t { kForward, kBackward, kUpdate };

/// The contents of a constant: one value everywhere; 0, 1, 2, ... along the last dimension; or 0 on and below the
/// diagonal of the last two dimensions and -1e9 above it (causal mask).
struct Fill {
  enum class Kind { kValue, kIota, kCausal };
  Kind kind = Kind::kValue;
  double value = 0;

  bool operator==(const Fill&) const = default;
};

/// The user's layout of one tensor, as written; strategies/ interprets it.
struct StrategyEntry {
  enum class Kind {
    kTuple,         // [2, 4]: pieces per dimension
    kLayout,        // [{dp}, {mp}]: text in axis names
    kDataParallel,  // null: the highest dimension sharded over all devices
    kFollow,        // []: from the other operands
  };
  Kind kind = Kind::kFollow;
  std::vector<std::int64_t> tuple;
  std::string layout;
  SourcePlace place;
};

/// The user's layouts of one operator's operands and results; a list is empty if the user leaves them open.
struct UserStrategy {
  std::vector<StrategyEntry> in;
  std::vector<StrategyEntry> out;
  SourcePlace in_place;
  SourcePlace out_place;
  std::string owner;  // the key that `in` comes from, if it is not the operator's in_strategy: "w: state_strategy"
};

/// The user's decisions about how one parameter is trained. Open ones follow from its type, and from the parallel mode
/// or the search.
struct ParameterPins {
  std::optional<StrategyEntry> gradient_strategy;  // layout of the gradient that its update reads
  std::optional<StrategyEntry> state_strategy;     // layout in which its states are stored and its update is computed
  std::optional<DataType> gradient_dtype;  // type in which its gradient is summed (also over micro-batches) and held
  std::optional<DataType> state_dtype;     // type in which its moments are stored (not a master copy)
};

struct Reader {
  OperatorId op;
  std::uint32_t operand = 0;

  Reader() = default;
  Reader(OperatorId of, std::size_t position) : op(of), operand(static_cast<std::uint32_t>(position)) {}

  bool operator==(const Reader&) const = default;
};

struct GraphTensor {
  SharedText name;  // "layers.3.attn.qkv.weight"
  TensorType type;
  TensorKind kind = TensorKind::kResult;
  bool requires_grad = true;           // false for a frozen parameter
  bool parallel_optimizer = true;      // the parallel optimizer may shard its states
  bool layerwise_parallel = false;     // every device has its own; of a planned graph: one for each position of
                                       // dimension 0 (graph/per_device.h)
  bool is_master_copy = false;         // a kState that holds in f32 what the parameter holds in two bytes
  bool is_output = false;              // the graph returns it; never partial
  std::uint32_t result = 0;            // index among the producer's results
  OptionalIndex<OperatorId> producer;  // set for a kResult only
  OptionalIndex<TensorId> state_of;    // the parameter to whose update this kState belongs
  OptionalIndex<TensorId>
      gradient_of;  // the parameter whose complete gradient this is: summed, and possibly cast or scaled
  OptionalIndex<TensorId> gradient_for;  // the tensor of which this is the gradient, or one of its summands
  OptionalIndex<TensorId> updates;       // the parameter or state whose new value this is: stored in its layout at the
                                         // end of the step
  std::optional<int> comm_fusion;        // the user's fusion id of a parameter's gradient; 0: never joined
  ShortVector<Reader> readers;           // in program order
  Fill fill;                             // the contents of a kConstant
  /// Values of an integer input are drawn below this number (the size of the dimension it indexes); 0: unknown.
  std::int64_t index_extent = 0;
  RareValue<StrategyEntry> layout;  // the user's: of an input (dataset_strategy), a parameter
  RareValue<ParameterPins> pins;    // of a trained parameter, if the user decided something
  RareValue<PaddedShape> padding;   // which positions exist without padding (graph/pad.h); nothing: all do
  SourcePlace place;
};

struct GraphOperator {
  SharedText name;  // "layers.3.attn.qkv.matmul"
  OperationId operation;
  OptionalIndex<OperatorId> forward;  // of a backward operator: the operator whose gradient or copy it is
  OptionalIndex<TensorId> parameter;  // the parameter whose gradient it completes or which it updates
  Pass pass = Pass::kForward;
  bool is_copy = false;           // recomputes `forward` in the backward pass, under its strategy
  bool is_data_parallel = false;  // by parallel_mode of its block or the file (semi-auto without a strategy)
  bool is_inserted = false;       // by autocast: the model itself has no such operator
  bool is_compiled = true;        // false: of a forward operator and its backward ones, elementwise chains stay apart
  bool is_placed = false;  // by `place`; other operators are on worker 0, an update where its parameter is first read
  ShortVector<TensorId> operands;
  ShortVector<TensorId> results;
  SharedText scope;  // block path with block types, as MindSpore prints it: "block1-BasicBlock/dense1-Dense"
  SharedValue<UserStrategy> strategy;
  std::optional<int> level;    // its own or that of the innermost block that has one
  SharedText level_scope;      // full name of that operator or block, which is searched separately
  SharedText recompute_scope;  // full name of the recomputed operator or outermost block; empty: kept
  int worker = 0;              // the worker that computes it (program/place_program.h)
  /// The user's decision about operands (not weights) that this operator and the backward pass read: between the passes
  /// they stay in the layout from before they were gathered (true) or in the one this operator reads (false).
  std::optional<bool> gather_again;
  /// Set for an Identity that holds a strategy on the border of a block or on a result: the full name of that
  /// block or result. It computes nothing and is not printed as an operator. Empty for all others.
  SharedText border_of;
  SourcePlace place;
};

/// The computation: operators in program order, which is fixed before the search, and the tensors between them. Equal
/// operations are stored once. Built completely by `OperatorGraphBuilder`, then immutable.
class OperatorGraph {
 public:
  const std::string& name() const { return name_; }
  const IdVector<OperationId, Operation>& operations() const { return operations_; }
  const IdVector<TensorId, GraphTensor>& tensors() const { return tensors_; }
  const IdVector<OperatorId, GraphOperator>& operators() const { return operators_; }
  const Operation& operation(OperatorId op) const { return operations_[operators_[op].operation]; }
  const GraphTensor& tensor(TensorId id) const { return tensors_[id]; }
  std::optional<TensorId> loss() const { return loss_; }
  bool is_training() const { return is_training_; }
  /// How many times per step the forward and backward operators run, each time on new inputs; updates run once, at the
  /// end.
  std::int64_t micro_batches() const { return micro_batches_; }
  bool is_in_micro_batch(OperatorId op) const { return micro_batches_ > 1 && operators_[op].pass != Pass::kUpdate; }
  std::int64_t runs(OperatorId op) const { return is_in_micro_batch(op) ? micro_batches_ : 1; }
  /// True for a sum over the micro-batches, which is live through all of them.
  bool is_accumulated(TensorId id) const {
    return micro_batches_ > 1 && tensors_[id].producer && operation(*tensors_[id].producer).type->accumulates;
  }
  std::optional<OperatorId> find_operator(std::string_view name) const;
  std::optional<TensorId> find_tensor(std::string_view name) const;

 private:
  friend class OperatorGraphBuilder;
  std::string name_;
  IdVector<OperationId, Operation> operations_;
  IdVector<TensorId, GraphTensor> tensors_;
  IdVector<OperatorId, GraphOperator> operators_;
  NameTable operator_names_;
  NameTable tensor_names_;
  std::map<std::string, TensorId, std::less<>> aliases_;  // other names of tensors
  std::optional<TensorId> loss_;
  bool is_training_ = false;
  std::int64_t micro_batches_ = 1;
  std::vector<std::shared_ptr<const OperatorType>> own_types_;
};

/// Collects tensors and operators in any order; `build` sorts the operators topologically (ties: in the order of
/// addition) and fills in producers and readers. Tensors keep their indices, and so do operators that were added in a
/// topological order. Equal operations are stored once.
class OperatorGraphBuilder {
 public:
  explicit OperatorGraphBuilder(std::string name);
  ~OperatorGraphBuilder();
  OperatorGraphBuilder(OperatorGraphBuilder&&) noexcept;
  OperatorGraphBuilder& operator=(OperatorGraphBuilder&&) noexcept;
  /// Continues from a finished graph, whose tensors and operators keep their indices.
  explicit OperatorGraphBuilder(OperatorGraph graph);

  TensorId add_tensor(GraphTensor tensor);
  /// `op.results` is filled with new kResult tensors named by `result_names` (or the operator's name if there is one
  /// result and no name is given). Operand types come from tensors added before. `operation` must come from
  /// make_operation on those types.
  OperatorId add_operator(GraphOperator op, Operation operation, std::vector<std::string> result_names = {});
  /// The same in two steps, if there are many such operators: `op.operation` must come from `intern`.
  OperationId intern(Operation operation);
  OperatorId add_operator(GraphOperator op, std::vector<std::string> result_names = {});
  GraphTensor& tensor(TensorId id);
  GraphOperator& op(OperatorId id);
  const Operation& operation(OperatorId id) const;
  const Operation& operation(OperationId id) const;
  std::size_t num_tensors() const;
  std::size_t num_operators() const;
  /// Resolves ties as if `op` had been added just before `anchor`; of several with one anchor, the first added comes
  /// first.
  void place_before(OperatorId op, OperatorId anchor);
  /// Removes operators whose results no other operator reads, together with their results and with constants that are
  /// no longer read. Invalidates all indices of tensors and operators.
  void remove(const IdVector<OperatorId, char>& is_removed);
  void set_loss(TensorId loss);
  void set_training(std::int64_t micro_batches = 1);
  /// Another name under which `find_tensor` finds a tensor: that of the block whose result it is.
  void add_alias(std::string name, TensorId tensor);

  /// Keeps the object that `operation.type` points to alive as long as the graph, for types that are not in the
  /// catalogue.
  void own(std::shared_ptr<const OperatorType> type);

  /// Builds the graph. Throws InputError that names the operators of a cycle, or a name that is given twice.
  OperatorGraph build();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardplan
