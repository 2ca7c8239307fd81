#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// Recurrences as one operator each; their gradients compute the states again.
///
///   SelectiveScan(u [b, l, d], delta [b, l, d], a [d, n], b [b, l, n], c [b, l, n]) -> y [b, l, d]
///       state = exp(delta a) state + delta b u, from zeros; y = the sum over n of c state   (Mamba)
///   LSTMCell(x [b, i], h [b, o], c [b, o], weight_x [4, o, i], weight_h [4, o, o], bias [4, o]) -> h, c
///       gates in the order input, forget, candidate, output
///
/// Batch and channels (d, o) are cut freely; steps and states (l, n), and what the cell contracts, are whole. In the gradients
/// what does not walk a cut dimension is partial.
/// Sources: Gu, Dao, Mamba, 2023, algorithm 2 with a discretised by its exponential and b by Euler's rule;
/// Hochreiter, Schmidhuber, Neural Computation 9(8), 1997, with forget gates.
std::vector<OperatorType> recurrent_operators();

}  // namespace shardplan
