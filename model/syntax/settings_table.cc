#include "model/syntax/settings_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/syntax/strategy_syntax.h"

namespace shardplan {
namespace {

bool same(const std::vector<StrategyEntry>& a, const std::vector<StrategyEntry>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), means_the_same);
}
bool same(const StrategyEntry& a, const StrategyEntry& b) { return means_the_same(a, b); }
template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}

/// Calls `visit(key, field of a, field of b)` for every field.
template <class Visit>
void for_each_field(Settings& a, const Settings& b, Visit visit) {
  visit("in_strategy", a.in_strategy, b.in_strategy);
  visit("out_strategy", a.out_strategy, b.out_strategy);
  visit("strategy", a.strategy, b.strategy);
  visit("level", a.level, b.level);
  visit("parallel_mode", a.parallel_mode, b.parallel_mode);
  visit("place", a.worker, b.worker);
  visit("comm_fusion", a.comm_fusion, b.comm_fusion);
  visit("recompute", a.recompute, b.recompute);
  visit("gather_again", a.gather_again, b.gather_again);
  visit("compiled", a.compiled, b.compiled);
  visit("requires_grad", a.requires_grad, b.requires_grad);
  visit("device", a.device, b.device);
  visit("gradient_strategy", a.gradient_strategy, b.gradient_strategy);
  visit("state_strategy", a.state_strategy, b.state_strategy);
  visit("gradient_dtype", a.gradient_dtype, b.gradient_dtype);
  visit("state_dtype", a.state_dtype, b.state_dtype);
  visit("parallel_optimizer", a.parallel_optimizer, b.parallel_optimizer);
}

/// Takes over every field that `stronger` sets.
void override_with(Settings& settings, const Settings& stronger) {
  for_each_field(settings, stronger, [](const char*, auto& field, const auto& other) {
    if (other) field = other;
  });
}

/// Both have the same weight, so they must not differ.
void agree_with(Settings& settings, const Settings& equal, const std::string& name, std::vector<Diagnostic>& faults) {
  for_each_field(settings, equal, [&](const char* key, auto& field, const auto& other) {
    if (!other) return;
    if (field && !same(field->value, other->value)) {
      Diagnostic fault{other->place,
                       fmt::format("{}: {} is given on line {} and, differently, on line {}", name, key,
                                   field->place.line, other->place.line),
                       "keep one of them"};
      if (std::find(faults.begin(), faults.end(), fault) == faults.end()) faults.push_back(std::move(fault));
      return;
    }
    field = other;
  });
}

}  // namespace

bool matches_name(std::string_view pattern, std::string_view name) {
  while (true) {
    const std::size_t p = pattern.find('.');
    const std::size_t n = name.find('.');
    const std::string_view part = pattern.substr(0, p);
    if (part != "*" && part != name.substr(0, n)) return false;
    if (p == std::string_view::npos || n == std::string_view::npos) return p == n;
    pattern.remove_prefix(p + 1);
    name.remove_prefix(n + 1);
  }
}

SettingsTable::Lines SettingsTable::sorted(std::vector<StrategyLine> lines) {
  Lines result;
  for (StrategyLine& line : lines) {
    if (line.name.text.find('*') != std::string::npos) {
      result.patterns.push_back({std::move(line), false, {}});
    } else {
      std::string name = line.name.text;
      result.plain.emplace(std::move(name), Line{std::move(line), false, {}});
    }
  }
  return result;
}

SettingsTable::SettingsTable(std::vector<StrategyLine> lines, std::vector<StrategyLine> options)
    : file_(sorted(std::move(lines))), options_(sorted(std::move(options))) {}

bool SettingsTable::has(const std::string& name) const {
  const auto any = [&](const Lines& lines) {
    return lines.plain.contains(name) ||
           std::any_of(lines.patterns.begin(), lines.patterns.end(),
                       [&](const Line& line) { return matches_name(line.line.name.text, name); });
  };
  return any(file_) || any(options_);
}

Settings SettingsTable::find(const std::string& name, const Settings& beside, std::vector<Diagnostic>& faults) {
  const auto by_pattern = [&](Lines& lines) {
    Settings settings;
    for (Line& line : lines.patterns) {
      if (!matches_name(line.line.name.text, name)) continue;
      line.is_used = true;
      agree_with(settings, line.line.settings, name, faults);
    }
    return settings;
  };
  const auto by_name = [&](Lines& lines, Settings settings) {
    const auto found = lines.plain.find(name);
    if (found == lines.plain.end()) return settings;
    found->second.is_used = true;
    agree_with(settings, found->second.line.settings, name, faults);
    return settings;
  };
  Settings settings = by_pattern(file_);
  const Settings of_name = by_name(file_, beside);
  for (Line& line : file_.patterns) {
    if (!matches_name(line.line.name.text, name)) continue;
    for_each_field(line.line.settings, of_name, [&](const char* key, const auto& said, const auto& stronger) {
      if (said) line.has_effect[key] |= !stronger || same(said->value, stronger->value);
    });
  }
  override_with(settings, of_name);
  override_with(settings, by_pattern(options_));
  override_with(settings, by_name(options_, {}));
  return settings;
}

std::vector<std::string> SettingsTable::overridden() const {
  std::vector<std::string> notices;
  for (const Line& line : file_.patterns) {
    const Word& pattern = line.line.name;
    for (const auto& [key, has_effect] : line.has_effect) {
      if (has_effect) continue;
      notices.push_back(fmt::format("line {}: {} of {} has no effect: each that it matches says otherwise itself",
                                    pattern.place.line, key, pattern.text));
    }
  }
  return notices;
}

void SettingsTable::check_used(const std::vector<std::string>& names, std::vector<Diagnostic>& faults) const {
  // Copies of a repeat differ in numbers only; one of each kind is enough to find the nearest name.
  const auto folded = [](std::string name) {
    for (std::size_t at = 0; at < name.size(); ++at) {
      if (name[at] < '0' || name[at] > '9' || (at > 0 && name[at - 1] != '.')) continue;
      const std::size_t end = std::min(name.find('.', at), name.size());
      name.replace(at, end - at, "*");
    }
    return name;
  };
  std::vector<std::string> known;
  const auto report = [&](const Line& line) {
    if (line.is_used) return;
    if (known.empty()) {
      std::set<std::string> kinds;
      for (const std::string& name : names) kinds.insert(folded(name));
      known.assign(kinds.begin(), kinds.end());
    }
    const Word& name = line.line.name;
    const std::string nearest = nearest_name(folded(name.text), known);
    std::string hint;
    for (std::string_view rest = name.text; !rest.empty();) {
      const std::string_view part = rest.substr(0, rest.find('.'));
      if (part != "*" && part.find('*') != std::string_view::npos) hint = "'*' stands for a whole part of a name";
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
    faults.push_back(
        {name.place,
         fmt::format("no operator, block or tensor '{}'{}", name.text,
                     nearest.empty() || nearest == name.text ? "" : fmt::format("; did you mean '{}'?", nearest)),
         hint});
  };
  for (const Lines* lines : {&file_, &options_}) {
    for (const auto& [name, line] : lines->plain) report(line);
    for (const Line& line : lines->patterns) report(line);
  }
}

}  // namespace shardplan
