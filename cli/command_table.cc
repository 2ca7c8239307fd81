#include "cli/command_table.h"

#include <fmt/format.h>

#include <type_traits>

#include "base/error.h"

namespace shardplan {
namespace {

std::string default_text(const Target& target) {
  return std::visit(
      [](auto* held) -> std::string {
        using Held = std::remove_pointer_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string>) return *held;
        if constexpr (std::is_arithmetic_v<Held> && !std::is_same_v<Held, bool>) return fmt::format("{}", *held);
        return "";
      },
      target);
}

}  // namespace

Check from_to(double least, double most) { return {least, most, false, {}}; }
Check at_least(double least) { return {least, std::nullopt, false, {}}; }
Check positive() { return {std::nullopt, std::nullopt, true, {}}; }
Check one_of(std::vector<std::string> words) { return {std::nullopt, std::nullopt, false, std::move(words)}; }

Option Option::required() const {
  Option changed = *this;
  changed.is_required = true;
  return changed;
}

Option Option::optional() const {
  Option changed = *this;
  changed.is_required = false;
  return changed;
}

Option Option::completed_by(Completion kind) const {
  Option changed = *this;
  changed.completion = kind;
  return changed;
}

Option Option::writing(std::vector<std::string> files) const {
  Option changed = *this;
  changed.writes = std::move(files);
  return changed;
}

Option Option::with_default(std::string text) const {
  Option changed = *this;
  changed.default_text = std::move(text);
  return changed;
}

std::vector<std::string> given_values(const Option& option) {
  return std::visit(
      [](auto* held) -> std::vector<std::string> {
        using Held = std::remove_pointer_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::vector<std::string>>) {
          return *held;
        } else if constexpr (std::is_arithmetic_v<Held> || std::is_same_v<Held, std::string>) {
          SHARDPLAN_CHECK(false);  // its default looks like a given value
          return {};
        } else {
          if (!held->has_value()) return {};
          return {fmt::format("{}", **held)};
        }
      },
      option.target);
}

Option argument(std::string name, Target target, std::string help, Check check) {
  return option(std::move(name), "", target, std::move(help), std::move(check)).required();
}

Option option(std::string name, std::string value, Target target, std::string help, Check check) {
  Option made;
  made.name = std::move(name);
  made.value = std::move(value);
  made.help = std::move(help);
  made.target = target;
  made.check = std::move(check);
  made.default_text = default_text(target);
  return made;
}

Option flag(std::string name, bool& target, std::string help) {
  return option(std::move(name), "", &target, std::move(help));
}

std::vector<Option> Command::all_options() const {
  std::vector<Option> all;
  for (const OptionGroup& group : options) all.insert(all.end(), group.options.begin(), group.options.end());
  return all;
}

const Command* Program::find(const std::string& command) const {
  for (const Command& candidate : commands) {
    if (candidate.name == command) return &candidate;
  }
  return nullptr;
}

}  // namespace shardplan
