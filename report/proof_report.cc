#include "report/proof_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "report/text/text_table.h"
#include "simulator/proof/comparison.h"

// Text and JSON of a proof are written from the same `Proof`. The text shows the largest differences next to the
// tolerances and, for a failure, the first wrong instruction, since later ones only propagate the error.

namespace shardplan {
namespace {

constexpr std::size_t kMostListed = 8;

constexpr char kWithoutPadding[] = "without padding: ";  // begins what a record of `Proof::unpadded` compares

std::string_view name_of(Precision precision) { return precision == Precision::kFloat64 ? "float64" : "float32"; }

std::string sizes_text(const std::vector<ShrunkSize>& sizes) {
  std::vector<std::string> parts;
  for (const ShrunkSize& size : sizes) {
    const std::string from = fmt::format(" {}", size.from);
    parts.push_back(fmt::format("{}{} -> {}", size.name, size.name.ends_with(from) ? "" : from, size.to));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string table_text(const ValidationResult& validation) {
  std::size_t width = 24;
  for (const PrecisionResult& result : validation.precisions) width = std::max(width, compared_text(result).size());
  std::string text = fmt::format("{:21}{:{}}{:>14}{:>10}\n", "", "compared", width, "difference", "allowed");
  for (const PrecisionResult& result : validation.precisions) {
    if (result.steps == 0) continue;
    text += fmt::format("  {}  {:10}{:{}}{:>14}{:>10}   {}\n", name_of(result.precision), counted(result.steps, "step"),
                        compared_text(result), width, result.largest == 0 ? "0" : fmt::format("{:.1e}", result.largest),
                        fmt::format("{:.0e}", result.allowed), result.is_equal ? "equal" : "different");
  }
  return text;
}

/// An additional line of the table, for a padded model.
std::string unpadded_text(const UnpaddedComparison& unpadded) {
  std::string text =
      fmt::format("  without padding  {}  {}, largest difference {}, allowed {:.0e}   {}\n",
                  counted(unpadded.compared.steps, "step"), compared_text(unpadded.compared),
                  unpadded.compared.largest == 0 ? "0" : fmt::format("{:.1e}", unpadded.compared.largest),
                  unpadded.compared.allowed, unpadded.is_equal() ? "equal" : "different");
  for (std::size_t i = 0; i < std::min(kMostListed, unpadded.missing.size()); ++i) {
    text += fmt::format("  not compared       {}: the padded model has no tensor of this name and shape\n",
                        unpadded.missing[i]);
  }
  if (const auto& wrong = unpadded.first_wrong) {
    text += fmt::format("  first wrong        {} in step {} at {}: found {:.6g}, should be {:.6g} (allowed {:.2g})\n",
                        wrong->tensor, wrong->step, to_string(wrong->index), wrong->found, wrong->should_be,
                        wrong->allowed);
  }
  return text;
}

std::string failure_text(const ValidationSubject& subject, const ValidationResult& validation) {
  const FirstWrong& wrong = *validation.first_wrong;
  const Comparison& comparison = wrong.comparison;
  std::string text;
  text += fmt::format("  first wrong        {} on rank {}{}, local {} of {}\n", wrong.tensor, wrong.rank,
                      wrong.coordinates.empty() ? "" : " (" + wrong.coordinates + ")", to_string(wrong.local_shape),
                      to_string(wrong.global_shape));
  if (!wrong.instruction.empty() && wrong.instruction != wrong.tensor) {
    text += fmt::format("  made by            {}\n", wrong.instruction);
  }
  const std::string global =
      comparison.local_index == comparison.global_index ? "" : ", globally " + to_string(comparison.global_index);
  text += fmt::format("  at                 {}{}: found {:.6g}, should be {:.6g}\n", to_string(comparison.local_index),
                      global, comparison.found, comparison.should_be);
  text += fmt::format("  differ             {} of {} elements, on {} of {} ranks, by up to {:.2g} (allowed {:.2g})\n",
                      comparison.num_differing, comparison.num_compared, comparison.num_devices_wrong,
                      validation.num_devices, comparison.largest, wrong.allowed);
  if (!wrong.right_inputs.empty()) {
    text += fmt::format("  correct inputs     {}\n", fmt::join(wrong.right_inputs, ", "));
  }
  if (!wrong.looks_like.empty()) text += fmt::format("  looks like         {}\n", wrong.looks_like);
  text += fmt::format("again with: shardplan validate {} --seed {} --until {}\n", subject.argument, subject.seed,
                      wrong.tensor);
  return text;
}

std::size_t count(const std::vector<MutationResult>& results, MutationOutcome outcome) {
  return static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [&](const MutationResult& r) { return r.outcome == outcome; }));
}

std::string mutations_text(const std::vector<MutationResult>& results) {
  const std::size_t caught = count(results, MutationOutcome::kCaught);
  const std::size_t without = count(results, MutationOutcome::kWithoutEffect);
  std::string text = fmt::format("injected faults: {} of {} caught", caught, results.size() - without);
  if (without > 0) text += fmt::format("; {} more have no effect", without);
  text += "\n";
  for (const MutationResult& result : results) {
    if (result.outcome == MutationOutcome::kUncaught) {
      text += fmt::format("  not caught         {}\n", result.mutation.description);
    }
  }
  return text;
}

std::string_view outcome_name(MutationOutcome outcome) {
  switch (outcome) {
    case MutationOutcome::kCaught:
      return "caught";
    case MutationOutcome::kWithoutEffect:
      return "without_effect";
    case MutationOutcome::kUncaught:
      return "uncaught";
  }
  return "";
}

Json json_of(const std::vector<ShrunkSize>& sizes) {
  Json list = Json::array();
  for (const ShrunkSize& size : sizes) list.push_back({{"name", size.name}, {"from", size.from}, {"to", size.to}});
  return list;
}

Json json_of(const FirstWrong& wrong) {
  const Comparison& comparison = wrong.comparison;
  Json json;
  json["precision"] = name_of(wrong.precision);
  json["step"] = wrong.step;
  json["tensor"] = wrong.tensor;
  json["instruction"] = wrong.instruction;
  json["rank"] = wrong.rank;
  json["local_shape"] = wrong.local_shape;
  json["global_shape"] = wrong.global_shape;
  json["local_index"] = comparison.local_index;
  json["global_index"] = comparison.global_index;
  json["found"] = comparison.found;
  json["should_be"] = comparison.should_be;
  json["elements_differing"] = comparison.num_differing;
  json["elements_compared"] = comparison.num_compared;
  json["devices_wrong"] = comparison.num_devices_wrong;
  json["largest"] = comparison.largest;
  json["allowed"] = wrong.allowed;
  json["right_inputs"] = wrong.right_inputs;
  json["looks_like"] = wrong.looks_like;
  return json;
}

Json json_of(const UnpaddedComparison& unpadded) {
  const PrecisionResult& compared = unpadded.compared;
  Json json = {{"steps", compared.steps},           {"loss", compared.has_loss},
               {"outputs", compared.outputs},       {"gradients", compared.gradients},
               {"parameters", compared.parameters}, {"states", compared.states},
               {"between", compared.between},       {"largest_difference", compared.largest},
               {"allowed", compared.allowed},       {"equal", unpadded.is_equal()},
               {"missing", unpadded.missing}};
  if (const auto& wrong = unpadded.first_wrong) {
    json["first_wrong"] = {{"tensor", wrong->tensor}, {"step", wrong->step},           {"index", wrong->index},
                           {"found", wrong->found},   {"should_be", wrong->should_be}, {"allowed", wrong->allowed}};
  }
  return json;
}

/// The first lines: the subject, and which sizes were reduced.
std::string subject_text(const ValidationSubject& subject, const Shrinking& shrinking) {
  const std::string axes = subject.mesh.axes().empty() ? "" : " " + subject.mesh.to_string();
  std::string text = fmt::format("{}, {}, level {}, {}{}{}, seed {}\n", subject.model,
                                 subject.is_training ? "training" : "forward", number_of(subject.level),
                                 subject.workers > 1 ? fmt::format("{} workers of ", subject.workers) : std::string(),
                                 counted(subject.mesh.num_devices(), "device"), axes, subject.seed);
  if (!shrinking.dims.empty()) text += paragraph_lines("reduced sizes: " + sizes_text(shrinking.dims));
  if (!shrinking.axes.empty()) {
    text += fmt::format("mesh in the proof: {} ({})\n", sizes_text(shrinking.axes),
                        counted(shrinking.mesh.num_devices(), "device"));
  }
  for (const std::string& note : shrinking.notes) text += paragraph_lines(note);
  return text;
}

}  // namespace

std::string compared_text(const PrecisionResult& result) {
  std::vector<std::string> parts;
  if (result.has_loss) parts.push_back("loss");
  if (result.outputs > 0) parts.push_back(counted(result.outputs, "output"));
  if (result.gradients > 0) parts.push_back(counted(result.gradients, "gradient"));
  if (result.parameters > 0) parts.push_back(counted(result.parameters, "parameter"));
  if (result.states > 0) parts.push_back(counted(result.states, "state"));
  if (result.between > 0) parts.push_back(counted(result.between, "intermediate"));
  return fmt::format("{}", fmt::join(parts, ", "));
}

ProofRecord proof_record(const Proof& proof, std::uint64_t seed) {
  ProofRecord record;
  record.equal = proof.is_proven();
  record.seed = seed;
  for (const ShrunkSize& dim : proof.shrinking.dims) record.dims[dim.name] = dim.to;
  for (const PrecisionResult& precision : proof.validation.precisions) {
    record.checks.push_back({precision.precision == Precision::kFloat64 ? "f64" : "f32", precision.steps,
                             compared_text(precision), precision.largest, precision.allowed, precision.is_equal});
  }
  if (proof.unpadded) {
    const PrecisionResult& compared = proof.unpadded->compared;
    record.checks.push_back({"f64", compared.steps, kWithoutPadding + compared_text(compared), compared.largest,
                             compared.allowed, proof.unpadded->is_equal()});
  }
  return record;
}

ProofVerdict proof_verdict(const Proof& proof) {
  if (!proof.shrinking.refusal.empty()) return {"no", proof.shrinking.refusal};
  if (proof.unpadded && !proof.unpadded->is_equal()) {
    return {"NO", "the padded model differs from the model: shardplan validate shows where"};
  }
  if (!proof.is_proven()) return {"NO", "the devices differ from a single device: shardplan validate shows where"};
  std::vector<std::string> parts;
  for (const PrecisionResult& precision : proof.validation.precisions) {
    parts.push_back(fmt::format("{} {:.1e}", name_of(precision.precision), precision.largest));
  }
  if (proof.unpadded) parts.push_back(fmt::format("without padding {:.1e}", proof.unpadded->compared.largest));
  return {"equal", fmt::format("{} compute{} the same as one; largest difference {}",
                               counted(proof.validation.num_devices, "device"),
                               proof.validation.num_devices == 1 ? "s" : "", fmt::join(parts, ", "))};
}

ProofVerdict earlier_verdict(const ProofRecord& record) {
  if (record.checks.empty()) return {};
  if (!record.equal)
    return {"NO", "an earlier run found a difference, as plan.json says: shardplan validate shows where"};
  std::vector<std::string> parts;
  for (const ProofRecord::Check& check : record.checks) {
    const bool is_unpadded = check.compared.starts_with(kWithoutPadding);
    const std::string_view name = is_unpadded ? "without padding" : check.dtype == "f64" ? "float64" : "float32";
    parts.push_back(fmt::format("{} {:.1e}", name, check.largest_difference));
  }
  return {"equal", fmt::format("by an earlier run, as plan.json says; largest difference {}", fmt::join(parts, ", "))};
}

std::string validation_text(const ValidationSubject& subject, const Proof& proof) {
  const ValidationResult& validation = proof.validation;
  std::string text = subject_text(subject, proof.shrinking);
  if (!proof.shrinking.refusal.empty()) return text + fmt::format("\nnot proven: {}\n", proof.shrinking.refusal);
  if (!validation.without_kernel.empty()) {
    return text + fmt::format("\nnot proven: no local computation is known for {}\n",
                              fmt::join(validation.without_kernel, ", "));
  }
  if (validation.first_wrong) {
    text += fmt::format("  {}  step {:<5}different\n\n", name_of(validation.first_wrong->precision),
                        validation.first_wrong->step);
    return text + failure_text(subject, validation);
  }
  text += "\n" + table_text(validation);
  if (proof.unpadded) text += unpadded_text(*proof.unpadded);
  text += "\n";
  if (proof.unpadded && !proof.unpadded->is_equal()) {
    return text + "different: the padded model differs from the model\n";
  }
  for (std::size_t i = 0; i < std::min(kMostListed, validation.unproven.size()); ++i) {
    text += fmt::format("  not proven         {}: {}\n", validation.unproven[i].tensor, validation.unproven[i].reason);
  }
  if (validation.unproven.size() > kMostListed) {
    text += fmt::format("  not proven         {} more\n", validation.unproven.size() - kMostListed);
  }
  if (!proof.mutations.empty()) text += mutations_text(proof.mutations);
  if (count(proof.mutations, MutationOutcome::kUncaught) > 0)
    return text + "not proven: an injected fault was not caught\n";
  const std::string sends = validation.num_sends == 0 ? "" : counted(validation.num_sends, "send") + " and ";
  text +=
      fmt::format("proven: {} compute{} the same as one ({}{} per step)\n", counted(validation.num_devices, "device"),
                  validation.num_devices == 1 ? "s" : "", sends, counted(validation.num_collectives, "collective"));
  return text;
}

std::string validation_json(const ValidationSubject& subject, const Proof& proof) {
  const ValidationResult& validation = proof.validation;
  Json json;
  json["schema"] = "shardplan.validation/1";
  json["model"] = subject.model;
  json["training"] = subject.is_training;
  json["level"] = number_of(subject.level);
  json["mesh"] = subject.mesh.to_string();
  json["seed"] = subject.seed;
  json["shrunk"] = json_of(proof.shrinking.dims);
  json["proof_mesh"] = proof.shrinking.mesh.to_string();
  json["notes"] = proof.shrinking.notes;
  json["proven"] = proof.is_proven();
  json["refusal"] = proof.shrinking.refusal.empty() ? Json() : Json(proof.shrinking.refusal);
  json["without_kernel"] = validation.without_kernel;
  json["collectives"] = validation.num_collectives;
  if (validation.num_sends > 0) json["sends"] = validation.num_sends;
  json["precisions"] = Json::array();
  for (const PrecisionResult& result : validation.precisions) {
    if (result.steps == 0) continue;
    json["precisions"].push_back({{"precision", name_of(result.precision)},
                                  {"steps", result.steps},
                                  {"loss", result.has_loss},
                                  {"outputs", result.outputs},
                                  {"gradients", result.gradients},
                                  {"parameters", result.parameters},
                                  {"states", result.states},
                                  {"between", result.between},
                                  {"largest_difference", result.largest},
                                  {"largest_in", result.largest_in},
                                  {"allowed", result.allowed},
                                  {"equal", result.is_equal}});
  }
  if (proof.unpadded) json["without_padding"] = json_of(*proof.unpadded);
  json["first_wrong"] = validation.first_wrong ? json_of(*validation.first_wrong) : Json();
  json["unproven"] = Json::array();
  for (const Unproven& unproven : validation.unproven) {
    json["unproven"].push_back({{"tensor", unproven.tensor}, {"reason", unproven.reason}});
  }
  json["mutations"] = Json::array();
  for (const MutationResult& result : proof.mutations) {
    json["mutations"].push_back({{"fault", result.mutation.description},
                                 {"places", result.mutation.num_places},
                                 {"outcome", outcome_name(result.outcome)},
                                 {"caught_in", result.caught_in}});
  }
  return json.dump(1) + "\n";
}

int validation_exit_code(const Proof& proof) {
  if (!proof.shrinking.refusal.empty() || !proof.validation.without_kernel.empty()) return 3;
  if (proof.unpadded && !proof.unpadded->is_equal()) return 5;
  return proof.validation.first_wrong || count(proof.mutations, MutationOutcome::kUncaught) > 0 ? 5 : 0;
}

std::string simulation_text(const ValidationSubject& subject, const Shrinking& shrinking,
                            const std::vector<SimulatedScalar>& scalars, std::int64_t first_step) {
  std::string text = subject_text(subject, shrinking);
  if (!shrinking.refusal.empty()) return text + fmt::format("\nnot simulated: {}\n", shrinking.refusal);
  const std::int64_t devices = subject.workers * shrinking.mesh.num_devices();
  for (const SimulatedScalar& scalar : scalars) {
    if (scalar.steps.empty()) continue;
    text += fmt::format("\n  {:4} {:>20} {:>20} {:>15}\n", subject.is_training ? "step" : "batch",
                        scalar.name + " on one device", fmt::format("on {} device{}", devices, devices == 1 ? "" : "s"),
                        "difference");
    double largest = 0;
    double sum = 0;
    for (std::size_t i = 0; i < scalar.steps.size(); ++i) {
      const SimulatedStep& step = scalar.steps[i];
      const double difference = distance(step.mesh, step.one_device);  // infinite if only one is a number
      largest = std::max(largest, difference);
      sum += step.mesh;
      text += fmt::format("  {:>4} {:>20.9f} {:>20.9f} {:>15}\n", first_step + static_cast<std::int64_t>(i) + 1,
                          step.one_device, step.mesh, difference == 0 ? "0" : fmt::format("{:.1e}", difference));
    }
    const std::size_t count = scalar.steps.size();
    const std::string off = largest == 0          ? "both are equal"
                            : std::isinf(largest) ? "the two differ: in a step only one of them is finite"
                                                  : fmt::format("the two differ by at most {:.1e}", largest);
    const double first = scalar.steps.front().one_device, last = scalar.steps.back().one_device;
    if (subject.is_training) {
      text += fmt::format("\n{} {:.6g}{} in {} on one batch; {}\n", scalar.name, first,
                          count == 1 ? "" : fmt::format(" -> {:.6g}", last), counted(count, "step"), off);
    } else {
      text += fmt::format("\n{} {:.6g} on average over {}; {}\n", scalar.name, sum / static_cast<double>(count),
                          count == 1 ? "1 batch" : fmt::format("{} batches", count), off);
    }
  }
  return text;
}

std::string simulation_json(const ValidationSubject& subject, const Shrinking& shrinking,
                            const std::vector<SimulatedScalar>& scalars, std::int64_t first_step) {
  Json json;
  json["schema"] = "shardplan.simulation/1";
  json["model"] = subject.model;
  json["level"] = number_of(subject.level);
  json["mesh"] = subject.mesh.to_string();
  json["simulated_mesh"] = shrinking.mesh.to_string();
  json["seed"] = subject.seed;
  json["refusal"] = shrinking.refusal.empty() ? Json() : Json(shrinking.refusal);
  json["shrunk"] = json_of(shrinking.dims);
  json["first_step"] = first_step;
  json["steps"] = Json::array();
  json["outputs"] = Json::object();
  for (const SimulatedScalar& scalar : scalars) {
    if (&scalar == &scalars.front() && subject.is_training) {
      for (const SimulatedStep& step : scalar.steps) {
        json["steps"].push_back({{"loss", step.one_device}, {"loss_on_mesh", step.mesh}});
      }
      continue;
    }
    Json outputs = Json::array();
    for (const SimulatedStep& step : scalar.steps) {
      outputs.push_back({{"one_device", step.one_device}, {"mesh", step.mesh}});
    }
    json["outputs"][scalar.name] = std::move(outputs);
  }
  return json.dump(1) + "\n";
}

}  // namespace shardplan
