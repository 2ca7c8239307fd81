#include "costmodel/cluster/cluster_keys.h"

namespace shardplan {

const ClusterKeys& cluster_file_keys() {
  static const ClusterKeys keys = {
      {"shardplan", ClusterValue::kVersion, true, "format version: 1"},
      {"cluster", ClusterValue::kText, true, "the cluster's name"},
      {"base", ClusterValue::kText, false,
       "a preset, with xN for N nodes, or a cluster file (a path from this file's folder): this file contains only "
       "what differs from it; levels are joined by name"},
      {"device", ClusterValue::kDevice, true, "the devices, all of one kind"},
      {"fusion", ClusterValue::kFusion, false,
       "what the software fuses into one kernel: none (default), library (a matmul and its bias, all updates), "
       "hand-written (also bias and activation; bias, dropout and addition; scale, mask and softmax), or elementwise "
       "(all chains of elementwise operators)"},
      {"tf32", ClusterValue::kTf32, false,
       "which f32 products the software computes in TF32, at the rate flops.tf32: none (default), convolutions "
       "(PyTorch's "
       "default), or all (torch.set_float32_matmul_precision('high'), JAX's default)"},
      {"collectives", ClusterValue::kCollectives, false, "how the software runs a collective"},
      {"levels", ClusterValue::kLevels, true, "the levels of links, outermost first: mesh axes and digits of ranks"},
      {"ranks", ClusterValue::kRanks, false,
       "position of rank 0, 1, ..., counted through the levels; default: in order"},
      {"rank_table", ClusterValue::kText, false,
       "a rank table of HCCL: gives the groups of the outermost level (its servers) and the order of ranks"},
      {"tables", ClusterValue::kTables, false, "measured times that replace the formula of a collective"},
      {"sources", ClusterValue::kSources, false,
       "where numbers come from, by device, device.KEY, LEVEL, LEVEL.KEY or a key of your own; the words datasheet, "
       "measured, measured elsewhere, assumed, to be verified are understood"},
  };
  return keys;
}

const ClusterKeys& cluster_device_keys() {
  static const ClusterKeys keys = {
      {"name", ClusterValue::kText, true, "name of the device in reports"},
      {"memory", ClusterValue::kMemory, true, "memory of each device"},
      {"flops", ClusterValue::kFlops, true, "dense peak rate by dtype; a dtype that is not listed cannot be computed"},
      {"efficiency", ClusterValue::kEfficiency, false, "sustained fractions of the peaks"},
      {"matrix_units", ClusterValue::kMatrixUnits, false,
       "units that multiply matrices; without this key the rate does not depend on shapes"},
      {"attention_fill", ClusterValue::kCount, false,
       "time to start and end a row of fused attention, in keys; default: 0"},
      {"depthwise_fill", ClusterValue::kCount, false,
       "time to start and end one element of a convolution at efficiency.depthwise, in products; default: 0"},
      {"start", ClusterValue::kTime, false, "fixed time of one kernel; default: 0"},
  };
  return keys;
}

const ClusterKeys& cluster_memory_keys() {
  static const ClusterKeys keys = {
      {"capacity", ClusterValue::kBytes, true, "total capacity"},
      {"reserved", ClusterValue::kBytes, false, "part taken by runtime, contexts and fragmentation; default: 0"},
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
    all.push_back({"tf32", ClusterValue::kOperationRate, false, "rate of f32 products that are computed in TF32"});
    return all;
  }();
  return keys;
}

const ClusterKeys& cluster_efficiency_keys() {
  static const ClusterKeys keys = {
      {"matmul", ClusterValue::kShare, false, "sustained fraction of the rate in contractions; default: 1"},
      {"matmul_f32", ClusterValue::kShare, false,
       "sustained fraction of the rate in matmuls of f32, where vector units compute them; default: that of matmul"},
      {"matmul_f8", ClusterValue::kShare, false,
       "sustained fraction of the rate in matmuls of f8e4m3, with the copies of operands that they need transposed; "
       "default: that of matmul"},
      {"odd_rows", ClusterValue::kShare, false,
       "sustained fraction of the rate in matmuls of two-byte types whose rows have an odd length, where no compiler "
       "pads them; default: that of matmul"},
      {"attention", ClusterValue::kShare, false,
       "sustained fraction of the rate in fused attention; default: that of matmul"},
      {"convolution", ClusterValue::kShare, false,
       "sustained fraction of the rate in convolutions; default: that of matmul"},
      {"depthwise", ClusterValue::kShare, false,
       "sustained fraction of the rate of f32 in convolutions with fewer than 8 channels in a group, which vector "
       "units compute; default: computed as other convolutions"},
      {"memory", ClusterValue::kShare, false, "sustained fraction of the memory bandwidth; default: 1"},
  };
  return keys;
}

const ClusterKeys& cluster_matrix_units_keys() {
  static const ClusterKeys keys = {
      {"count", ClusterValue::kCount, true, "number of units, each computing one tile of the result at a time"},
      {"tile", ClusterValue::kCount, false, "rows and columns of a tile; default: 128"},
      {"fill", ClusterValue::kCount, false, "time to start and end a tile, in steps of k; default: 0"},
  };
  return keys;
}

const ClusterKeys& cluster_collectives_keys() {
  static const ClusterKeys keys = {
      {"launch", ClusterValue::kTime, false, "fixed time per collective; default: 0"},
      {"per_device", ClusterValue::kTime, false,
       "additional time per device of the group (except for permute), for software that handles the pieces of a tensor "
       "one by one; default: 0"},
      {"direct_all_reduce", ClusterValue::kTime, false,
       "fixed time of an all_reduce in one kernel, whose devices read each other's memory, all at once or in two "
       "phases; within the innermost level; software for inference has it for small tensors; default: none"},
      {"algorithms", ClusterValue::kAlgorithms, false,
       "level by level (default), or rings and trees: also one ring over all devices of a group with a channel per "
       "link, and trees for all_reduce; the fastest counts"},
      {"collective_matmul", ClusterValue::kTruth, false,
       "true: a collective that gathers an operand of a product, or scatters its result, runs piece by piece beside "
       "the product; default: false"},
  };
  return keys;
}

const ClusterKeys& cluster_protocol_keys() {
  static const ClusterKeys keys = {
      {"latency", ClusterValue::kTime, true, "latency of one message"},
      {"bandwidth", ClusterValue::kShare, true, "fraction of the level's sustained bandwidth"},
  };
  return keys;
}

const ClusterKeys& cluster_together_keys() {
  static const ClusterKeys keys = {
      {"kernels", ClusterValue::kShare, false,
       "fraction of its speed that a kernel keeps while a collective runs; default: 1"},
      {"collectives", ClusterValue::kShare, false,
       "fraction of its speed that a collective keeps while a kernel runs; default: 1"},
  };
  return keys;
}

const ClusterKeys& cluster_level_keys() {
  static const ClusterKeys keys = {
      {"name", ClusterValue::kName, true, "name of the level and its mesh axis"},
      {"count", ClusterValue::kCount, true,
       "number of groups of the level below that it joins (devices at the innermost level)"},
      {"latency", ClusterValue::kTime, true, "latency of one message"},
      {"bandwidth", ClusterValue::kByteRate, true, "line rate of one link, one direction"},
      {"efficiency", ClusterValue::kShare, false, "measured fraction of the line rate; default: 1"},
      {"link_per", ClusterValue::kLinkPer, false,
       "device (default): each device has a link into this level; group: the devices of a group of the level below "
       "share "
       "one"},
      {"topology", ClusterValue::kTopology, false,
       "switch (default): each part reaches all others at this rate; full_mesh: a link to each of the others, this "
       "rate "
       "over all of them; ring: each device has two links of this rate, to its "
       "neighbours; line: a ring that is not closed; adjacent rings and lines are the dimensions of a torus, whose "
       "links a collective uses at the same time"},
      {"contention", ClusterValue::kShare, false,
       "fraction of the bandwidth left when all groups communicate at once; default: 1"},
      {"protocols", ClusterValue::kProtocols, false,
       "alternative protocols, for small messages; a collective uses the fastest one, the same on all levels"},
      {"together", ClusterValue::kSpeedsTogether, false,
       "speeds of kernels and of collectives on these links while both run"},
  };
  return keys;
}

const ClusterKeys& cluster_table_keys() {
  static const ClusterKeys keys = {
      {"collective", ClusterValue::kCollective, true, "the collective that was measured"},
      {"level", ClusterValue::kName, true, "the level along which it ran"},
      {"devices", ClusterValue::kCount, true, "number of devices or groups of that level, at least 2"},
      {"of", ClusterValue::kCount, false, "the level's count when it was measured, if it was larger than it is here"},
      {"bytes", ClusterValue::kByteList, true, "sizes of the complete tensor of a group, ascending"},
      {"time", ClusterValue::kTimeList, true, "one time per size"},
  };
  return keys;
}

std::vector<std::string> key_names(const ClusterKeys& keys) {
  std::vector<std::string> names;
  for (const ClusterKey& key : keys) names.push_back(key.name);
  return names;
}

}  // namespace shardplan
