#pragma once

#include <functional>
#include <string>

#include "simulator/workers/job.h"

namespace shardplan {

/// Brings the workers of a job together: waits until all have come, sends each its rank and the addresses of the
/// others, waits until they have found each other, and ends when all are done. Ranks are those that workers ask for;
/// the others get what is left in the order in which they come. Whoever comes later is refused. `progress` is called
/// with what happens, first with the address at which workers are expected.
///
/// Throws InputError after all workers that are still there were told: one did not come within the time limit, its
/// connection was lost, it failed, or two run different programs or ask for the same rank. Throws Stopped if asked to.
void run_scheduler(const JobOptions& options, const std::function<void(const std::string&)>& progress);

}  // namespace shardplan
