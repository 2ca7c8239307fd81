#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operators/gradient.h"
#include "operators/kernel.h"
#include "operators/operation.h"

namespace shardplan {

/// Names of operands and results, written "x1, x2 -> y". A last name "x..." may repeat; last names "x?" are optional.
/// A result with the name of an operand is its new value, which for a stored tensor is kept for the next step
/// ("moving_mean" of BatchNorm).
struct Signature {
  std::vector<std::string> operands;
  std::size_t num_optional = 0;  // how many of the last operands may be left out
  std::vector<std::string> results;

  Signature() = default;
  Signature(const char* text);  // implicit, so that the tables of operators read `.signature = "x1, x2 -> y"`
};

enum class AttributeKind { kFlag, kInteger, kNumber, kText, kList };

/// A given integer stands for a number where a number is expected, and for a list of one where a list is.
struct AttributeSpec {
  std::string name;
  AttributeKind kind = AttributeKind::kInteger;
  std::optional<Attribute> default_value;  // nothing: must be given
  std::string description;
  std::optional<double> least = std::nullopt;  // of a number; nothing: any
};

/// One phase of an operator whose normalised factor is sharded: an ordinary operator whose factors have the names of
/// the full operator's. Results that end partial are completed (all_reduce) before the next phase reads them.
struct Phase {
  std::string type;  // its name in the catalogue
  Attributes attributes;
  std::vector<std::size_t> inputs;  // values: the operands first, then the results of the phases before, in order
};
struct Phases {
  std::vector<Phase> phases;
  std::vector<std::size_t> results;  // values that are the operator's results
};
/// The phases of an operator, given the number of pieces of each factor.
using PhasesOf = Phases (*)(const Operation&, std::span<const std::int64_t> pieces);

/// What kind of work an operator is, for its time and its memory.
enum class WorkKind {
  kContraction,  // matmul, convolution, attention: time by flops or bytes, whichever is more
  kElementwise,  // the same with the device's plain rate; as a rule by bytes
  kView,         // no work and no memory of its own: reshape
};

/// The role of an operator for those who read plans and fill tensors with values.
enum class OperatorRole {
  kOther,
  kLookup,      // picks rows of its first operand by indices: embeddings
  kAttention,   // a contraction at the device's efficiency of attention
  kTokenNorm,   // normalises the last dimensions of every token: LayerNorm, RmsNorm
  kConversion,  // the operand's values in another type: Cast
};

/// Of a result with the name of an operand: whether it is written into that operand, a stored tensor, and there only
/// where the elements of the last operand belong. The rest is neither read nor written.
enum class InPlace {
  kNo,
  kOverwritten,
  kUpdated,  // what is written is read before
};

/// Operands by name that together pass a partial sum (or maximum) through; see `ShardingRule::linear`. Of a repeated
/// operand "x..." means all at once, "x" each one separately.
using OperandGroups = std::vector<std::vector<std::string>>;

/// One line of the catalogue: everything the project knows about an operator type. The first result has the
/// operator's own name; further ones (the mask of Dropout, statistics of BatchNorm) are for gradients and states.
struct OperatorType {
  std::string name = {};  // MindSpore's primitive name
  Signature signature = {};
  std::vector<AttributeSpec> attributes = {};

  /// Result types of operands and attributes; throws InputError (no place) if they do not fit.
  std::vector<TensorType> (*infer)(const Operation&) = nullptr;
  /// The rule as text: "... m k, k n -> ... m n; k: sum" ("...": any further dimensions, "s*h+kh": a window), or a few
  /// words if it cannot be written as text.
  std::string rule_text = {};
  ShardingRule (*rule)(const Operation&) = nullptr;  // called after `infer`; null: `rule_text` is the rule
  OperandGroups linear = {};                         // added to the rule's own
  OperandGroups monotone = {};

  Kernel kernel = nullptr;      // null: runs as its phases; if it has none either, it cannot be proven
  PhasesOf phases = nullptr;    // set if the rule may have normalised factors
  Gradient gradient = nullptr;  // null: not differentiable

  WorkKind work = WorkKind::kElementwise;
  double flops_per_point = 1;  // for each point of the product of all factors; 2 for a contraction
  /// If that product does not give them: the operations of a part with these extents per factor, on the busiest
  /// device.
  double (*flops)(const Operation&, std::span<const std::int64_t> extents) = nullptr;
  std::string flops_text = {};  // "2 m k n"; empty: so many per point

  OperatorRole role = OperatorRole::kOther;
  /// The dimension of the first result that counts attention heads, if there is one.
  std::optional<std::size_t> (*head_dimension)(const Operation&) = nullptr;
  /// The number of positions that an integer operand selects from: its values are below; 0 if it does not select.
  std::int64_t (*index_extent)(const Operation&, std::size_t operand) = nullptr;
  std::vector<std::string> scales = {};  // operands by which others are multiplied or divided: positive, about 1
  bool moves_elements = false;           // the results' elements are elements of the operands
  bool compares_elements = false;        // of the first operand: which of them are larger decides the results
  bool stops_gradient = false;           // its results count as constants in the backward pass
  /// The share of a local operand that the kernel reads of the part with these extents per factor; null: all.
  double (*read_share)(const Operation&, std::span<const std::int64_t> extents, std::size_t operand) = nullptr;
  bool picks_elements = false;  // of the first operand it reads only the elements that it returns
  bool reads_twice = false;     // where a factor is normalised: for the statistics, and for the elements that need them
  InPlace in_place = InPlace::kNo;
  bool updates_rows = false;  // if the first operand is trained, only the rows picked by the second are updated

  std::string notes = {};    // strategy and errors in the user's terms: lines "name      text"
  bool is_internal = false;  // phases and gradients: not for model files
  bool draws_as_forward =
      false;                 // a gradient that draws the same random numbers as its operator, with that operator's seed
  bool accumulates = false;  // if it runs several times per step, each run adds to the previous result
};

/// True if the operator can be executed: it has a kernel or phases.
bool is_executable(const OperatorType& type);

/// Checks attributes and operand types of operator `type`, infers the rest. Throws InputError without a place (the
/// caller adds it), with a message in the user's terms: "axis 4 of Softmax is outside [-3, 3)".
Operation make_operation(const OperatorType& type, const Attributes& attributes, std::vector<TensorType> operands);

/// Floating-point operations of the part of the iteration space with these extents per factor.
double flops(const Operation& operation, std::span<const std::int64_t> factor_extents);

}  // namespace shardplan
