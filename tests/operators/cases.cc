#include "tests/operators/cases.h"

#include <cmath>
#include <iterator>

#include "operators/catalogue.h"
#include "tests/operators/families/family_cases.h"

namespace shardplan {
namespace {

std::vector<CaseMaker> make_all() {
  std::vector<CaseMaker> all;
  for (const auto family :
       {activation_cases,  arithmetic_cases,    attention_cases,   batch_norm_cases,      comparison_cases,
        contraction_cases, conversion_cases,    convolution_cases, dropout_cases,         elementwise_loss_cases,
        expert_cases,      group_norm_cases,    indexing_cases,    key_value_cache_cases, loss_cases,
        masking_cases,     normalisation_cases, optimizer_cases,   pooling_cases,         rearranging_cases,
        recurrent_cases,   reduction_cases,     resampling_cases,  reshaping_cases,       rotary_cases,
        scan_cases,        slicing_cases,       softmax_cases,     sorting_cases,         sparse_update_cases,
        splitting_cases,   vector_cases}) {
    std::ranges::move(family(), std::back_inserter(all));
  }
  return all;
}

}  // namespace

const std::vector<CaseMaker>& case_makers() {
  static const std::vector<CaseMaker> makers = make_all();
  return makers;
}

Random random_of(const CaseMaker& maker, std::uint64_t seed) {
  std::uint64_t stream = 0;
  for (const char c : maker.name) stream = mix(stream ^ static_cast<unsigned char>(c));
  return Random(seed).fork(stream);
}

Operation operation_of(const OperatorCase& example, DataType dtype) {
  std::vector<TensorType> types;
  for (const OperandSpec& operand : example.operands) {
    types.push_back({operand.shape, operand.is_index ? DataType::kI32 : operand.is_flag ? DataType::kBool : dtype});
  }
  return make_operation(*find_operator_type(example.type), example.attributes, types);
}

Phases whole_phases(const Operation& operation) {
  return operation.type->phases(operation, std::vector<std::int64_t>(operation.rule.factors.size(), 1));
}

std::vector<Values> draw_operands(const OperatorCase& example, Random& random) {
  std::vector<Values> values;
  for (const OperandSpec& operand : example.operands) {
    values.push_back(make_values(operand.shape, [&] {
      const double value = operand.low + (operand.high - operand.low) * random.unit();
      return operand.is_index || operand.is_flag ? std::floor(value) : value;
    }));
  }
  return values;
}

std::int64_t any_of(Random& random, const List& sizes) { return sizes[random.below(sizes.size())]; }

std::int64_t some(Random& random) { return any_of(random, {2, 4, 4, 6, 8, 8}); }

Shape random_shape(Random& random, std::size_t rank) {
  Shape result;
  for (std::size_t d = 0; d < rank; ++d) result.push_back(some(random));
  return result;
}

std::pair<Shape, Shape> broadcast_pair(Random& random) {
  const Shape a = random_shape(random, 3);
  switch (random.below(5)) {
    case 0:
      return {a, a};
    case 1:
      return {a, {a[1], a[2]}};
    case 2:
      return {a, {a[0], 1, a[2]}};
    case 3:
      return {a, {}};
    default:
      return {{1, a[1], a[2]}, a};
  }
}

Shape random_images(Random& random) {
  return {any_of(random, {2, 4}), any_of(random, {2, 4}), any_of(random, {6, 8}), any_of(random, {4, 8})};
}

}  // namespace shardplan
