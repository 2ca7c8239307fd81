#include "model/setting_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/syntax/strategy_syntax.h"

namespace shardplan {
namespace {

/// Calls `visit(key, place)` for each key of parameters that a block takes as well.
template <class Visit>
void for_each_of_parameters(const Settings& said, Visit visit) {
  if (said.requires_grad) visit("requires_grad", said.requires_grad->place);
  if (said.comm_fusion) visit("comm_fusion", said.comm_fusion->place);
  if (said.gradient_dtype) visit("gradient_dtype", said.gradient_dtype->place);
  if (said.state_dtype) visit("state_dtype", said.state_dtype->place);
  if (said.parallel_optimizer) visit("parallel_optimizer", said.parallel_optimizer->place);
}

/// The same for those that only a parameter takes.
template <class Visit>
void for_each_layout(const Settings& said, Visit visit) {
  if (said.gradient_strategy) visit("gradient_strategy", said.gradient_strategy->place);
  if (said.state_strategy) visit("state_strategy", said.state_strategy->place);
}

bool has_place(const std::vector<Diagnostic>& faults, const SourcePlace& place) {
  return std::ranges::any_of(faults, [&](const Diagnostic& fault) { return fault.place == place; });
}

}  // namespace

void SettingChecks::fault(const SourcePlace& place, std::string message, std::string hint) {
  faults_.push_back({place, std::move(message), std::move(hint)});
}

void SettingChecks::fault_once(const SourcePlace& place, std::string message, std::string hint) {
  if (!has_place(faults_, place)) fault(place, std::move(message), std::move(hint));
}

void SettingChecks::check_operator(const std::string& name, const Settings& said) {
  const auto refuse = [&](const char* takes_it) {
    return [&, takes_it](const char* key, const SourcePlace& place) {
      fault(place,
            fmt::format("{} is an operator and has no parameters of its own; {} is for {}", name, key, takes_it));
    };
  };
  for_each_of_parameters(said, refuse("a block or a parameter"));
  for_each_layout(said, refuse("a parameter"));
}

void SettingChecks::check_tensor(const std::string& name, const Settings& said, const char* what, bool is_parameter) {
  const auto refuse_key = [&](const char* key, const SourcePlace& place) {
    fault(place, fmt::format("{} is {}; it takes strategy, not {}", name, what, key));
  };
  const auto refuse = [&](const auto& field, const char* key) {
    if (field) refuse_key(key, field->place);
  };
  refuse(said.in_strategy, "in_strategy");
  refuse(said.out_strategy, "out_strategy");
  refuse(said.level, "level");
  refuse(said.parallel_mode, "parallel_mode");
  refuse(said.worker, "place");
  refuse(said.recompute, "recompute");
  refuse(said.gather_again, "gather_again");
  refuse(said.compiled, "compiled");
  if (is_parameter) return;
  for_each_of_parameters(said, refuse_key);
  for_each_layout(said, refuse_key);
}

void SettingChecks::check_backward(const std::string& name, const Settings& said, bool is_listed) {
  const auto refuse = [&](const SourcePlace& place, const char* key) {
    if (training_ != nullptr) return;
    fault_once(place, fmt::format("{}: {} is of the backward pass; there is no training", name, key));
  };
  if (said.recompute && said.recompute->value) refuse(said.recompute->place, "recompute");
  if (said.gather_again) refuse(said.gather_again->place, "gather_again");
  if (is_listed && said.recompute && !said.recompute->value) {
    fault_once(said.recompute->place,
               fmt::format("{}: recompute is false, but training: {{recompute}} in line {} names it", name,
                           training_->place.line),
               "keep one of them");
  }
}

void SettingChecks::check_fusion(const std::string& name, const Placed<int>& fusion, bool has_gradient) {
  if (training_ == nullptr) {
    fault(fusion.place, fmt::format("{}: comm_fusion is the fusion id of gradients; there is no training", name));
  } else if (!has_gradient) {
    fault(fusion.place, fmt::format("{}: comm_fusion is the fusion id of its gradient, but it is not trained", name));
  } else if (fusion.value > 0 && parallel_.comm_fusion.joins_nothing()) {
    fault_once(fusion.place,
               fmt::format("{}: comm_fusion is {}, but with openstate: false in line {} nothing is joined", name,
                           fusion.value, parallel_.comm_fusion.place->line),
               "keep one of them");
  }
}

void SettingChecks::check_untrained_block(const std::string& name, const Settings& said) {
  if (training_ == nullptr) return;
  const auto refuse = [&](const auto& field, const char* key) {
    if (field) fault(field->place, fmt::format("{}: {} is of training, but nothing of it is trained", name, key));
  };
  refuse(said.comm_fusion, "comm_fusion");
  refuse(said.gradient_dtype, "gradient_dtype");
  refuse(said.state_dtype, "state_dtype");
  refuse(said.parallel_optimizer, "parallel_optimizer");
}

void SettingChecks::check_input(const GraphTensor& input, std::size_t index) {
  constexpr auto kFollow = StrategyEntry::Kind::kFollow;
  const bool is_from_file = input.layout && input.layout->place.line > 0;  // --set beats the file
  if (!is_from_file || input.layout->kind == kFollow) return;
  const std::vector<StrategyEntry>& entries = parallel_.dataset_entries;
  const bool is_whole = parallel_.full_batch || parallel_.dataset_strategy == "full_batch";
  const bool has_entry = index < entries.size() && entries[index].kind != kFollow;
  const bool is_against_entry = has_entry && !means_the_same(entries[index], *input.layout);
  if (!is_against_entry && !(is_whole && cuts(*input.layout))) return;
  fault(input.layout->place,
        fmt::format("{}: its strategy and {} say differently how it is loaded", input.name,
                    is_whole ? "full_batch" : "dataset_strategy"),
        "keep one of them");
}

void SettingChecks::check_one_layout(const std::string& result,
                                     const std::optional<Placed<std::vector<StrategyEntry>>>& out,
                                     const Placed<StrategyEntry>& own) {
  if (!out) return;
  fault(own.place,
        fmt::format("{}: strategy and out_strategy in line {} both lay out this result", result, out->place.line),
        "keep one of them");
}

void SettingChecks::note_owner(const std::string& name, const Settings& said, const std::string& owner) {
  for_each_of_parameters(said, [&](const char* key, const SourcePlace& place) {
    if (owner == name) {
      with_effect_.push_back(place);
    } else if (!has_place(shared_, place)) {
      shared_.push_back({place,
                         fmt::format("{}: {} is of parameters, and those of {} belong to {}", name, key, name, owner),
                         fmt::format("give it to {}; it then holds for every use that shares them", owner)});
    }
  });
}

void SettingChecks::report_shared() {
  for (const Diagnostic& found : shared_) {
    if (std::ranges::find(with_effect_, found.place) == with_effect_.end()) faults_.push_back(found);
  }
}

}  // namespace shardplan
