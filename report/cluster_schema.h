#pragma once

#include <string>

namespace shardplan {

/// The JSON Schema (draft 7) of a cluster file, from the keys that its reader accepts
/// (costmodel/cluster/cluster_keys.h). For YAML editors: `# yaml-language-server: $schema=cluster.schema.json`. Only
/// the reader checks for duplicate names, reserved memory above the capacity and tables that do not ascend.
std::string cluster_schema();

}  // namespace shardplan
