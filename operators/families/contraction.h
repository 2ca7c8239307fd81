#pragma once

#include "operators/operator_type.h"

namespace shardplan {

/// MatMul and BatchMatMul: [.., m, k] times [.., k, n], each also transposed, leading dimensions broadcast as numpy
/// does.
std::vector<TensorType> infer_matmul(const Operation& operation);
ShardingRule matmul_rule(const Operation& operation);

/// "bsh,hf->bsf" of one or two operands; every index at most once per operand.
std::vector<TensorType> infer_einsum(const Operation& operation);
ShardingRule einsum_rule(const Operation& operation);

/// Sums the product of one or two operands over all factors that the result does not walk.
void contract(const KernelCall& call);

std::vector<std::optional<TensorId>> matmul_gradient(GradientBuilder& builder, const GradientRequest& request);
std::vector<std::optional<TensorId>> einsum_gradient(GradientBuilder& builder, const GradientRequest& request);

}  // namespace shardplan
