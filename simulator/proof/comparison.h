#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/execute/executor.h"

namespace shardplan {

/// How far a value may be from the expected one.
struct Tolerance {
  double relative = 0;  // relative to the largest value of the reference tensor
  double absolute = 0;  // added to it: how far rounding moves the reference itself
  /// Of a number that stands for infinity: added to `relative`, which is relative to the number itself.
  double of_large = 0;

  /// The allowed difference of one element; `scale` is that of its tensor.
  double allowed(double scale, double reference) const;
};
/// The largest |value| below kStandsForInfinity; 0 if there is none.
double scale_of(const TensorValues& reference);
/// found - should be|: 0 for equal infinities and if both are NaN, infinite if only one is.
double distance(double found, double should_be);

/// One value on the mesh compared with its reference tensor. All copies on all devices are compared; partial values are
/// reduced first.
struct Comparison {
  double scale = 0;                // the largest value of the reference
  double largest = 0;              // found - should be|; infinite if one of the two is NaN
  double worst = 0;                // the largest difference relative to the allowed one
  std::int64_t num_compared = 0;   // on all devices
  std::int64_t num_differing = 0;  // by more than allowed
  std::int64_t num_devices_wrong = 0;
  // The first element that differs:
  std::int64_t point = 0;
  Shape local_index;
  Shape global_index;
  double found = 0;
  double should_be = 0;

  bool is_equal() const { return num_differing == 0; }
};
Comparison compare(const PlacedValue& placed, const ProgramValue& value, const DeviceMesh& mesh,
                   const TensorValues& reference, const Tolerance& tolerance);

/// A value's buffers with partial values reduced in the order of the members: every member holds the whole sum.
DeviceBuffers completed(const PlacedValue& placed, const ProgramValue& value, const DeviceMesh& mesh);

/// The likely fault of a wrong value: a sum that is missing or counted several times, a piece of another device, a
/// shift, zeros; empty if none fits. Tested against the numbers, on all devices.
std::string looks_like(const PlacedValue& placed, const ProgramValue& value, const DeviceMesh& mesh,
                       const TensorValues& reference, const Tolerance& tolerance);

}  // namespace shardplan
