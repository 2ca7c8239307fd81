#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/write_files.h"
#include "cli/command_table.h"
#include "planner/model_planner.h"
#include "report/plan_file/plan_json.h"

namespace shardplan {

/// The common options of all commands that plan, as given.
struct PlanningArguments {
  std::string model;
  std::optional<std::string> cluster;
  std::optional<std::int64_t> device_num;
  std::optional<std::string> rank_table;
  std::optional<int> level;
  std::optional<std::string> costs;
  std::optional<std::string> search;
  std::optional<std::uint64_t> seed;
  std::optional<double> time_limit;
  std::optional<std::uint64_t> work_limit;
  std::optional<int> threads;
  std::optional<std::string> capacity;
  std::optional<double> memory_slack;
  std::optional<std::string> strategy_save_file;
  std::optional<std::string> strategy_load_file;
  std::vector<std::string> dims;
  std::vector<std::string> strategies;
  std::optional<std::string> layers;
  std::optional<std::string> memory;
  std::optional<std::string> overlap;
  bool shows_data_parallel = false;  // beside the plan
  bool proves = false;  // seed and threads also serve a proof: alone they do not cause a plan.json to be replanned
};

/// Thrown if a command that plans reads a model written per device. `plan`, `simulate` and `validate` handle it; for
/// all other commands it is the error.
struct WrittenPerDevice : InputError {
  WrittenPerDevice(std::shared_ptr<const Model> model, Cluster cluster);
  std::shared_ptr<const Model> model;
  Cluster cluster;
};

/// MODEL.
Option model_argument(PlanningArguments& arguments);
/// Whether a command can save strategies: one that shows several plans has none to save.
enum class SavesStrategies { kNo, kYes };
/// The options for planning and searching, in two groups. `arguments` must outlive the table.
std::vector<OptionGroup> planning_options(PlanningArguments& arguments, SavesStrategies saves = SavesStrategies::kYes);

/// What an option of the planning acts on. Commands and models on which it has no effect refuse it by its role.
enum class PlanningRole {
  kJob,       // the model and its devices
  kCapacity,  // which plans fit
  kSearch,    // which plan is chosen, and how long that takes
  kOrder,     // in which order operators and collectives run
  kSeed,      // of the search and of a proof's data
  kThreads,   // of the search and of a proof
  kSaved,     // a file written beside the plan
};
struct GivenOption {
  std::string name;
  std::string value;
  PlanningRole role = PlanningRole::kJob;
};
/// The planning options that were given, in the order of help; a repeatable one as often as it was given.
std::vector<GivenOption> given_options(const PlanningArguments& arguments);
/// Each name once.
std::vector<std::string> names_of(const std::vector<GivenOption>& given);

/// The value of --capacity. Throws InputError that names the option if it is not at least one byte.
Bytes parse_capacity(const std::string& text);

/// --html FILE, of commands that show plans.
Option html_option(std::string& file);

/// Reads the model and the cluster, of a model file or of a plan.json; precedence: options, the file, defaults. Throws
/// InputError.
std::unique_ptr<ModelPlanner> make_planning(const PlanningArguments& arguments);

/// The plan's notices about its search; those of the model and of the planner were printed when the planner was made.
std::vector<std::string> search_notices(const ModelPlanner& planning, const Plan& plan);

/// A plan and its planner.
struct PreparedPlan {
  std::unique_ptr<ModelPlanner> planning;
  Plan plan;
  std::optional<ProofRecord> proof = {};  // an earlier run's, of a plan.json that was read back

  bool is_found() const { return shardplan::is_found(plan.status); }
};
/// Plans a MODEL.yaml. The plan.json of an earlier run is read back, and all figures follow from its model and
/// decisions; if there are planning options, its model is planned again with them, with a notice. Strategies to
/// save are written, or added to `files` if a command writes more beside them. Throws InputError.
PreparedPlan plan_or_load(const PlanningArguments& arguments, PendingFiles* files = nullptr);

}  // namespace shardplan
