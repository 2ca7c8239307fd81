#pragma once

#include <functional>
#include <string>

#include "simulator/workers/job.h"

namespace shardplan {

/// Connects the workers of a job: waits until all have joined, sends each its rank and the addresses of the others,
/// waits until they have found each other, and returns when all are done. Workers get the ranks they ask for; the
/// others get the remaining ones in the order of arrival. Workers that arrive later are refused. `progress` is called
/// with messages, first with the address at which workers are expected.
///
/// Throws InputError after telling all workers still connected: a worker did not join in time, lost its connection or
/// failed, or two run different programs or ask for the same rank. Throws Stopped if asked to stop.
void run_scheduler(const JobOptions& options, const std::function<void(const std::string&)>& progress);

}  // namespace shardplan
