#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/syntax/model_syntax.h"

namespace shardplan {

/// Whether `name` matches `pattern`, where a part "*" stands for any one part: layers.*.attn matches layers.3.attn.
bool matches_name(std::string_view pattern, std::string_view name);

/// The settings in the lines of `strategies:` and in the options --set, looked up by full name. --set beats the file; a
/// plain name beats one with '*'. A setting at the operator itself counts as a plain name.
class SettingsTable {
 public:
  SettingsTable(std::vector<StrategyLine> lines, std::vector<StrategyLine> options);

  /// What holds for `name`, `beside` included. Two lines of equal weight that contradict each other are a fault.
  Settings find(const std::string& name, const Settings& beside, std::vector<Diagnostic>& faults);
  /// Whether `find` could return anything but `beside`.
  bool has(const std::string& name) const;

  /// Adds a fault for each line whose name has never been asked for; `names` are all there are.
  void check_used(const std::vector<std::string>& names, std::vector<Diagnostic>& faults) const;
  /// One notice for each key of a pattern in the file that has no effect, since all that it matches says otherwise itself.
  std::vector<std::string> overridden() const;

 private:
  struct Line {
    StrategyLine line;
    bool is_used = false;
    std::map<std::string, bool> has_effect;  // of a pattern, by key
  };
  struct Lines {
    std::map<std::string, Line, std::less<>> plain;
    std::vector<Line> patterns;
  };
  static Lines sorted(std::vector<StrategyLine> lines);

  Lines file_;
  Lines options_;
};

}  // namespace shardplan
