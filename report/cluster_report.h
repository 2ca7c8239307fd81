#pragma once

#include <string>

#include "costmodel/cluster/cluster.h"

namespace shardplan {

/// A cluster as terminal text: devices, levels with their links and the time of one all_reduce along each, two ranks as
/// an example, and the sources of the numbers (`with_sources`: each of them).
std::string cluster_summary(const Cluster& cluster, bool with_sources = false);

/// The same as one JSON document, "schema": "shardplan.cluster/1", in bytes, bytes per second and seconds.
std::string cluster_json(const Cluster& cluster);

}  // namespace shardplan
