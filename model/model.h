#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/operator_graph.h"
#include "graph/training_options.h"
#include "model/syntax/settings.h"

namespace shardplan {

/// How collectives of one kind are joined: MindSpore's comm_fusion (model/comm_fusion_options.h).
struct CommFusion {
  enum class Mode { kNone, kSize, kIndex, kBest };
  Mode mode = Mode::kBest;
  Bytes size = Bytes{64} << 20;      // kSize: of the largest bucket
  std::vector<std::int64_t> config;  // kIndex: the first collective of each bucket, counted from 0

  bool operator==(const CommFusion&) const = default;
};

/// `comm_fusion` of the file; a kind that it does not name is joined wherever that is fastest.
struct CommFusions {
  CommFusion all_reduce, all_gather, reduce_scatter;
  std::optional<SourcePlace> place;  // nothing: the file has none

  /// True if the file names a kind that is to be joined; only `openstate: false` asks for none.
  bool asks_for_some() const { return place && all_reduce.mode != CommFusion::Mode::kNone; }
  /// True for `openstate: false`.
  bool joins_nothing() const { return place && !asks_for_some(); }
  bool operator==(const CommFusions& other) const {
    return all_reduce == other.all_reduce && all_gather == other.all_gather && reduce_scatter == other.reduce_scatter;
  }
};

/// The `parallel:` section, with MindSpore's names and the defaults of the model language.
struct ParallelOptions {
  bool is_pynative = false;  // `mode:` of the file: what is not sharded is data parallel
  SourcePlace mode_place;
  ParallelMode parallel_mode = ParallelMode::kAutoParallel;
  SourcePlace parallel_mode_place;
  std::string search = "auto";  // our name of search_mode: propagation, elimination, ilp, auto, ...
  SourcePlace search_place;
  std::optional<Placed<std::int64_t>> device_num;
  std::optional<Placed<std::int64_t>> workers;             // of `place`; nothing: as many as devices
  std::vector<std::pair<std::string, std::int64_t>> mesh;  // empty: the cluster's levels
  bool searches_mesh = false;                              // `mesh: auto` (planner/mesh_search.h)
  SourcePlace mesh_place;
  int level = 0;
  std::string compat;  // "" or "mindspore-1.7"
  bool keep_out_strategy = true;
  bool full_batch = false;
  std::optional<std::string>
      dataset_strategy;  // "data_parallel", "full_batch", or "entries"; set in the inputs' layouts as well
  std::vector<StrategyEntry> dataset_entries;  // one per input
  /// data_parallel: a parameter's gradient is the mean of the devices' (true, and where it is not said), or their sum.
  std::optional<Placed<bool>> gradients_mean;
  /// data_parallel, semi_auto_parallel: gradients of two-byte parameters are summed as f32, or as they are. Nothing:
  /// the search decides.
  std::optional<Placed<bool>> gradient_fp32_sync;
  bool parameter_broadcast = false;  // before the first step, of what devices begin with (program/startup_broadcasts.h)
  bool local_batch_norm = false;     // data_parallel: each device normalises by its own part of the batch
  std::optional<Placed<std::string>> device;  // "Ascend", "GPU" or "CPU", here or on a block
  bool enable_parallel_optimizer = false;
  SourcePlace enable_parallel_optimizer_place;
  /// data_parallel, semi_auto_parallel: the stage of ZeRO, 0 to 3 (planner/problem/mode_strategies.h). Nothing: as the
  /// modes do, and in auto_parallel as the search finds.
  std::optional<Placed<std::int64_t>> zero;
  /// The same modes, with micro-batches: gradients that are in pieces for the update are summed over the devices with
  /// every micro-batch (true), or whole on each device and once a step (false). Nothing: as the stage says.
  std::optional<Placed<bool>> gradient_accumulation_shard;
  bool reshard_after_forward =
      true;  // the same modes: a weight in pieces is gathered again for the backward pass, not kept
  std::optional<bool> gather_again;  // activations, where no block or operator says otherwise (GraphOperator)
  CommFusions comm_fusion;
  std::string strategy_save_file;  // paths; empty: none
  Placed<std::string> strategy_load_file;
  bool allows_uneven = true;     // cuts in unequal pieces (layouts/uneven.h); never under `compat`
  bool fuses_attention = false;  // attention that is written out is planned as one operator (graph/fuse_attention.h)
  bool uniform_layers = true;    // copies of a repeated block take one strategy (planner/problem/uniform_layers.h)
  SourcePlace place;
};

/// Which device of how many reads a model that is written per device: `rank` and `group_size` of its expressions.
struct LocalView {
  std::int64_t rank = 0;
  std::int64_t group_size = 1;

  bool operator==(const LocalView&) const = default;
};

/// Values that replace what the source says.
struct ModelOverrides {
  std::map<std::string, std::int64_t> dims;            // --dim B=16
  std::map<std::string, std::string> strategies;       // --set NAME=ENTRY
  std::optional<LocalView> local = {};                 // of a model written per device; nothing: rank 0 of device_num
  std::map<std::int64_t, std::int64_t> literals = {};  // instead of whole numbers written in shapes and attributes
  std::map<std::string, std::int64_t> padded = {};     // what dims with `pad` are padded to, instead of the multiple
  bool pads = true;                                    // false: `pad` has no effect
  std::int64_t most_copies = 0;                        // above 0: no block is repeated more often
};

/// A dim that the file pads: `dims: {V: {size: 50257, pad: 128}}`.
struct PaddedDim {
  std::int64_t real = 1;    // its size
  std::int64_t padded = 1;  // rounded up

  bool operator==(const PaddedDim&) const = default;
};

class ModelSource;

/// A model at given sizes: the graph, and what else its source says.
struct Model {
  std::string name;
  std::shared_ptr<const ModelSource> source;  // to ask for it at other sizes (model/model_source.h)
  OperatorGraph graph;                        // forward; graph/differentiate makes the training graph
  std::optional<TrainingOptions> training;
  std::optional<DataType> autocast;       // of products (graph/autocast.h); the graph is as it runs
  std::vector<std::string> int8_weights;  // of whose products weights are stored in i8 (graph/int8_weights.h)
  std::vector<std::string> fp8;           // whose products multiply in f8e4m3 (graph/float8.h), as the file names them
  ParallelOptions parallel;
  Placed<std::string> cluster;               // preset or path; "": the source names none
  std::map<std::string, std::int64_t> dims;  // all file-level dims, evaluated, padded ones as they are padded
  std::vector<std::string>
      free_dims;  // those given as plain numbers, in the order of the file: a proof may shrink them
  std::vector<std::int64_t> literals;    // whole numbers written in shapes and attributes, the large ones, ascending
  std::vector<std::string> dim_order;    // all file-level dims in the order of the file
  std::vector<std::string> repeat_dims;  // those that `repeat:` counts depend on
  std::string batch;  // the first dimension of the first input, as written: "B", a dim that can be divided; or
                      // "2*B", "32", which cannot; empty if there is none
  std::optional<LocalView>
      local;  // of a model written per device (model/local_model.h): all else is what that rank has
  std::set<std::string> not_exchanged;  // its layerwise_parallel parameters
  std::map<std::string, Shape> begins;  // where its inputs and parameters begin in those of all devices, if it says so
  ModelOverrides overrides;             // that were requested
  std::map<std::string, PaddedDim> padded_dims;  // those that `pad` makes larger
  std::shared_ptr<const Model> unpadded;         // the same without padding; null: nothing is padded (graph/pad.h)
  std::int64_t divided_by = 1;                   // micro-batches: the model is of one (model/planned_model.h)
  std::optional<Placed<int>> last_worker;        // the highest that a `place` names; nothing: no operator has one
  std::vector<std::string> notices;              // for standard error
};

}  // namespace shardplan
