#pragma once

#include <string>
#include <vector>

#include "simulator/checkpoint/checkpoint.h"

namespace shardplan {

/// What a checkpoint holds and that all of it is whole, as terminal text or as one JSON document
/// ("shardplan.checkpoint/1").
std::string verification_text(const Checkpoint& checkpoint, const Checkpoint::Verification& verification);
std::string verification_json(const Checkpoint& checkpoint, const Checkpoint::Verification& verification);

/// What was read for each rank of the target, and from which ranks. `written` is the folder; empty: nothing was.
std::string transformation_text(const Checkpoint& from, const CheckpointForm& to, const std::vector<RankReads>& reads,
                                const std::string& written);
std::string transformation_json(const Checkpoint& from, const CheckpointForm& to, const std::vector<RankReads>& reads,
                                const std::string& written);

}  // namespace shardplan
