#pragma once

#include <string>

namespace shardplan {

/// The JSON Schema (draft 7) of a cluster file, from the keys that its reader accepts (costmodel/cluster/cluster_keys.h). YAML
/// editors take it for completion and checks: `# yaml-language-server: $schema=cluster.schema.json`. What a schema cannot
/// say is checked by the reader alone: names given twice, reserved memory above the capacity, tables that do not ascend.
std::string cluster_schema();

}  // namespace shardplan
