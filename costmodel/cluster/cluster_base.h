#pragma once

#include <vector>

#include "base/error.h"
#include "base/yaml.h"

namespace shardplan {

/// The whole tree of a cluster file that contains only what differs from the cluster `base` that it names. Maps are joined
/// key by key and levels by name; any other value of the file replaces that of the base. What comes from the base gets the
/// place of `base:` in the file. Requires a map with that key, and a base that can be read by itself. A level that the base
/// does not have is added to `faults`.
///
/// A number that the file changes without a source of its own gets the source "assumed".
YamlNode completed_from_base(const YamlDocument& own, YamlNode base, std::vector<Diagnostic>& faults);

}  // namespace shardplan
