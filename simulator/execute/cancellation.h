#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "operators/kernel.h"

namespace shardplan {

/// Where the terms of a result cancel, its rounding error depends on the size of the terms, which the result no longer
/// shows: the gradient of a softmax whose dy is constant, y (dy - sum dy y), is some 1e-16 of y dy. These errors are
/// found by running the operator again.

/// If all results of `call` are small compared with the operands (2^-8 of the smallest), adds to each of their elements
/// its change when every element of every operand is off by a random part of up to `error` of its value. Works for any
/// operator, with or without phases. Adds nothing if the change does not double with the error: then a comparison came
/// out differently, which is no rounding.
///
/// `is_rounded(i)`: whether operand i carries errors at all.
void add_errors_of_terms(const KernelCall& call, double error, std::uint64_t seed,
                         const std::function<bool(std::size_t)>& is_rounded);

/// True for masks and counts, which no precision rounds.
bool holds_small_integers(std::span<const double> values);

}  // namespace shardplan
