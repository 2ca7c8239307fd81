#pragma once

#include "model/model.h"
#include "model/option_reader.h"

namespace shardplan {

/// MindSpore's comm_fusion, checked as MindSpore checks it, and one mode more:
///
///   {allreduce: {mode: auto}}                        in buckets of at most 64 MB; config must be null or missing
///   {allreduce: {mode: size, config: 32}}            in buckets of at most 32 MB
///   {allreduce: {mode: index, config: [20, 35]}}     collectives 0-19, 20-34 and the rest; allreduce only
///   {allreduce: {mode: best}}                        in the buckets that hide the most, which is what holds without it
///   {openstate: false, ...}                          none of any kind
///
/// and allgather and reducescatter likewise. `openstate: true` alone is auto for all kinds. Any fault leaves the
/// defaults.
CommFusions read_comm_fusion(const OptionReader& reader);

}  // namespace shardplan
