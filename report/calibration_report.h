#pragma once

#include <string>

#include "costmodel/calibration/calibrate.h"

namespace shardplan {

/// The result of `calibrate` as terminal text: the constants before and after, the error of the fitted cluster on the
/// measurements, and the measurements with the largest errors.
std::string calibration_report(const Calibration& calibration);

}  // namespace shardplan
