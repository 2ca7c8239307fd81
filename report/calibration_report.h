#pragma once

#include <string>

#include "costmodel/calibration/calibrate.h"

namespace shardplan {

/// What `calibrate` found, for people: the constants before and after, how far the fitted cluster is from what was
/// measured, and the measurements that it misses most.
std::string calibration_report(const Calibration& calibration);

}  // namespace shardplan
