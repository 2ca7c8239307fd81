#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/syntax/settings.h"

namespace shardplan {

/// Settings that have no effect where they stand are faults there: those of parameters beside an operator, of training in
/// a model for inference, of a use whose parameters belong to another one, ... A line of `strategies:` may hold for many
/// operators; it causes one fault.
class SettingChecks {
 public:
  /// `training` is null without training. All must outlive the checks.
  SettingChecks(const ParallelOptions& parallel, const TrainingOptions* training, std::vector<Diagnostic>& faults)
      : parallel_(parallel), training_(training), faults_(faults) {}

  void check_operator(const std::string& name, const Settings& said);
  /// `what`: "an input".
  void check_tensor(const std::string& name, const Settings& said, const char* what, bool is_parameter);
  /// Of an operator or block: what the backward pass reads. `is_listed`: `training: {recompute}` names it.
  void check_backward(const std::string& name, const Settings& said, bool is_listed);
  /// A fusion id is that of gradients.
  void check_fusion(const std::string& name, const Placed<int>& fusion, bool has_gradient);
  /// Of a block with parameters of which none is trained.
  void check_untrained_block(const std::string& name, const Settings& said);
  /// Of the index-th input: what full_batch or dataset_strategy says of its layout must not contradict its own.
  void check_input(const GraphTensor& input, std::size_t index);
  /// `own` is the `strategy` of a result whose operator or block may have an `out_strategy`.
  void check_one_layout(const std::string& result, const std::optional<Placed<std::vector<StrategyEntry>>>& out,
                        const Placed<StrategyEntry>& own);
  /// Of the use of a block; `owner` is the use to which its parameters belong: `name` or, with `share`, another one. A
  /// line that holds for both has an effect.
  void note_owner(const std::string& name, const Settings& said, const std::string& owner);
  /// Adds the faults of keys that were said only of uses that share another one's parameters.
  void report_shared();

 private:
  void fault(const SourcePlace& place, std::string message, std::string hint = "");
  /// If nothing is wrong at that place yet.
  void fault_once(const SourcePlace& place, std::string message, std::string hint = "");

  const ParallelOptions& parallel_;
  const TrainingOptions* training_;
  std::vector<Diagnostic>& faults_;
  std::vector<SourcePlace> with_effect_;  // of keys of parameters
  std::vector<Diagnostic> shared_;
};

}  // namespace shardplan
