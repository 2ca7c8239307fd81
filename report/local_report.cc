#include "report/local_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/json_text.h"
#include "report/plan/ir_report.h"
#include "report/text/text_table.h"

// Ranks that do the same share one line: communications are joined by name with the slowest group's time, tensors with
// the largest difference. A rank is named if it represents others.

namespace shardplan {
namespace {

using Columns = TextTable::Align;

constexpr std::size_t kMostTensors = 3;

/// One line for all groups of an operator.
struct CommunicationLine {
  LocalCommunication slowest;
  std::size_t groups = 0;
};

std::vector<CommunicationLine> lines_of(const LocalPlan& plan) {
  std::vector<CommunicationLine> lines;
  std::map<std::string, std::size_t> by_name;
  for (const LocalCommunication& communication : plan.communications) {
    const auto [at, is_new] = by_name.try_emplace(communication.name, lines.size());
    if (is_new) lines.push_back({communication, 0});
    CommunicationLine& line = lines[at->second];
    ++line.groups;
    if (communication.time > line.slowest.time) line.slowest = communication;
  }
  return lines;
}

/// "rank 3 ends last"; if several do, the first of them stands for what follows: "all ranks end together; rank 0".
std::string last_ranks(const LocalPlan& plan) {
  const auto last = static_cast<std::size_t>(std::count_if(
      plan.ranks.begin(), plan.ranks.end(), [&](const LocalRank& rank) { return rank.end == plan.step; }));
  if (last == 1 && plan.ranks.size() > 1) return fmt::format("rank {} ends last", plan.slowest());
  if (last == 1) return "rank 0";
  return fmt::format("{} end together; rank {}",
                     last == plan.ranks.size() ? "all ranks" : fmt::format("{} of the ranks", last), plan.slowest());
}

/// As many names as fit a line.
std::string some_names(const std::vector<std::string>& names) {
  const auto shown = static_cast<std::ptrdiff_t>(std::min(names.size(), kMostTensors));
  const std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  const std::size_t more = names.size() - static_cast<std::size_t>(shown);
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

const LocalStepComparison::Value* find(const LocalStepComparison& step, const std::string& name) {
  const auto at = std::find_if(step.values.begin(), step.values.end(),
                               [&](const LocalStepComparison::Value& value) { return value.name == name; });
  return at == step.values.end() ? nullptr : &*at;
}

std::string difference_text(double difference) { return difference == 0 ? "0" : fmt::format("{:.1e}", difference); }

/// The value of a step with the largest error; values that differ by more than rounding come first.
const LocalStepComparison::Value* worst_of(const LocalStepComparison& step) {
  const LocalStepComparison::Value* worst = nullptr;
  for (const LocalStepComparison::Value& value : step.values) {
    const bool is_worse = worst == nullptr || (worst->is_equal && !value.is_equal) ||
                          (worst->is_equal == value.is_equal && value.difference > worst->difference);
    if (is_worse) worst = &value;
  }
  return worst;
}

/// What is no number is larger than all numbers, so that it shows.
bool is_less(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

/// The least and the largest value over the ranks; ties go to lower ranks.
struct RankExtremes {
  std::size_t ranks = 0;  // with a value
  double least = 0;
  double largest = 0;
  std::size_t least_at = 0;
  std::size_t largest_at = 0;

  bool are_equal() const { return !is_less(least, largest); }
};

RankExtremes extremes_of(const std::vector<std::optional<double>>& values) {
  RankExtremes found;
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    if (!values[rank]) continue;
    const double value = *values[rank];
    const bool is_first = found.ranks++ == 0;
    if (is_first || is_less(value, found.least)) {
      found.least = value;
      found.least_at = rank;
    }
    if (is_first || is_less(found.largest, value)) {
      found.largest = value;
      found.largest_at = rank;
    }
  }
  return found;
}

}  // namespace

std::string local_plan_text(const LocalPlan& plan, const std::string& out_folder) {
  const bool is_training = plan.model->training.has_value();
  std::string text =
      fmt::format("{}, {}, written per device, {} on {}\n", plan.model->name, is_training ? "training" : "forward",
                  counted(plan.ranks.size(), "rank"), plan.cluster.name);
  const LocalRank& slowest = plan.ranks[plan.slowest()];
  const LocalRank& largest = plan.ranks[plan.largest()];
  text += fmt::format("  {:<9}   {} of {} on rank {}\n", plan.fits() ? "fits" : "too large",
                      format_bytes(largest.peak()), format_bytes(plan.usable), plan.largest());
  text += figure_line("step", format_time(plan.step),
                      fmt::format("{}: kernels {}, communications {}, {} of them exposed", last_ranks(plan),
                                  format_time(slowest.computation), format_time(slowest.communication),
                                  format_time(slowest.end - slowest.computation)));
  const std::vector<CommunicationLine> lines = lines_of(plan);
  if (!lines.empty()) {
    TextTable table({Columns::kLeft, Columns::kLeft, Columns::kLeft, Columns::kRight, Columns::kRight});
    table.add({"communication", "operator", "ranks", "bytes", "time"});
    for (const CommunicationLine& line : lines) {
      std::string ranks = ranks_text(line.slowest.ranks);
      if (line.groups > 1) ranks += fmt::format(", {} groups", line.groups);
      table.add({line.slowest.name, line.slowest.type, ranks, format_bytes(line.slowest.bytes),
                 format_time(line.slowest.time)});
    }
    text += "\n" + table.to_string(2);
  }
  if (!out_folder.empty()) {
    text += fmt::format("\nwritten to {}: plan.json, rank_0/step_parallel_end.ir to rank_{}/step_parallel_end.ir\n",
                        out_folder, plan.ranks.size() - 1);
  }
  return text;
}

std::string_view local_plan_schema_name() { return "shardplan.local_plan/1"; }

std::string local_plan_json(const LocalPlan& plan) {
  Json json;
  json["schema"] = local_plan_schema_name();
  json["model"] = plan.model->name;
  json["cluster"] = plan.cluster.name;
  json["training"] = plan.model->training.has_value();
  json["fits"] = plan.fits();
  json["usable_bytes"] = plan.usable;
  json["step_seconds"] = to_seconds(plan.step);
  json["ranks"] = Json::array();
  for (const LocalRank& rank : plan.ranks) {
    json["ranks"].push_back({{"computation_seconds", to_seconds(rank.computation)},
                             {"communication_seconds", to_seconds(rank.communication)},
                             {"end_seconds", to_seconds(rank.end)},
                             {"peak_bytes", rank.peak()}});
  }
  json["communications"] = Json::array();
  for (const LocalCommunication& communication : plan.communications) {
    json["communications"].push_back({{"name", communication.name},
                                      {"type", communication.type},
                                      {"ranks", communication.ranks},
                                      {"bytes", communication.bytes},
                                      {"begin_seconds", to_seconds(communication.begin)},
                                      {"seconds", to_seconds(communication.time)}});
  }
  return json_document(json);
}

std::string local_ir(const LocalPlan& plan, std::size_t rank) {
  std::string text = end_report(plan.ranks[rank].plan);
  // It is the plan of one device, but the program of one rank of several.
  const std::size_t begin = text.find("# rank 0 of 1;");
  SHARDPLAN_CHECK(begin != std::string::npos);
  text.replace(begin, text.find('\n', begin) - begin,
               fmt::format("# rank {} of {}, written per device", rank, plan.ranks.size()));
  return text;
}

std::string local_validation_text(const LocalSubject& subject, const LocalValidation& validation) {
  std::string text = fmt::format("{}, written per device, {}, against {}, seed {}\n", subject.model,
                                 counted(subject.ranks, "rank"), subject.reference, subject.seed);
  TextTable table({Columns::kRight, Columns::kRight, Columns::kRight, Columns::kRight, Columns::kLeft, Columns::kLeft});
  const bool has_loss = !validation.steps.empty() && find(validation.steps[0], "loss") != nullptr;
  if (has_loss) {
    table.add({"step", "loss", "reference", "largest difference", "of", ""});
  } else {
    table.add({"step", "", "", "largest difference", "of", ""});
  }
  for (std::size_t s = 0; s < validation.steps.size(); ++s) {
    const LocalStepComparison& step = validation.steps[s];
    const LocalStepComparison::Value* loss = find(step, "loss");
    const LocalStepComparison::Value* worst = worst_of(step);
    table.add({fmt::format("{}", s + 1), loss ? fmt::format("{:.9f}", loss->found) : "",
               loss ? fmt::format("{:.9f}", loss->should_be) : "", difference_text(worst->difference),
               worst->difference == 0 ? "" : fmt::format("{} on rank {}", worst->name, worst->rank),
               step.agrees() ? "equal" : "different"});
  }
  text += table.to_string(2);
  if (validation.not_finite) {
    text += fmt::format("step {} is not compared: the reference has non-finite values\n", validation.steps.size() + 1);
  }
  for (const LocalValidation::NotCompared& output : validation.not_compared) {
    text += fmt::format("not compared: {}: {}\n", output.name, output.reason);
  }
  if (validation.agrees()) {
    const std::size_t compared = validation.steps.empty() ? 0 : validation.steps[0].values.size();
    return text + fmt::format("agrees in every step{}: {} on every rank{}\n",
                              validation.not_finite ? " that is compared" : "", counted(compared, "tensor"),
                              validation.some_ranks_lack_tensors ? " that has them" : "");
  }
  text += fmt::format("drifts from step {}", *validation.first_drift + 1);
  for (std::size_t s = 0; has_loss && s < validation.steps.size(); ++s) {
    if (find(validation.steps[s], "loss")->is_equal) continue;
    if (s > *validation.first_drift) text += fmt::format(", the loss from step {}", s + 1);
    break;
  }
  text += "\n";
  for (const DriftCause& cause : validation.causes) {
    text += fmt::format("  {}: {}\n", some_names(cause.tensors), cause.message);
    if (!cause.hint.empty()) text += fmt::format("    {}\n", cause.hint);
  }
  return text;
}

std::string local_validation_json(const LocalSubject& subject, const LocalValidation& validation) {
  Json json;
  json["schema"] = "shardplan.local_validation/1";
  json["model"] = subject.model;
  json["reference"] = subject.reference;
  json["ranks"] = subject.ranks;
  json["seed"] = subject.seed;
  json["agrees"] = validation.agrees();
  json["first_drift"] = validation.first_drift ? Json(*validation.first_drift + 1) : Json();
  json["causes"] = Json::array();
  for (const DriftCause& cause : validation.causes) {
    json["causes"].push_back({{"message", cause.message}, {"hint", cause.hint}, {"tensors", cause.tensors}});
  }
  json["not_compared"] = Json::array();
  for (const LocalValidation::NotCompared& output : validation.not_compared) {
    json["not_compared"].push_back({{"name", output.name}, {"reason", output.reason}});
  }
  json["not_finite"] = validation.not_finite;
  json["steps"] = Json::array();
  for (const LocalStepComparison& step : validation.steps) {
    Json values = Json::array();
    for (const LocalStepComparison::Value& value : step.values) {
      values.push_back({{"name", value.name},
                        {"rank", value.rank},
                        {"found", value.found},
                        {"should_be", value.should_be},
                        {"difference", value.difference},
                        {"equal", value.is_equal}});
    }
    json["steps"].push_back({{"agrees", step.agrees()}, {"values", std::move(values)}});
  }
  return json_document(json);
}

std::string local_simulation_text(const LocalSubject& subject, const std::vector<LocalScalar>& scalars,
                                  std::int64_t first_step) {
  std::string text =
      fmt::format("{}, {}, written per device, {}, seed {}\n", subject.model,
                  subject.is_training ? "training" : "forward", counted(subject.ranks, "rank"), subject.seed);
  for (const LocalScalar& scalar : scalars) {
    const bool all_alike = std::all_of(scalar.steps.begin(), scalar.steps.end(),
                                       [](const auto& step) { return extremes_of(step).are_equal(); });
    TextTable table({Columns::kRight, Columns::kRight, Columns::kLeft, Columns::kRight, Columns::kLeft});
    table.add({subject.is_training ? "step" : "batch", all_alike ? scalar.name : "least " + scalar.name, "",
               all_alike ? "" : "largest", ""});
    for (std::size_t s = 0; s < scalar.steps.size(); ++s) {
      const RankExtremes found = extremes_of(scalar.steps[s]);
      const bool is_alike = found.are_equal();
      table.add(
          {fmt::format("{}", first_step + static_cast<std::int64_t>(s) + 1), fmt::format("{:.9f}", found.least),
           is_alike ? fmt::format("on {}", counted(found.ranks, "rank")) : fmt::format("on rank {}", found.least_at),
           is_alike ? "" : fmt::format("{:.9f}", found.largest),
           is_alike ? "" : fmt::format("on rank {}", found.largest_at)});
    }
    text += "\n" + table.to_string(2);
  }
  return text;
}

std::string local_simulation_json(const LocalSubject& subject, const std::vector<LocalScalar>& scalars,
                                  std::int64_t first_step) {
  Json json;
  json["schema"] = "shardplan.local_simulation/1";
  json["model"] = subject.model;
  json["training"] = subject.is_training;
  json["ranks"] = subject.ranks;
  json["seed"] = subject.seed;
  json["first_step"] = first_step;
  json["outputs"] = Json::object();
  for (const LocalScalar& scalar : scalars) {
    Json steps = Json::array();
    for (const std::vector<std::optional<double>>& step : scalar.steps) {
      Json values = Json::array();  // by rank; null if a rank has none
      for (const std::optional<double>& value : step) values.push_back(value ? Json(*value) : Json());
      steps.push_back(std::move(values));
    }
    json["outputs"][scalar.name] = std::move(steps);
  }
  return json_document(json);
}

}  // namespace shardplan
