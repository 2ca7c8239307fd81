#pragma once

#include <string>
#include <vector>

#include "planner/plan.h"
#include "planner/problem/global_degrees.h"

namespace shardplan {

/// What devices exchange for attention whose sequence is sharded over them by context parallelism. With tokens [S, ...]
/// over cp=8 everywhere else:
///
///   kHeads   q, k, v and the result by all_to_all; a device has all tokens of 1/8 of the heads (DeepSpeed-Ulysses)
///   kKeys    k and v by all_gather; a device has all heads of 1/8 of the queries (Llama 3)
enum class ContextExchange { kHeads, kKeys };

/// What most of the work of attention that exchanges one of these over `degrees.context` does; kKeys if there is none.
ContextExchange context_exchange(const Plan& plan, const GlobalDegrees& degrees);

/// Whether all devices of tensor and context parallelism can have heads of keys of their own, as Transformer Engine
/// requires of kHeads (AttnFuncWithCPAndQKVOA2A in its context_parallel.py).
bool has_heads_for_all(const OperatorGraph& graph, const GlobalDegrees& degrees);

/// Attention that exchanges something else, copies of a repeat joined: "layers.*.attend: heads in 8 (Ulysses)", "heads
/// in 4, queries in 2".
std::vector<std::string> other_exchanges(const Plan& plan, const GlobalDegrees& degrees, ContextExchange exchange);

}  // namespace shardplan
