// The common part of all commands that plan: their options, and how a planner is made from them.
//
// A job comes from three sources, in order of precedence: the options, the settings in a plan.json of the run that
// wrote it, and the model file. Planning options next to a plan.json cause it to be planned again; without them its
// decisions are kept and only the figures are computed from them.

#include "cli/commands/planning_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include "base/error.h"
#include "base/parse_number.h"
#include "base/shortened.h"
#include "base/write_files.h"
#include "base/yaml.h"
#include "cli/interrupt.h"
#include "cli/own_memory.h"
#include "cli/terminal.h"
#include "costmodel/cluster/quantity.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/mesh_search.h"
#include "planner/plan_notices.h"
#include "planner/problem/strategy_file.h"
#include "report/plan_file/plan_file.h"
#include "solver/searches/search_list.h"

namespace shardplan {
namespace {

/// Of two values for one name neither is the obvious one.
template <class Value>
void set_once(const char* option, std::map<std::string, Value>& values, const std::string& name, const Value& value) {
  const auto [known, is_new] = values.emplace(name, value);
  if (is_new || known->second == value) return;
  throw InputError(SourcePlace{}, "{} {}: given as {} and as {}; it may be given once", option, name, known->second,
                   value);
}

ModelOverrides overrides(const PlanningArguments& arguments) {
  ModelOverrides result;
  for (const std::string& text : arguments.dims) {
    const std::size_t equals = text.find('=');
    const bool has_both = equals != 0 && equals != std::string::npos;
    const auto size = has_both ? parse_number<std::int64_t>(std::string_view(text).substr(equals + 1)) : std::nullopt;
    if (!size || *size < 1) {
      throw InputError(SourcePlace{}, "--dim {}: expected NAME=SIZE with a whole number of at least 1, as B=16", text);
    }
    set_once("--dim", result.dims, text.substr(0, equals), *size);
  }
  for (const std::string& text : arguments.strategies) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw InputError(SourcePlace{}, "--set {}: expected NAME=STRATEGY, as 'fc.weight=[{{}}, {{mp}}]'", text);
    }
    set_once("--set", result.strategies, text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

/// From the text in the plan file: a file of the user may have a preset's name.
Cluster cluster_of(const PlanFile& file) {
  const Cluster cluster = read_cluster_text(file.cluster_text, file.cluster_name);
  const std::int64_t devices = file.workers * file.mesh.num_devices();
  if (cluster.num_devices() == devices) return cluster;
  try {
    return take_devices(cluster, devices);
  } catch (const InputError& error) {
    throw InputError({file.file, 0, 0}, "mesh: {}", error.diagnostics().front().message);
  }
}

bool is_plan_file(const std::string& path) { return path.ends_with(".json"); }

/// An option of the planning, declared in one place: what it acts on, and what it sets. Whatever treats these options
/// alike is a loop over the table.
struct PlanningOption {
  PlanningRole role;
  void (*apply)(const PlanningArguments& given, PlanOptions& options);
  Option option;
};
struct PlanningGroup {
  std::string title;
  std::vector<PlanningOption> options;
};

/// Of options that are not among `PlanOptions`: `planning_job` and `save_strategies` read them.
void apply_nothing(const PlanningArguments&, PlanOptions&) {}

std::vector<PlanningGroup> planning_table(PlanningArguments& arguments) {
  using Given = const PlanningArguments&;
  return {
      {"Model and cluster",
       {{PlanningRole::kJob, apply_nothing,
         option("--cluster", "CLUSTER", &arguments.cluster,
                fmt::format("a preset ({}; with xN for N nodes, as dgx-a100x8) or a cluster file", preset_list()))
             .completed_by(Completion::kCluster)},
        {PlanningRole::kJob, apply_nothing,
         option("--device-num", "N", &arguments.device_num, "use only the first N devices", at_least(1))},
        {PlanningRole::kJob, apply_nothing,
         option("--rank-table", "FILE", &arguments.rank_table, "servers, devices and ranks from this file")
             .with_default("RANK_TABLE_FILE")
             .completed_by(Completion::kFile)},
        {PlanningRole::kJob, apply_nothing,
         option("--dim", "NAME=SIZE", &arguments.dims, "override one of the model's dims, as B=16")},
        {PlanningRole::kSearch, apply_nothing,
         option("--set", "NAME=LAYOUT", &arguments.strategies,
                "a layout or strategy for a tensor or operator, as 'layer1.weight=[{}, {mp}]'")},
        {PlanningRole::kSearch,
         [](Given given, PlanOptions& options) {
           if (given.strategy_load_file) options.strategy_file = given.strategy_load_file;
         },
         option("--strategy-ckpt-load-file", "FILE", &arguments.strategy_load_file,
                "fix the strategies that an earlier plan saved in this file; the rest is searched")
             .completed_by(Completion::kFile)},
        {PlanningRole::kSaved, apply_nothing,
         option("--strategy-ckpt-save-file", "FILE", &arguments.strategy_save_file,
                "write the plan's strategies into this file")
             .completed_by(Completion::kFile)
             .writing()},
        {PlanningRole::kCapacity,
         [](Given given, PlanOptions& options) {
           if (given.capacity) options.capacity = parse_capacity(*given.capacity);
         },
         option("--capacity", "BYTES", &arguments.capacity,
                "usable memory per device, as 16GiB, instead of the cluster's")}}},
      {"Search",
       {{PlanningRole::kSearch,
         [](Given given, PlanOptions& options) {
           if (given.level) options.level = level_of(*given.level);
         },
         option("--level", "LEVEL", &arguments.level,
                "0: least communication, so that the ratio of computation to communication is greatest; 1: least "
                "memory; 2: fastest step",
                from_to(0, 2))},
        {PlanningRole::kSearch,
         [](Given given, PlanOptions& options) {
           if (!given.costs) return;
           options.costs = *given.costs == "mindspore" ? StrategyCosts::kMindSpore : StrategyCosts::kCluster;
         },
         option("--costs", "NAME", &arguments.costs,
                "what to minimise when choosing forward strategies: the cluster's times, or the weighted bytes of "
                "MindSpore's cost model",
                one_of({"cluster", "mindspore"}))
             .with_default("cluster")},
        {PlanningRole::kSearch,
         [](Given given, PlanOptions& options) { options.search = given.search.value_or(options.search); },
         option("--search", "NAME", &arguments.search, "the search", one_of(search_names()))},
        {PlanningRole::kSearch,
         [](Given given, PlanOptions& options) {
           if (given.layers) options.uniform_layers = *given.layers == "uniform";
         },
         option("--layers", "MODE", &arguments.layers,
                "uniform: all copies of a repeated block have the same strategies, as in a module class or a scan over "
                "layers; free: each copy has its own",
                one_of({"uniform", "free"}))
             .with_default("the model's, else uniform")},
        {PlanningRole::kSearch,
         [](Given given, PlanOptions& options) {
           options.memory_slack = given.memory_slack.value_or(options.memory_slack);
         },
         option("--memory-slack", "SHARE", &arguments.memory_slack,
                "at level 1, how much above the least memory the plan may be for a faster step, as a share",
                from_to(0, 1))
             .with_default("0.01")},
        {PlanningRole::kSearch,
         [](Given given, PlanOptions& options) {
           if (given.memory) options.bounded_redistribution = *given.memory == "bounded";
         },
         option("--memory", "MODE", &arguments.memory,
                "bounded: no shard during a redistribution is larger than the larger of its two ends",
                one_of({"bounded", "unbounded"}))
             .with_default("bounded")},
        {PlanningRole::kOrder,
         [](Given given, PlanOptions& options) {
           if (given.overlap) options.overlap = *given.overlap == "on";
         },
         option("--overlap", "MODE", &arguments.overlap,
                "on: collectives overlap with kernels, in the order that hides the most communication; off: everything "
                "runs one after the other",
                one_of({"on", "off"}))
             .with_default("on")},
        {PlanningRole::kSeed,
         [](Given given, PlanOptions& options) { options.seed = given.seed.value_or(options.seed); },
         option("--seed", "N", &arguments.seed, "seed of the search and of a proof's data").with_default("0")},
        {PlanningRole::kSearch,
         [](Given given, PlanOptions& options) { options.time_limit = given.time_limit.value_or(options.time_limit); },
         option("--time-limit", "SECONDS", &arguments.time_limit,
                "stop the search after this time, with the best plan so far, and the search of its alternatives after "
                "as much again; in compare, each search; without overlap it goes on until then or a proof",
                positive())},
        {PlanningRole::kSearch,
         [](Given given, PlanOptions& options) { options.work_limit = given.work_limit.value_or(options.work_limit); },
         option("--work-limit", "UNITS", &arguments.work_limit,
                "stop the search after this much work; gives the same plan on every machine", positive())},
        {PlanningRole::kThreads,
         [](Given given, PlanOptions& options) { options.threads = given.threads.value_or(options.threads); },
         option("--threads", "N", &arguments.threads,
                "threads of the search; idle processors help without changing the plan", from_to(1, 64))
             .with_default("1")}}},
  };
}

void apply(const PlanningArguments& arguments, PlanOptions& options) {
  PlanningArguments given = arguments;  // the table's targets are not constant
  for (const PlanningGroup& group : planning_table(given)) {
    for (const PlanningOption& row : group.options) row.apply(arguments, options);
  }
}

/// The given options that affect the plan, as given.
std::vector<std::string> options_of_plan(const PlanningArguments& arguments) {
  std::vector<std::string> texts;
  for (const GivenOption& given : given_options(arguments)) {
    const bool is_of_proof = given.role == PlanningRole::kSeed || given.role == PlanningRole::kThreads;
    if (given.role == PlanningRole::kSaved || (arguments.proves && is_of_proof)) continue;
    texts.push_back(fmt::format("{} {}", given.name, given.value));
  }
  return texts;
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
    notice(fmt::format("notice: the ranks are ordered by {} ({})", table, kRankTableVariable));
    return job_cluster(model, asked);
  }
  return job_cluster(model, asked);
}

/// The files whose texts a plan.json holds, by the names under which they were read.
struct EmbeddedFiles {
  std::string plan;  // empty: there are none
  std::string model;
  std::string cluster;
};

/// Runs `act`. A fault in an embedded text is said to be in the plan.json: the file of that name may be right.
template <class Act>
auto naming_plan_file(const EmbeddedFiles& embedded, const Act& act) {
  try {
    return act();
  } catch (const WrittenPerDevice&) {
    throw;
  } catch (const InputError& error) {
    if (embedded.plan.empty()) throw;
    std::vector<Diagnostic> faults = error.diagnostics();
    for (Diagnostic& fault : faults) {
      const std::string& file = fault.place.file;
      const bool is_model = file == embedded.model;
      if (file.empty() || (!is_model && file != embedded.cluster)) continue;
      fault.place.file = fmt::format("{} (its {}, {})", embedded.plan, is_model ? "model" : "cluster", file);
    }
    throw InputError(std::move(faults), error.note());
  }
}

/// The inputs of a planner.
struct PlanningJob {
  std::shared_ptr<const Model> model;
  Cluster cluster;
  PlanOptions options;
  EmbeddedFiles embedded = {};
};

/// The job that the options and `file`, if any, describe.
PlanningJob described_job(const PlanningArguments& arguments, const PlanFile* file) {
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
  say_notices(model->notices);
  say_notices(job.cluster.notices);
  say_notices(job.notices);
  if (model->local) throw WrittenPerDevice(model, job.cluster);
  return {std::move(model), job.cluster, std::move(options)};
}

PlanningJob planning_job(const PlanningArguments& arguments, const PlanFile* file) {
  if (file == nullptr) return described_job(arguments, nullptr);
  EmbeddedFiles embedded{file->file, file->model_file, file->cluster_name};
  PlanningJob job = naming_plan_file(embedded, [&] { return described_job(arguments, file); });
  job.embedded = std::move(embedded);
  return job;
}

std::unique_ptr<ModelPlanner> make_planner(PlanningJob job) {
  auto planner = naming_plan_file(job.embedded, [&] {
    return std::make_unique<ModelPlanner>(std::move(job.model), job.cluster, std::move(job.options));
  });
  if (planner->graph().operators().size() > ModelPlanner::kDeep) give_back_memory();
  say_notices(planner->notices());
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
  ShapedPlan best = naming_plan_file(job.embedded, [&] {
    return plan_best_shape(job.model, job.cluster, job.options, interrupt_token(), report_progress);
  });
  say_notices(best.planner->notices());
  return {std::move(best.planner), std::move(best.plan)};
}

/// Saves the strategies if the options or the model say so.
void save_strategies(const PlanningArguments& arguments, const PreparedPlan& prepared, PendingFiles* files) {
  const Plan& plan = prepared.plan;
  const std::string path = arguments.strategy_save_file.value_or(plan.model->parallel.strategy_save_file);
  if (path.empty() || !prepared.is_found()) return;
  if (files != nullptr) {
    files->add(path, strategy_file_text(plan));
  } else {
    write_file(path, strategy_file_text(plan));
  }
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
  std::vector<OptionGroup> groups;
  for (PlanningGroup& group : planning_table(arguments)) {
    groups.push_back({std::move(group.title), {}});
    for (PlanningOption& row : group.options) {
      if (row.role == PlanningRole::kSaved && saves == SavesStrategies::kNo) continue;
      groups.back().options.push_back(std::move(row.option));
    }
  }
  return groups;
}

std::vector<GivenOption> given_options(const PlanningArguments& arguments) {
  PlanningArguments held = arguments;  // the table's targets are not constant
  std::vector<GivenOption> given;
  for (const PlanningGroup& group : planning_table(held)) {
    for (const PlanningOption& row : group.options) {
      for (std::string& value : given_values(row.option)) {
        given.push_back({row.option.name, std::move(value), row.role});
      }
    }
  }
  return given;
}

std::vector<std::string> names_of(const std::vector<GivenOption>& given) {
  std::vector<std::string> names;
  for (const GivenOption& one : given) {
    if (names.empty() || names.back() != one.name) names.push_back(one.name);
  }
  return names;
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

Option html_option(std::string& file) {
  return option("--html", "FILE", &file, "write a self-contained web page: graph, timeline, memory, tables")
      .completed_by(Completion::kFile)
      .writing();
}

std::unique_ptr<ModelPlanner> make_planning(const PlanningArguments& arguments) {
  limit_time(arguments.time_limit.value_or(0));
  begin_phase(fmt::format("reading {}", shortened(arguments.model)), PhaseEnd::kAtOnce);
  PlanningJob job = read_job(arguments);
  begin_phase("planning", PhaseEnd::kBySelf);
  if (job.model->parallel.searches_mesh) return plan_in_all_shapes(job).planning;
  return make_planner(std::move(job));
}

std::vector<std::string> search_notices(const ModelPlanner& planning, const Plan& plan) {
  const std::size_t known = plan.model->notices.size() + planning.notices().size();
  return {plan.notices.begin() + static_cast<std::ptrdiff_t>(known), plan.notices.end()};
}

PreparedPlan plan_or_load(const PlanningArguments& arguments, PendingFiles* files) {
  PreparedPlan result;
  const std::vector<std::string> given = options_of_plan(arguments);
  if (is_plan_file(arguments.model) && given.empty()) {
    begin_phase(fmt::format("reading {}", shortened(arguments.model)), PhaseEnd::kAtOnce);
    const PlanFile file = read_plan_file(read_text_file(arguments.model, kMostWrittenBytes), arguments.model);
    PlanningArguments stored;  // the file contains what the plan took from a strategy file
    stored.strategy_load_file = "";
    result.planning = make_planner(planning_job(stored, &file));
    result.plan = stored_plan(file, arguments.model, *result.planning);
    result.proof = file.proof;
    begin_phase("writing the answer", PhaseEnd::kBySelf);
    say_notices(search_notices(*result.planning, result.plan));
    save_strategies(arguments, result, files);
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
    note_interruption(result.plan);
  }
  say_notices(search_notices(*result.planning, result.plan));
  save_strategies(arguments, result, files);
  return result;
}

}  // namespace shardplan
