#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "graph/operator_graph.h"
#include "graph/training_options.h"
#include "model/syntax/strategy_syntax.h"

namespace shardplan {

/// How collectives of one kind are joined: MindSpore's comm_fusion.
struct CommFusion {
  std::string mode;                  // "auto", "size", "index"
  std::vector<std::int64_t> config;  // size: one number, in MB; index: where fusion ids change
};

/// The `parallel:` section, with MindSpore's names and the defaults of the model language.
struct ParallelOptions {
  ParallelMode parallel_mode = ParallelMode::kAutoParallel;
  std::string search = "auto";  // our name of search_mode: propagation, elimination, ilp, auto, ...
  std::optional<std::int64_t> device_num;
  std::vector<std::pair<std::string, std::int64_t>> mesh;  // empty: the cluster's levels
  bool mesh_auto = false;
  int level = 0;
  std::string compat;  // "" or "mindspore-1.7"
  bool keep_out_strategy = true;
  bool full_batch = false;
  std::optional<std::string>
      dataset_strategy;  // "data_parallel", "full_batch", or "entries"; set in the inputs' layouts as well
  std::vector<StrategyEntry> dataset_entries;  // one per input
  bool gradients_mean = false;
  bool gradient_fp32_sync = true;
  bool parameter_broadcast = false;
  std::map<std::string, CommFusion> comm_fusion;  // by "allreduce", "allgather", "reducescatter"
  std::string device;                             // "Ascend", "GPU" or ""
  bool enable_parallel_optimizer = false;
  std::string strategy_ckpt_save_file;
  std::string strategy_ckpt_load_file;
  SourcePlace place;
};

/// Values that replace what the source says.
struct ModelOverrides {
  std::map<std::string, std::int64_t> dims;       // --dim B=16
  std::map<std::string, std::string> strategies;  // --set NAME=ENTRY
};

class ModelSource;

/// A model at given sizes: the graph, and what else its source says.
struct Model {
  std::string name;
  std::shared_ptr<const ModelSource> source;  // to ask for it at other sizes (model/model_source.h)
  OperatorGraph graph;                        // forward; graph/differentiate makes the training graph
  std::optional<TrainingOptions> training;
  ParallelOptions parallel;
  std::optional<std::string> cluster;        // preset or path
  std::map<std::string, std::int64_t> dims;  // all file-level dims, evaluated
  std::vector<std::string>
      free_dims;  // those given as plain numbers, in the order of the file: a proof may shrink them
  std::vector<std::string> dim_order;    // all file-level dims in the order of the file
  std::vector<std::string> repeat_dims;  // those that `repeat:` counts depend on
  std::string batch;         // the first dimension of the first input, as written: "B", a dim that can be divided; or
                             // "2*B", "32", which cannot; empty if there is none
  ModelOverrides overrides;  // with which it was asked for
  std::int64_t divided_by = 1;       // micro-batches: the model is of one (model/planned_model.h)
  std::vector<std::string> notices;  // for standard error
};

}  // namespace shardplan
