#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// A training run, or a step of inference, with a published time (bench/published/*.yaml), and the parallelism that it used.
struct PublishedRun {
  std::string name;
  std::string what;   // model, devices and parallelism in words, for tables
  std::string model;  // a file of bench/published/models/, or a shipped one of configs/ by its path
  std::map<std::string, std::int64_t> dims;
  std::string cluster;        // a preset, or a file of bench/published/clusters/
  std::int64_t replicas = 1;  // devices: replicas x data x context x tensor; ZeRO is within a replica
  std::int64_t data = 1;
  std::int64_t context = 1;  // cuts the sequence of each sample; attention gathers keys and values
  bool zigzag = true;        // with `context`: the sequence is dealt so that causal work is the same everywhere
  std::int64_t tensor = 1;
  bool sequence_parallel = false;
  bool gather_again = false;        // operands of products, for the backward pass, instead of keeping them
  bool whole_logits = false;        // gathered for the loss
  bool own_gathers = false;         // gathers the operand of each product separately, not once for all readers
  bool whole_table = false;         // the embedding's table is not sharded by tensor parallelism
  int zero = 0;                     // 0, 1 or 3
  std::string optimizer = "adamw";  // none: inference
  std::string precision = "bf16";   // of weights and activations
  bool autocast = false;            // of products only; weights are f32
  std::string int8_weights;         // names of what stores weights in i8, in decoding
  bool fp8_cache = false;           // of keys and values, in decoding
  std::string fp8;                  // names of blocks whose products of weights are in f8, separated by commas
  bool wide_gradients = false;      // summed over the devices as f32
  bool narrow_gradients = false;    // held in two bytes, also over micro-batches
  std::int64_t bucket = 0;          // of all_reduced gradients, in MiB, if the software has a fixed size
  bool fused_attention = true;
  bool written_norms = false;  // norms and rotations as several operators, as without a compiler
  bool fused_loss = false;     // on logits of two bytes
  bool eager_loss = false;     // not compiled: its steps in f32 are kernels and tensors of their own
  std::string recompute;       // names of blocks, separated by commas
  std::int64_t micro_batches = 1;
  bool scatters_once = false;      // gradients, after the last micro-batch
  bool local_batch_norm = false;   // data parallelism with norms over each device's own rows
  bool overlap = true;             // collectives run beside kernels
  bool collective_matmul = false;  // those of tensor parallelism run in pieces beside their products
  bool narrow_states = false;      // weights of two bytes without a master copy, moments of two
  std::string figure;              // as published
  double seconds = 0;              // derived time of a step; 0: not published
  std::string memory;              // of a device, as published, "62.4 GB"; empty: not published
  double gibibytes = 0;            // the same
  std::string assumed;             // what the source does not state

  bool is_inference() const { return optimizer == "none"; }
};

/// The runs of one source.
struct PublishedSource {
  std::string title;
  std::string from;     // where the figures were published
  std::string assumed;  // of all its runs
  std::vector<PublishedRun> runs;
};

/// Reads a file of bench/published/; throws InputError.
PublishedSource read_published(const std::string& path);
/// All of them, in the order of their names.
std::vector<PublishedSource> published_sources();

/// The model file of a run, with its parallelism as `strategies:`, `training:` and `parallel:`.
std::string model_text(const PublishedRun& run);
/// The plan of a run, made as `plan` makes it. Nothing about the layouts is left to choose but what the run leaves open.
Plan plan_of(const PublishedRun& run);

}  // namespace shardplan
