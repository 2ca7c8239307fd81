#pragma once

#include <string>
#include <vector>

#include "simulator/checkpoint/checkpoint.h"

namespace shardplan {

/// The contents of a checkpoint and the result of its verification, as terminal text or as one JSON document
/// ("shardplan.checkpoint/1").
std::string verification_text(const Checkpoint& checkpoint, const Checkpoint::Verification& verification);
std::string verification_json(const Checkpoint& checkpoint, const Checkpoint::Verification& verification);

/// What was read for each rank of the target, from which ranks. `written`: the output folder, empty if not written.
std::string transformation_text(const Checkpoint& from, const CheckpointForm& to, const std::vector<RankReads>& reads,
                                const std::string& written);
std::string transformation_json(const Checkpoint& from, const CheckpointForm& to, const std::vector<RankReads>& reads,
                                const std::string& written);

}  // namespace shardplan
