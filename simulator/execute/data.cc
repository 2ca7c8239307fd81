#include "simulator/execute/data.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/random.h"

namespace shardplan {
namespace {

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = mix(text.size());
  for (const char c : text) hash = mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

TensorValues fill_constant(const GraphTensor& tensor) {
  const Shape& shape = tensor.type.shape;
  TensorValues values(static_cast<std::size_t>(num_elements(shape)), tensor.fill.value);
  if (tensor.fill.kind == Fill::Kind::kValue || shape.empty()) return values;
  const std::size_t columns = static_cast<std::size_t>(shape.back());
  const std::size_t rows = shape.size() > 1 ? static_cast<std::size_t>(shape[shape.size() - 2]) : 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t column = i % columns;
    const std::size_t row = i / columns % rows;
    values[i] = tensor.fill.kind == Fill::Kind::kIota ? static_cast<double>(column) : column > row ? -1e9 : 0.0;
  }
  return values;
}

/// The first reader of the tensor, looking through a mask of its padding; null if it has no reader.
const Reader* first_reader(const OperatorGraph& graph, const GraphTensor& tensor) {
  if (tensor.readers.empty()) return nullptr;
  const Reader& first = tensor.readers.front();
  const bool is_mask = graph.operation(first.op).type->name == "MaskPadding";
  return is_mask ? first_reader(graph, graph.tensor(graph.operators()[first.op].results[0])) : &first;
}

/// True if the first reader multiplies or divides its other operands by the tensor: "gamma".
bool is_scale(const OperatorGraph& graph, const GraphTensor& tensor) {
  const Reader* first = first_reader(graph, tensor);
  if (first == nullptr) return false;
  const Reader& reader = *first;
  const OperatorType& type = *graph.operation(reader.op).type;
  const std::vector<std::string>& names = type.signature.operands;
  return reader.operand < names.size() && std::ranges::find(type.scales, names[reader.operand]) != type.scales.end();
}

bool is_walked(const std::vector<TensorWalk>& tensors, std::uint32_t factor) {
  for (const TensorWalk& tensor : tensors) {
    for (const DimensionWalk& walk : tensor) {
      if (std::ranges::find(walk.factors, factor) != walk.factors.end()) return true;
    }
  }
  return false;
}

/// The number of terms summed into one result of the first reader: the product of the factors that this operand walks
/// and that are reductions or are in no result, such as the positions of a convolution's window.
double fan_in(const OperatorGraph& graph, const GraphTensor& tensor) {
  double count = 1;
  const Reader* first = first_reader(graph, tensor);
  if (first == nullptr) return count;
  const Reader& reader = *first;
  const ShardingRule& rule = graph.operation(reader.op).rule;
  for (const DimensionWalk& walk : rule.operands[reader.operand]) {
    for (const std::uint32_t factor : walk.factors) {
      if (rule.factors[factor].kind == FactorKind::kReduction || !is_walked(rule.results, factor)) {
        count *= static_cast<double>(rule.factors[factor].size);
      }
    }
  }
  return count;
}

/// Whether the order of elements decides anything, such as which experts or tokens TopK picks.
bool compares_elements(const OperatorGraph& graph) {
  return std::ranges::any_of(graph.operations(),
                             [](const Operation& operation) { return operation.type->compares_elements; });
}

/// Numbers below `bound` of which none appears twice in a row: Floyd's sample (each position draws from one number
/// more, and takes the new one instead of one that the row has), shuffled.
void draw_rows_of_distinct(Random& random, std::uint64_t bound, std::size_t row, TensorValues& values) {
  for (std::size_t first = 0; first < values.size(); first += row) {
    std::set<std::uint64_t> drawn;
    for (std::size_t i = first; i < first + row; ++i) {
      const std::uint64_t last = bound - row + (i - first);
      const std::uint64_t number = random.below(last + 1);
      values[i] = static_cast<double>(drawn.insert(number).second ? number : *drawn.insert(last).first);
    }
    for (std::size_t i = first + row; --i > first;) std::swap(values[i], values[first + random.below(i - first + 1)]);
  }
}

}  // namespace

bool is_rounded(Precision precision, DataType dtype) { return precision != Precision::kFloat64 && is_floating(dtype); }

void round_to(Precision precision, DataType dtype, TensorValues& values) {
  if (!is_rounded(precision, dtype)) return;
  for (double& value : values) value = static_cast<double>(static_cast<float>(value));
}

TensorValues draw_tensor(const OperatorGraph& graph, TensorId id, std::uint64_t seed, std::uint64_t step,
                         States states) {
  return draw_tensor(graph, id, graph.tensor(id).type.shape, seed, step, states);
}

TensorValues draw_tensor(const OperatorGraph& graph, TensorId id, const Shape& shape, std::uint64_t seed,
                         std::uint64_t step, States states) {
  const GraphTensor& tensor = graph.tensor(id);
  if (tensor.kind == TensorKind::kConstant) return fill_constant(tensor);
  if (tensor.is_master_copy) return draw_tensor(graph, *tensor.state_of, shape, seed, step, states);
  const bool is_input = tensor.kind == TensorKind::kInput;
  Random random(mix(seed ^ mix(hash_text(tensor.name) + (is_input ? step : 0))));
  TensorValues values(static_cast<std::size_t>(num_elements(shape)));
  if (!is_floating(tensor.type.dtype)) {
    const std::uint64_t bound = tensor.index_extent > 0 ? static_cast<std::uint64_t>(tensor.index_extent) : 2;
    const std::size_t row = compares_elements(graph) && !shape.empty() ? static_cast<std::size_t>(shape.back()) : 1;
    if (row > 1 && row <= bound) {
      draw_rows_of_distinct(random, bound, row, values);
      return values;
    }
    for (double& value : values) value = static_cast<double>(random.below(bound));
    return values;
  }
  if (tensor.kind == TensorKind::kState) {
    if (states == States::kFresh) return values;
    if (shape.empty()) return {static_cast<double>(random.below(8))};
    for (double& value : values) value = 0.01 * random.unit();
    return values;
  }
  double middle = 0;
  double reach = 1;
  if (tensor.kind == TensorKind::kParameter) {
    const bool is_near_one = is_scale(graph, tensor);
    middle = is_near_one ? 1 : 0;
    reach = is_near_one ? 0.5 : std::sqrt(3.0 / std::max(3.0, fan_in(graph, tensor)));
  }
  for (double& value : values) value = middle + reach * (2 * random.unit() - 1);
  return values;
}

std::uint64_t operator_seed(const OperatorGraph& graph, OperatorId id, std::uint64_t seed, std::uint64_t step) {
  const GraphOperator& op = graph.operators()[id];
  if (op.forward && (op.is_copy || graph.operation(id).type->draws_as_forward)) {
    return operator_seed(graph, *op.forward, seed, step);
  }
  return mix(mix(seed ^ 0x6472616773ULL) ^ mix(step) ^ hash_text(op.name));
}

}  // namespace shardplan
