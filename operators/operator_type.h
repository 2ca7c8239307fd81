#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/index.h"
#include "operators/operation.h"

namespace shardplan {

using TensorId = Index<struct TensorTag>;  // a tensor of one OperatorGraph

/// A device's piece of one operand, row-major. Every number is held as a double, whatever the dtype. `begin` is the
/// global position of its first element in each dimension that walks at most one factor or a window (elsewhere 0): a
/// windowed dimension comes with its halo.
struct OperandView {
  const double* data = nullptr;
  Shape shape;
  Shape begin;
};
struct ResultView {
  double* data = nullptr;  // zeroed before the call
  Shape shape;
};

/// One local computation: the same kernel on a box of the iteration space. It knows no rank and keeps no state.
struct KernelCall {
  const Operation& operation;  // global sizes
  std::span<const Box> boxes;  // by factor of operation.rule
  std::span<const OperandView> operands;
  std::span<const ResultView> results;
  std::uint64_t seed = 0;  // of random operators; with the global index it decides every draw

  const Box& box(std::string_view factor) const;
  /// The box of the factor that a dimension walks; the whole dimension if it walks none. Not for windows and products.
  Box operand_box(std::size_t operand, std::size_t dimension) const;
  Box result_box(std::size_t result, std::size_t dimension) const;
};
using Kernel = void (*)(const KernelCall&);

/// One phase of an operator whose normalised factor is cut: an ordinary operator, whose factors have the names of the
/// whole operator's. Results that end partial are completed (all_reduce) before the next phase reads them.
struct Phase {
  std::string type;  // of the catalogue
  Attributes attributes;
  std::vector<std::size_t> inputs;  // values: the operands first, then the results of the phases before, in order
};
struct Phases {
  std::vector<Phase> phases;
  std::vector<std::size_t> results;  // values that are the operator's results
};

/// Where a gradient adds its operators; implemented by graph/differentiate.
class GradientBuilder {
 public:
  virtual ~GradientBuilder() = default;
  /// Adds one backward operator and returns its results.
  virtual std::vector<TensorId> add(std::string_view type, const Attributes& attributes,
                                    const std::vector<TensorId>& operands) = 0;
  virtual TensorId constant(double value) = 0;
  virtual TensorType type(TensorId tensor) const = 0;
};
/// What a gradient function is given; it returns one gradient per operand, nothing where there is none or none is
/// needed.
struct GradientRequest {
  const Operation& operation;
  const std::vector<TensorId>& operands;
  const std::vector<TensorId>& results;
  const std::vector<std::optional<TensorId>>& result_gradients;  // nothing: zero
  const std::vector<bool>& needed;                               // by operand
};
using Gradient = std::vector<std::optional<TensorId>> (*)(GradientBuilder&, const GradientRequest&);

/// What kind of work an operator is, for its time and its memory.
enum class WorkKind {
  kContraction,  // matmul, convolution, attention: time by flops or bytes, whichever is more
  kElementwise,  // the same with the device's plain rate; as a rule by bytes
  kView,         // no work and no memory of its own: reshape
};

enum class AttributeKind { kFlag, kInteger, kNumber, kText, kList };

/// A given integer stands for a number where a number is wanted, and for a list of one where a list is.
struct AttributeSpec {
  std::string name;
  AttributeKind kind = AttributeKind::kInteger;
  std::optional<Attribute> standard;  // nothing: must be given
  std::string meaning;
};

/// One line of the catalogue: everything that the project knows about an operator's type. The first result is the one
/// that the operator's own name stands for; further ones (the mask of Dropout, statistics of BatchNorm) serve gradients
/// and states.
struct OperatorType {
  std::string name;                        // MindSpore's primitive name
  std::vector<std::string> operand_names;  // "x1", "x2"; the last ends in "..." if it may repeat
  std::vector<std::string> result_names;   // the last ends in "..." if attributes decide how many there are
  std::vector<AttributeSpec> attributes = {};
  /// Result types of operands and attributes; throws InputError (no place) if they do not fit.
  std::vector<TensorType> (*infer)(const Operation&) = nullptr;
  ShardingRule (*rule)(const Operation&) = nullptr;  // called after `infer`
  Kernel kernel = nullptr;                           // null: cannot be proven (custom operators)
  WorkKind work = WorkKind::kElementwise;
  double flops_per_point = 1;  // of the product of all factors; 2 for a contraction
  double (*whole_flops)(const Operation&) =
      nullptr;                                   // of the whole operation, where the product of factors does not say it
  Phases (*phases)(const Operation&) = nullptr;  // set if the rule may have normalised factors
  Gradient gradient = nullptr;                   // null: not differentiable
  std::string rule_text = {};                    // for `shardplan operators`: "... m k, k n -> ... m n"
  std::string partial_text = {};                 // which partial operands pass through; empty: none
  std::string notes = {};                        // strategy and errors as users know them: lines "name      text"
  bool is_internal = false;                      // phases and gradients: not for model files
  bool accumulates = false;  // where it runs several times a step, each run adds to the result of the one before
};

/// The catalogue, sorted by name.
const std::vector<OperatorType>& operator_catalogue();
/// Null if there is none of that name. The pointer stays valid.
const OperatorType* find_operator_type(std::string_view name);

/// The phases of an operation with normalised factors as operations of their own, in order: value types follow
/// `Phase::inputs`.
std::vector<Operation> phase_operations(const Operation& operation, const Phases& phases);

/// Floating-point operations of the part of the iteration space with these extents per factor.
double flops(const Operation& operation, std::span<const std::int64_t> factor_extents);

}  // namespace shardplan
