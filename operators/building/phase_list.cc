#include "operators/building/phase_list.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace shardplan {
namespace {

/// The names of a list "x, max".
std::vector<std::string_view> names_in(std::string_view text) {
  std::vector<std::string_view> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(", "), text.size());
    names.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 2));
  }
  return names;
}

}  // namespace

Phases make_phases(const Operation& operation, const std::vector<PhaseLine>& lines) {
  const Signature& signature = operation.type->signature;
  std::vector<std::string_view> values(signature.operands.begin(), signature.operands.end());
  if (signature.num_optional > 0) values.resize(operation.operands.size());  // an omitted operand is not a value
  const auto value_named = [&](std::string_view name) {
    const auto at = std::find(values.rbegin(), values.rend(), name);
    SHARDPLAN_CHECK(at != values.rend());
    return static_cast<std::size_t>(values.rend() - at) - 1;
  };
  Phases result;
  for (const PhaseLine& line : lines) {
    const std::size_t equals = line.text.find(" = ");
    const std::size_t open = line.text.find('(', equals);
    SHARDPLAN_CHECK(equals != std::string_view::npos && open != std::string_view::npos && line.text.ends_with(')'));
    Phase phase{std::string(line.text.substr(equals + 3, open - equals - 3)), line.attributes, {}};
    for (const std::string_view name : names_in(line.text.substr(open + 1, line.text.size() - open - 2))) {
      phase.inputs.push_back(value_named(name));
    }
    result.phases.push_back(std::move(phase));
    for (const std::string_view name : names_in(line.text.substr(0, equals))) values.push_back(name);
  }
  for (std::size_t r = 0; r < operation.results.size(); ++r)
    result.results.push_back(value_named(signature.results[r]));
  return result;
}

}  // namespace shardplan
