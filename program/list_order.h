#pragma once

#include <cstddef>
#include <vector>

#include "program/parallel_program.h"

namespace shardplan {

/// The instructions by list scheduling (Graham, 1966): whenever the kernels' stream is free it takes, of the kernels whose
/// inputs are there, the one behind which most time must pass until the end of the step; so do the levels of links with
/// collectives. What leads to long chains of communication goes first, and what can wait fills the gaps: the update of a
/// parameter whose gradient has been reduced runs in the middle of the backward pass, and its new weight is gathered
/// beside the rest; gradients of weights wait until a chain at the end needs something to hide behind.
///
/// A new value waits until nothing reads the old one any more, over which it is written. Slowdowns, buckets and memory
/// are not looked at. What is gathered from stored tensors stays right before its first reader, and what is computed again
/// waits for the gradient that it is computed for. The loop of micro-batches and what is behind it are ordered each for
/// itself.
std::vector<std::size_t> list_order(const ParallelProgram& program);

/// The same from the end of the step backwards: whenever the kernels' stream or a link is free, counted from the end, it
/// takes what nothing is left to wait for and before which most time must pass since the beginning. So what communicates
/// little behind it runs last, and long communications at the end have gradients of weights beside them that need little
/// of the links themselves.
std::vector<std::size_t> list_order_from_end(const ParallelProgram& program);

}  // namespace shardplan
