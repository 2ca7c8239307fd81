#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "solver/core/core_matrix.h"
#include "solver/core/vector_kernels.h"

namespace shardplan {

/// The entries of a `CoreMatrix`, rounded down to numbers that take less memory.
template <class Number>
struct RoundedMatrix {
  std::vector<Number> forward, backward;
};

/// The matrices of a core with less precision, for passes that wait for memory. Each precision is made when it is first
/// asked for, once for all who read it, on any thread.
class RoundedMatrices {
 public:
  explicit RoundedMatrices(std::shared_ptr<const std::vector<CoreMatrix>> matrices);

  /// Up to 2^-23 of an entry less.
  const std::vector<RoundedMatrix<float>>& floats() const;
  /// Up to 2^-11 of an entry less; and up to 2^-41 of the largest of all. The number of a half times `unit_of_halves`.
  const std::vector<RoundedMatrix<Half>>& halves() const;
  double unit_of_halves() const { return unit_of_halves_; }

 private:
  std::shared_ptr<const std::vector<CoreMatrix>> matrices_;
  double unit_of_halves_ = 1;  // a power of two
  mutable std::once_flag floats_made_, halves_made_;
  mutable std::vector<RoundedMatrix<float>> floats_;
  mutable std::vector<RoundedMatrix<Half>> halves_;
};

}  // namespace shardplan
