#pragma once

#include <span>

#include "operators/operation.h"

namespace shardplan {

/// Which of two nearly equal numbers TopK takes is decided by rounding, and a mesh rounds differently. So that a
/// disturbed run shows what depends on it, it decides every such case the other way round:
///
///     exact       3.0  1.0  2.0  2.0+1e-15    ->  TopK of three: 0, 3, 2
///     reordered   3.0  1.0  2.0  2.0-1e-16    ->  TopK of three: 0, 2, 3
///
/// Reverses the order of nearly equal elements in `values`, the disturbed first operand of an operator that compares
/// its elements, along its whole dimension.
///
/// `exact`: the same operand without errors. Numbers that are zero, stand for infinity or, all of them, are small
/// integers are rounded nowhere and keep their order.
/// `absolute`, `relative`: elements that differ by no more than `absolute` plus this part of the largest in their line
/// are nearly equal.
void reverse_near_ties(const Operation& operation, std::span<const double> exact, double absolute, double relative,
                       std::span<double> values);

}  // namespace shardplan
