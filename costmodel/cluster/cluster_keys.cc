#include "costmodel/cluster/cluster_keys.h"

namespace shardplan {

const ClusterKeys& cluster_file_keys() {
  static const ClusterKeys keys = {
      {"shardplan", ClusterValue::kVersion, true, "format version: 1"},
      {"cluster", ClusterValue::kText, true, "the cluster's name"},
      {"device", ClusterValue::kDevice, true, "the one kind of device"},
      {"fusion", ClusterValue::kFusion, false,
       "what the software makes one kernel of: none, library (a matmul and its bias, all updates), hand-written (also "
       "bias and activation, bias, dropout and addition, scale, mask and softmax), or elementwise (all chains of "
       "elementwise operators); none"},
      {"tf32", ClusterValue::kTf32, false,
       "which products of f32 the software computes in TF32, at flops.tf32: none, convolutions (PyTorch's default), or "
       "all (torch.set_float32_matmul_precision('high'), JAX's default); none"},
      {"collectives", ClusterValue::kCollectives, false, "what the software does to run a collective"},
      {"levels", ClusterValue::kLevels, true, "the levels of links, outermost first: mesh axes and digits of ranks"},
      {"ranks", ClusterValue::kRanks, false,
       "where rank 0, 1, ... stands, counted through the levels; in order if not given"},
      {"rank_table", ClusterValue::kText, false,
       "a rank table of HCCL: its servers are the outermost level's groups, and ranks stand as it says"},
      {"tables", ClusterValue::kTables, false, "measured times that replace the formula of a collective"},
      {"sources", ClusterValue::kSources, false,
       "where numbers are from, by device, device.KEY, LEVEL, LEVEL.KEY or a word of your own; the words datasheet, "
       "measured, measured elsewhere, assumed, to be verified are understood"},
  };
  return keys;
}

const ClusterKeys& cluster_device_keys() {
  static const ClusterKeys keys = {
      {"name", ClusterValue::kText, true, "as printed"},
      {"memory", ClusterValue::kMemory, true, "of each device"},
      {"flops", ClusterValue::kFlops, true, "peak rate by dtype, dense; a dtype that is absent cannot be computed"},
      {"efficiency", ClusterValue::kEfficiency, false, "sustained shares of the peaks"},
      {"matrix_units", ClusterValue::kMatrixUnits, false, "what multiplies matrices; without it all shapes are alike"},
      {"attention_fill", ClusterValue::kCount, false,
       "keys that beginning and ending a row of fused attention takes as long as; 0"},
      {"start", ClusterValue::kTime, false, "fixed time of one operator; 0"},
  };
  return keys;
}

const ClusterKeys& cluster_memory_keys() {
  static const ClusterKeys keys = {
      {"capacity", ClusterValue::kBytes, true, "all of it"},
      {"reserved", ClusterValue::kBytes, false, "taken by runtime, contexts and fragmentation; 0"},
      {"bandwidth", ClusterValue::kByteRate, true, "peak, reading and writing together"},
  };
  return keys;
}

const ClusterKeys& cluster_flops_keys() {
  static const ClusterKeys keys = [] {
    ClusterKeys all;
    for (const char* type : {"f64", "f32", "f16", "bf16", "f8e4m3", "i64", "i32", "i8", "u8"}) {
      all.push_back({type, ClusterValue::kOperationRate, false, ""});
    }
    all.push_back({"tf32", ClusterValue::kOperationRate, false, "of products of f32 that are computed in TF32"});
    return all;
  }();
  return keys;
}

const ClusterKeys& cluster_efficiency_keys() {
  static const ClusterKeys keys = {
      {"matmul", ClusterValue::kShare, false, "of the rate, in contractions; 1"},
      {"attention", ClusterValue::kShare, false, "of the rate, in fused attention; matmul's"},
      {"convolution", ClusterValue::kShare, false, "of the rate, in convolutions; matmul's"},
      {"memory", ClusterValue::kShare, false, "of the memory's bandwidth; 1"},
  };
  return keys;
}

const ClusterKeys& cluster_matrix_units_keys() {
  static const ClusterKeys keys = {
      {"count", ClusterValue::kCount, true, "how many compute a tile of a result each, at the same time"},
      {"tile", ClusterValue::kCount, false, "rows and columns of a tile; 128"},
      {"fill", ClusterValue::kCount, false, "steps of k that beginning and ending a tile takes as long as; 0"},
  };
  return keys;
}

const ClusterKeys& cluster_collectives_keys() {
  static const ClusterKeys keys = {
      {"launch", ClusterValue::kTime, false, "fixed time of each; 0"},
      {"per_device", ClusterValue::kTime, false,
       "time for each device of the group, in all but permute: software that handles the pieces of a tensor one by "
       "one; 0"},
      {"algorithms", ClusterValue::kAlgorithms, false,
       "level by level; or rings and trees: also one ring over all devices of a group with a channel for every link, "
       "and "
       "trees of all_reduce, whatever takes least; level by level"},
      {"collective_matmul", ClusterValue::kTruth, false,
       "true: what gathers an operand of a product, or scatters its result, runs piece by piece beside the product; "
       "false"},
  };
  return keys;
}

const ClusterKeys& cluster_protocol_keys() {
  static const ClusterKeys keys = {
      {"latency", ClusterValue::kTime, true, "of one message"},
      {"bandwidth", ClusterValue::kShare, true, "share of what the level sustains"},
  };
  return keys;
}

const ClusterKeys& cluster_together_keys() {
  static const ClusterKeys keys = {
      {"kernels", ClusterValue::kShare, false, "share of its speed that a kernel keeps while a collective runs; 1"},
      {"collectives", ClusterValue::kShare, false, "share of its speed that a collective keeps while a kernel runs; 1"},
  };
  return keys;
}

const ClusterKeys& cluster_level_keys() {
  static const ClusterKeys keys = {
      {"name", ClusterValue::kName, true, "of the mesh axis"},
      {"count", ClusterValue::kCount, true, "groups of the level below that it joins (devices, at the innermost)"},
      {"latency", ClusterValue::kTime, true, "of one message"},
      {"bandwidth", ClusterValue::kByteRate, true, "line rate of one link, one direction"},
      {"efficiency", ClusterValue::kShare, false, "measured share of the line rate; 1"},
      {"link_per", ClusterValue::kLinkPer, false,
       "device: each device has a link into this level; group: the devices of the group below share one; device"},
      {"contention", ClusterValue::kShare, false, "share of the bandwidth left when all groups talk at once; 1"},
      {"protocols", ClusterValue::kProtocols, false,
       "other ways to send, for small messages; a collective takes the fastest, the same on all levels"},
      {"together", ClusterValue::kSpeedsTogether, false,
       "what kernels and collectives on these links leave each other where they run at the same time"},
  };
  return keys;
}

const ClusterKeys& cluster_table_keys() {
  static const ClusterKeys keys = {
      {"collective", ClusterValue::kCollective, true, "whose time was measured"},
      {"level", ClusterValue::kName, true, "along which"},
      {"devices", ClusterValue::kCount, true, "over how many devices or groups of that level, at least 2"},
      {"bytes", ClusterValue::kByteList, true, "sizes of the whole tensor of a group, ascending"},
      {"time", ClusterValue::kTimeList, true, "one for each size"},
  };
  return keys;
}

std::vector<std::string> key_names(const ClusterKeys& keys) {
  std::vector<std::string> names;
  for (const ClusterKey& key : keys) names.push_back(key.name);
  return names;
}

}  // namespace shardplan
