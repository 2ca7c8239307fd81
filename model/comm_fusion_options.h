#pragma once

#include <map>
#include <string>

#include "model/model.h"
#include "model/option_reader.h"

namespace shardplan {

/// MindSpore's comm_fusion, checked as MindSpore checks it:
///
///   {allreduce: {mode: auto}}                        in buffers of 64 MB; config must be null or missing
///   {allreduce: {mode: size, config: 32}}            in buffers of 32 MB
///   {allreduce: {mode: index, config: [20, 35]}}     gradients 0-19, 20-34 and the rest; allreduce only
///   {openstate: false, ...}                          none
///
/// and allgather and reducescatter likewise. Returns what is left to do, by kind; `openstate: true` alone is auto for
/// all kinds.
std::map<std::string, CommFusion> read_comm_fusion(const OptionReader& reader);

}  // namespace shardplan
