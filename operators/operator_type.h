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

/// Names of operands and results, written "x1, x2 -> y". A last name "x..." may repeat. A result with the name of an
/// operand is its new value: of a stored tensor what is kept for the next step ("moving_mean" of BatchNorm).
struct Signature {
  std::vector<std::string> operands;
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
};

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

/// What kind of work an operator is, for its time and its memory.
enum class WorkKind {
  kContraction,  // matmul, convolution, attention: time by flops or bytes, whichever is more
  kElementwise,  // the same with the device's plain rate; as a rule by bytes
  kView,         // no work and no memory of its own: reshape
};

/// Operands by name that pass a partial sum (or maximum) on together; see `ShardingRule::linear`. Of a repeated operand
/// "x..." stands for all at once, "x" for each alone.
using OperandGroups = std::vector<std::vector<std::string>>;

/// One line of the catalogue: everything that the project knows about an operator's type. The first result is the one
/// that the operator's own name stands for; further ones (the mask of Dropout, statistics of BatchNorm) serve gradients
/// and states.
struct OperatorType {
  std::string name = {};  // MindSpore's primitive name
  Signature signature = {};
  std::vector<AttributeSpec> attributes = {};

  /// Result types of operands and attributes; throws InputError (no place) if they do not fit.
  std::vector<TensorType> (*infer)(const Operation&) = nullptr;
  /// The rule as text: "... m k, k n -> ... m n; k: sum" ("...": any further dimensions, "s*h+kh": a window), or a few
  /// words where no text says it.
  std::string rule_text = {};
  ShardingRule (*rule)(const Operation&) = nullptr;  // called after `infer`; null: `rule_text` is the rule
  OperandGroups linear = {};                         // added to the rule's own
  OperandGroups monotone = {};

  Kernel kernel = nullptr;                       // null: runs as its phases; if it has none either, it cannot be proven
  Phases (*phases)(const Operation&) = nullptr;  // set if the rule may have normalised factors
  Gradient gradient = nullptr;                   // null: not differentiable

  WorkKind work = WorkKind::kElementwise;
  double flops_per_point = 1;                         // of the product of all factors; 2 for a contraction
  double (*whole_flops)(const Operation&) = nullptr;  // of the whole operation, where that product does not say it
  std::string flops_text = {};                        // "2 m k n"; empty: so many per point

  std::string notes = {};    // strategy and errors as users know them: lines "name      text"
  bool is_internal = false;  // phases and gradients: not for model files
  bool accumulates = false;  // where it runs several times a step, each run adds to the result of the one before
};

/// True if the operator can be executed: it has a kernel or phases.
bool is_executable(const OperatorType& type);

/// Checks attributes and operand types of operator `type`, infers the rest. Throws InputError without a place (the caller
/// adds it), with a message in the user's terms: "axis 4 of Softmax is outside [-3, 3)".
Operation make_operation(const OperatorType& type, const Attributes& attributes, std::vector<TensorType> operands);

/// Floating-point operations of the part of the iteration space with these extents per factor.
double flops(const Operation& operation, std::span<const std::int64_t> factor_extents);

}  // namespace shardplan
