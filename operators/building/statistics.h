#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "operators/building/rule_builder.h"
#include "operators/building/strided_loop.h"
#include "operators/operator_type.h"

namespace shardplan {

/// What softmax and norms are made of. A phase is either a statistic (a reduction of the first operand's shape over
/// `axis`, those dimensions kept as 1, further operands broadcast to it) or elementwise with the statistics broadcast, so
/// that two rules serve all of them. Means divide by the global count, so that their partial results add up.

/// One or two statistics, by how many results the operator has.
std::vector<TensorType> infer_statistics(const Operation& operation);
ShardingRule statistic_rule(const Operation& operation);

/// Lines of the catalogue: a statistic (attribute `axis`), and a phase that ends a norm or softmax.
OperatorType statistic(std::string name, Signature signature, std::string rule_text, Kernel kernel);
OperatorType elementwise_phase(std::string name, Signature signature, std::vector<AttributeSpec> attributes,
                               std::string rule_text, Kernel kernel);

/// The walks of operands that broadcast to the first one, which walks `walk`.
void add_broadcast_operands(RuleBuilder& builder, const Operation& operation, const TensorWalk& walk);

/// The shape of the first operand with the dimensions of `axis` as 1.
Shape kept_shape(const Operation& operation);

/// The values of the operands at one point of the first operand's shape, which all others broadcast to.
template <std::size_t N>
struct PointValues {
  const KernelCall& call;
  const std::array<std::int64_t, N>& offsets;

  double operator()(std::size_t operand) const { return call.operands[operand].data[offsets[operand]]; }
};

/// Adds `term(values)` of the first N operands up in one result, over all points of the first operand.
template <std::size_t N, class Term>
void add_terms(const KernelCall& call, std::size_t result, Term term) {
  const Shape& extents = call.operands[0].shape;
  std::array<Shape, N + 1> strides;
  for (std::size_t i = 0; i < N; ++i) strides[i] = broadcast_strides(call.operands[i].shape, extents);
  strides[N] = broadcast_strides(call.results[result].shape, extents);
  for_each_point<N + 1>(extents, strides, [&](const std::array<std::int64_t, N + 1>& at) {
    call.results[result].data[at[N]] += term(PointValues<N + 1>{call, at});
  });
}

/// Sets every point of the first result, which has the shape of the first operand.
template <std::size_t N, class Value>
void set_values(const KernelCall& call, Value value) {
  const Shape& extents = call.operands[0].shape;
  std::array<Shape, N> strides;
  for (std::size_t i = 0; i < N; ++i) strides[i] = broadcast_strides(call.operands[i].shape, extents);
  double* result = call.results[0].data;
  for_each_point<N>(extents, strides, [&](const std::array<std::int64_t, N>& at) {
    *result++ = value(PointValues<N>{call, at});
  });
}

/// Divides a result by how many elements of the global first operand one of its elements stands for.
void divide_by_count(const KernelCall& call, std::size_t result);

}  // namespace shardplan
