// The common part of all commands that plan: their options, and how a planner is made from them.
//
// A job comes from three sources, in order of precedence: the options, the settings in a plan.json of the run that
// wrote it, and the model file. Planning options next to a plan.json cause it to be planned again; without them its
// decisions are kept and only the figures are computed from them.

#include "cli/commands/planning_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdlib>

#include "base/error.h"
#include "base/shortened.h"
#include "base/write_files.h"
#include "base/yaml.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "costmodel/cluster/quantity.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/mesh_search.h"
#include "planner/problem/strategy_file.h"
#include "report/plan_file/plan_file.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

ModelOverrides overrides(const PlanningArguments& arguments) {
  ModelOverrides result;
  for (const std::string& text : arguments.dims) {
    const std::size_t equals = text.find('=');
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const char* begin = text.data() + (equals == std::string::npos ? text.size() : equals + 1);
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (equals == 0 || equals == std::string::npos || error != std::errc() || stop != end || value < 1) {
      throw InputError(SourcePlace{}, "--dim {}: expected NAME=SIZE with a whole number of at least 1, as B=16", text);
    }
    result.dims[text.substr(0, equals)] = value;
  }
  for (const std::string& text : arguments.strategies) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw InputError(SourcePlace{}, "--set {}: expected NAME=STRATEGY, as 'fc.weight=[{{}}, {{mp}}]'", text);
    }
    result.strategies[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return result;
}

/// A preset by its name, which includes the number of nodes; any other cluster from the text in the plan file.
Cluster cluster_of(const PlanFile& file) {
  Cluster cluster;
  try {
    cluster = read_cluster(file.cluster_name);
  } catch (const InputError&) {
    cluster = read_cluster_text(file.cluster_text, file.cluster_name);
  }
  const std::int64_t devices = file.workers * file.mesh.num_devices();
  if (cluster.num_devices() == devices) return cluster;
  try {
    return take_devices(cluster, devices);
  } catch (const InputError& error) {
    throw InputError({file.file, 0, 0}, "mesh: {}", error.diagnostics().front().message);
  }
}

bool is_plan_file(const std::string& path) { return path.ends_with(".json"); }

/// The given options that affect the plan, as given.
std::vector<std::string> given_options(const PlanningArguments& arguments) {
  std::vector<std::string> given;
  const auto add = [&](const char* name, const auto& value) {
    if (value) given.push_back(fmt::format("{} {}", name, *value));
  };
  add("--cluster", arguments.cluster);
  add("--device-num", arguments.device_num);
  add("--rank-table", arguments.rank_table);
  for (const std::string& text : arguments.dims) given.push_back("--dim " + text);
  for (const std::string& text : arguments.strategies) given.push_back("--set " + text);
  add("--strategy-ckpt-load-file", arguments.strategy_load_file);
  add("--capacity", arguments.capacity);
  add("--costs", arguments.costs);
  add("--level", arguments.level);
  add("--search", arguments.search);
  add("--layers", arguments.layers);
  add("--memory-slack", arguments.memory_slack);
  add("--memory", arguments.memory);
  add("--overlap", arguments.overlap);
  add("--time-limit", arguments.time_limit);
  add("--work-limit", arguments.work_limit);
  if (arguments.proves) return given;
  add("--seed", arguments.seed);
  add("--threads", arguments.threads);
  return given;
}

Bytes parse_capacity(const std::string& text) {
  Bytes bytes = 0;
  try {
    bytes = parse_bytes(text);
  } catch (const InputError& error) {
    throw InputError(SourcePlace{}, "--capacity: {}", error.diagnostics().front().message);
  }
  if (bytes < 1) throw InputError(SourcePlace{}, "--capacity: expected at least one byte, as 16GiB; found {}", text);
  return bytes;
}

void apply(const PlanningArguments& arguments, PlanOptions& options) {
  if (arguments.level) options.level = level_of(*arguments.level);
  if (arguments.costs) {
    options.costs = *arguments.costs == "mindspore" ? StrategyCosts::kMindSpore : StrategyCosts::kCluster;
  }
  options.search = arguments.search.value_or(options.search);
  options.seed = arguments.seed.value_or(options.seed);
  options.time_limit = arguments.time_limit.value_or(options.time_limit);
  options.work_limit = arguments.work_limit.value_or(options.work_limit);
  options.threads = arguments.threads.value_or(options.threads);
  if (arguments.strategy_load_file) options.strategy_file = arguments.strategy_load_file;
  options.memory_slack = arguments.memory_slack.value_or(options.memory_slack);
  if (arguments.capacity) options.capacity = parse_capacity(*arguments.capacity);
  if (arguments.layers) options.uniform_layers = *arguments.layers == "uniform";
  if (arguments.overlap) options.overlap = *arguments.overlap == "on";
  if (arguments.memory) options.bounded_redistribution = *arguments.memory == "bounded";
}

/// Set by MindSpore's launchers; the option takes precedence.
constexpr char kRankTableVariable[] = "RANK_TABLE_FILE";

/// The devices from the options, else from `file`, else from the model.
JobCluster job_of(const PlanningArguments& arguments, const PlanFile* file, const Model& model) {
  if (file != nullptr && !arguments.cluster && !arguments.rank_table) {
    const Cluster cluster = cluster_of(*file);
    return {arguments.device_num ? job_devices(cluster, *arguments.device_num) : cluster, {}};
  }
  AskedDevices asked{arguments.cluster, arguments.device_num, arguments.rank_table};
  const char* table = std::getenv(kRankTableVariable);
  if (file == nullptr && !asked.rank_table && table != nullptr && *table != '\0') {
    asked.rank_table = table;
    JobCluster job = job_cluster(model, asked);
    notice(fmt::format("notice: the ranks are ordered by {} ({})", table, kRankTableVariable));
    return job;
  }
  return job_cluster(model, asked);
}

/// The inputs of a planner.
struct PlanningJob {
  std::shared_ptr<const Model> model;
  Cluster cluster;
  PlanOptions options;
};

/// The job that the options and `file`, if any, describe.
PlanningJob planning_job(const PlanningArguments& arguments, const PlanFile* file) {
  PlanOptions options = file != nullptr ? file->options : PlanOptions();
  ModelOverrides changed{options.dims, options.strategies};
  const ModelOverrides given = overrides(arguments);
  for (const auto& [name, size] : given.dims) changed.dims[name] = size;
  for (const auto& [name, entry] : given.strategies) changed.strategies[name] = entry;
  if (arguments.device_num) changed.local = LocalView{0, *arguments.device_num};
  auto model =
      std::make_shared<const Model>(file != nullptr ? model_source(file->model_text, file->model_file)->at(changed)
                                                    : read_model(arguments.model, changed));
  const JobCluster job = job_of(arguments, file, *model);
  if (file == nullptr) {
    options.level = level_of(model->parallel.level);
    options.search = model->parallel.search;
    options.uniform_layers = model->parallel.uniform_layers;
  }
  apply(arguments, options);
  options.dims = changed.dims;
  options.strategies = changed.strategies;
  options.time_spent = elapsed_seconds();
  for (const std::string& text : model->notices) notice(text);
  for (const std::string& text : job.cluster.notices) notice(text);
  for (const std::string& text : job.notices) notice(text);
  if (model->local) throw WrittenPerDevice(model, job.cluster);
  return {std::move(model), job.cluster, std::move(options)};
}

std::unique_ptr<ModelPlanner> make_planner(PlanningJob job) {
  auto planner = std::make_unique<ModelPlanner>(std::move(job.model), job.cluster, std::move(job.options));
  for (const std::string& text : planner->notices()) notice(text);
  return planner;
}

/// The plan stored in the file, with figures computed from its decisions.
Plan stored_plan(const PlanFile& file, const std::string& path, const ModelPlanner& planner) {
  if (!(planner.mesh() == file.mesh)) {
    throw InputError({path, 0, 0}, "mesh: the plan's is {}, but its model and cluster give {}", file.mesh.to_string(),
                     planner.mesh().to_string());
  }
  const Decisions decisions = decisions_of(file, planner.graph(), planner.versions(), file.mesh);
  Plan plan = planner.unsolved(file.options.level, file.options.search);
  plan.status = file.status;
  plan.candidates_complete = file.candidates_complete;
  plan.cost = file.cost;
  plan.bound = file.bound;
  plan.free_bound = file.free_bound;
  plan.overlapped_bound = file.overlapped_bound;
  plan.is_bound_one_block_ahead = file.is_bound_one_block_ahead;
  plan.mindspore = file.mindspore;
  plan.baselines = file.baselines;
  return planner.reported(decisions, std::move(plan));
}

PlanningJob read_job(const PlanningArguments& arguments) {
  if (!is_plan_file(arguments.model)) return planning_job(arguments, nullptr);
  const PlanFile file = read_plan_file(read_text_file(arguments.model, kMostWrittenBytes), arguments.model);
  PlanningJob job = planning_job(arguments, &file);
  job.options.pieces.clear();  // they belong to the stored plan, which is not used
  return job;
}

/// Refuses options that have no effect at the plan's level.
void check_level(const PlanningArguments& arguments, Level level) {
  if (!arguments.memory_slack || level == Level::kMemory) return;
  throw InputError(SourcePlace{}, "--memory-slack {}: it has an effect at level 1 only; this plan is of level {}",
                   *arguments.memory_slack, number_of(level));
}

void report_progress(const SearchProgress& found) {
  if (found.cost) answer_found();
}

/// `mesh: auto`.
PreparedPlan plan_in_all_shapes(const PlanningJob& job) {
  ShapedPlan best = plan_best_shape(job.model, job.cluster, job.options, interrupt_token(), report_progress);
  for (const std::string& text : best.planner->notices()) notice(text);
  return {std::move(best.planner), std::move(best.plan)};
}

/// Prints notices of the planning; those of the model and of the planner itself were printed before.
void say_notices(const PreparedPlan& prepared) {
  const std::size_t known = prepared.plan.model->notices.size() + prepared.planning->notices().size();
  for (std::size_t i = known; i < prepared.plan.notices.size(); ++i) notice(prepared.plan.notices[i]);
}

/// Saves the strategies if the options or the model say so.
void save_strategies(const PlanningArguments& arguments, const PreparedPlan& prepared) {
  const Plan& plan = prepared.plan;
  const std::string path = arguments.strategy_save_file.value_or(plan.model->parallel.strategy_save_file);
  if (!path.empty() && prepared.is_found()) write_file(path, strategy_file_text(plan));
}

}  // namespace

WrittenPerDevice::WrittenPerDevice(std::shared_ptr<const Model> found, Cluster on)
    : InputError(
          found->parallel.parallel_mode_place,
          "{} is written per device, so there is nothing to search or to lay out; `plan` computes its cost, `simulate` "
          "runs it, `validate --against FILE` compares it with a model in the view of all devices",
          found->name),
      model(std::move(found)),
      cluster(std::move(on)) {}

Option model_argument(PlanningArguments& arguments) {
  return argument("MODEL", &arguments.model, "a model file (YAML), or the plan.json of an earlier run")
      .completed_by(Completion::kFile);
}

std::vector<OptionGroup> planning_options(PlanningArguments& arguments, SavesStrategies saves) {
  std::vector<OptionGroup> groups = {
      {"Model and cluster",
       {option("--cluster", "CLUSTER", &arguments.cluster,
               fmt::format("a preset ({}; with xN for N nodes, as dgx-a100x8) or a cluster file", preset_list()))
            .completed_by(Completion::kCluster),
        option("--device-num", "N", &arguments.device_num, "use only the first N devices", at_least(1)),
        option("--rank-table", "FILE", &arguments.rank_table, "servers, devices and ranks from this file")
            .with_default("RANK_TABLE_FILE")
            .completed_by(Completion::kFile),
        option("--dim", "NAME=SIZE", &arguments.dims, "override one of the model's dims, as B=16"),
        option("--set", "NAME=LAYOUT", &arguments.strategies,
               "a layout or strategy for a tensor or operator, as 'layer1.weight=[{}, {mp}]'"),
        option("--strategy-ckpt-load-file", "FILE", &arguments.strategy_load_file,
               "fix the strategies that an earlier plan saved in this file; the rest is searched")
            .completed_by(Completion::kFile),
        option("--capacity", "BYTES", &arguments.capacity, "memory per device, as 16GiB, instead of the cluster's")}},
      {"Search",
       {option("--level", "LEVEL", &arguments.level,
               "0: least communication, so that the ratio of computation to communication is greatest; 1: least "
               "memory; 2: fastest step",
               from_to(0, 2)),
        option("--costs", "NAME", &arguments.costs,
               "what to minimise when choosing forward strategies: the cluster's times, or the weighted bytes of "
               "MindSpore's cost model",
               one_of({"cluster", "mindspore"}))
            .with_default("cluster"),
        option("--search", "NAME", &arguments.search, "the search", one_of(search_names())),
        option("--layers", "MODE", &arguments.layers,
               "uniform: all copies of a repeated block have the same strategies, as in a module class or a scan over "
               "layers; free: each copy has its own",
               one_of({"uniform", "free"}))
            .with_default("the model's, else uniform"),
        option("--memory-slack", "SHARE", &arguments.memory_slack,
               "at level 1, how much above the least memory the plan may be for a faster step, as a share",
               from_to(0, 1))
            .with_default("0.01"),
        option("--memory", "MODE", &arguments.memory,
               "bounded: no shard during a redistribution is larger than the larger of its two ends",
               one_of({"bounded", "unbounded"}))
            .with_default("bounded"),
        option("--overlap", "MODE", &arguments.overlap,
               "on: collectives overlap with kernels, in the order that hides the most communication; off: everything "
               "runs one after the other",
               one_of({"on", "off"}))
            .with_default("on"),
        option("--seed", "N", &arguments.seed, "seed of the search and of a proof's data").with_default("0"),
        option("--time-limit", "SECONDS", &arguments.time_limit,
               "stop the search after this time, with the best plan so far", positive()),
        option("--work-limit", "UNITS", &arguments.work_limit,
               "stop the search after this much work; gives the same plan on every machine", positive()),
        option("--threads", "N", &arguments.threads,
               "threads of the search; idle processors help without changing the plan", from_to(1, 64))
            .with_default("1")}},
  };
  if (saves == SavesStrategies::kYes) {
    std::vector<Option>& of_model = groups.front().options;
    of_model.insert(of_model.end() - 1, option("--strategy-ckpt-save-file", "FILE", &arguments.strategy_save_file,
                                               "write the plan's strategies into this file")
                                            .completed_by(Completion::kFile));
  }
  return groups;
}

Option html_option(std::string& file) {
  return option("--html", "FILE", &file, "write a self-contained web page: graph, timeline, memory, tables")
      .completed_by(Completion::kFile);
}

std::unique_ptr<ModelPlanner> make_planning(const PlanningArguments& arguments) {
  limit_time(arguments.time_limit.value_or(0));
  begin_phase(fmt::format("reading {}", shortened(arguments.model)), PhaseEnd::kAtOnce);
  PlanningJob job = read_job(arguments);
  begin_phase("planning", PhaseEnd::kBySelf);
  if (job.model->parallel.searches_mesh) return plan_in_all_shapes(job).planning;
  return make_planner(std::move(job));
}

PreparedPlan plan_or_load(const PlanningArguments& arguments) {
  PreparedPlan result;
  const std::vector<std::string> given = given_options(arguments);
  if (is_plan_file(arguments.model) && given.empty()) {
    begin_phase(fmt::format("reading {}", shortened(arguments.model)), PhaseEnd::kAtOnce);
    const PlanFile file = read_plan_file(read_text_file(arguments.model, kMostWrittenBytes), arguments.model);
    PlanningArguments stored;  // the file contains what the plan took from a strategy file
    stored.strategy_load_file = "";
    result.planning = make_planner(planning_job(stored, &file));
    result.plan = stored_plan(file, arguments.model, *result.planning);
    result.proof = file.proof;
    begin_phase("writing the answer", PhaseEnd::kBySelf);
    say_notices(result);
    save_strategies(arguments, result);
    return result;
  }
  if (is_plan_file(arguments.model)) {
    notice(fmt::format("notice: the model of {} is planned again with {}", arguments.model, fmt::join(given, " ")));
  }
  limit_time(arguments.time_limit.value_or(0));
  begin_phase(fmt::format("reading {}", shortened(arguments.model)), PhaseEnd::kAtOnce);
  PlanningJob job = read_job(arguments);
  check_level(arguments, job.options.level);
  if (job.model->parallel.searches_mesh) {
    begin_phase("planning", PhaseEnd::kAtOnce);
    result = plan_in_all_shapes(job);
  } else {
    begin_phase("planning", PhaseEnd::kAtOnce);
    result.planning = make_planner(std::move(job));
    const PlanOptions& options = result.planning->options();
    const bool begins_data_parallel = arguments.shows_data_parallel && !arguments.time_limit;
    if (begins_data_parallel) result.planning->begin_data_parallel();
    result.plan = result.planning->plan(options.level, options.search, interrupt_token(), report_progress);
    if (begins_data_parallel && result.plan.program.workers == 1) result.planning->data_parallel();
  }
  begin_phase("writing the answer", PhaseEnd::kBySelf);
  if (interrupt_token().stop_requested() && result.is_found()) {
    result.plan.notices.push_back("interrupted: this is the best plan so far");
  }
  say_notices(result);
  save_strategies(arguments, result);
  return result;
}

}  // namespace shardplan
