#pragma once

#include <vector>

#include "operators/operator_type.h"

namespace shardplan {

/// GroupNorm(x [n, c, ...], gamma [c], beta [c]; num_groups): each sample's channels are normalised in groups of
/// c / num_groups neighbours, over the channels of the group and all positions. InstanceNorm is the same with one channel
/// a group. No statistic reaches over samples, so that the batch is cut freely; groups are cut freely too. A group's channels
/// and the positions are cut in phases: two small all_reduces [n, num_groups].
/// Source: Wu, He, Group Normalization, ECCV 2018.
std::vector<OperatorType> group_norm_operators();

}  // namespace shardplan
