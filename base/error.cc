#include "base/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>
#include <tuple>

namespace shardplan {
namespace {

std::string join_diagnostics(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!text.empty()) text += '\n';
    text += to_string(diagnostic);
  }
  return text;
}

/// "layers.3.up: ..." becomes "layers.*.up: ...", which is the same for all copies of a block.
std::string without_copy_numbers(const std::string& message) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string text;
  for (std::size_t i = 0; i < message.size(); ++i) {
    text += message[i];
    if (message[i] != '.' || i == 0 || message[i - 1] == ' ' || is_digit(message[i - 1])) continue;
    std::size_t end = i + 1;
    while (end < message.size() && is_digit(message[end])) ++end;
    if (end == i + 1) continue;
    text += '*';
    i = end - 1;
  }
  return text;
}

/// Keeps one diagnostic of a fault that is reported once per copy of a block: that of the first copy.
std::vector<Diagnostic> with_copies_joined(std::vector<Diagnostic> diagnostics) {
  std::vector<Diagnostic> kept;
  std::vector<std::size_t> more;
  std::map<std::tuple<std::string, int, int, std::string, std::string>, std::size_t> known;
  for (Diagnostic& one : diagnostics) {
    const auto [found, is_new] = known.try_emplace(
        {one.place.file.str(), one.place.line, one.place.column, without_copy_numbers(one.message), one.hint},
        kept.size());
    if (is_new) {
      kept.push_back(std::move(one));
      more.push_back(0);
    } else {
      ++more[found->second];
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (more[i] > 0) kept[i].message += fmt::format(" (and the same of {} more)", more[i]);
  }
  return kept;
}

/// Twice the minimal number of insertions, deletions, changes and swaps of neighbours (Damerau). A change of case alone
/// counts half, so that 'Relu' is nearer to 'ReLU' than to 'Real'.
int twice_edit_distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  std::vector<int> before(b.size() + 1);  // rows i - 2, i - 1 and i
  std::vector<int> above(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(2 * j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = static_cast<int>(2 * i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int change = a[i - 1] == b[j - 1] ? 0 : lower(a[i - 1]) == lower(b[j - 1]) ? 1 : 2;
      row[j] = std::min({above[j] + 2, row[j - 1] + 2, above[j - 1] + change});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) row[j] = std::min(row[j], before[j - 2] + 2);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string to_string(const Diagnostic& diagnostic) {
  std::string text;
  const SourcePlace& place = diagnostic.place;
  if (!place.file.empty()) {
    text = place.file.str();
    if (place.line > 0) text += fmt::format(":{}:{}", place.line, place.column);
    text += ": ";
  }
  text += "error: " + diagnostic.message;
  std::string_view hint = diagnostic.hint;
  while (!hint.empty()) {
    const std::size_t end = std::min(hint.find('\n'), hint.size());
    text += fmt::format("\n    {}", hint.substr(0, end));
    hint.remove_prefix(std::min(end + 1, hint.size()));
  }
  return text;
}

InputError::InputError(std::vector<Diagnostic> diagnostics, std::string note)
    : diagnostics_(with_copies_joined(std::move(diagnostics))),
      note_(std::move(note)),
      text_(join_diagnostics(diagnostics_)) {}

InputError named_at(const SourcePlace& place, const InputError& error) {
  std::vector<Diagnostic> faults = error.diagnostics();
  for (Diagnostic& fault : faults) {
    if (fault.place.line > 0 || (place.line == 0 && !fault.place.file.empty())) continue;
    if (!fault.place.file.empty()) fault.message = fault.place.file.str() + ": " + fault.message;
    fault.place = place;
  }
  return InputError(std::move(faults), error.note());
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  // A single letter may differ in case only; otherwise every letter would be equally near.
  int best_distance = name.size() < 2 ? 2 : static_cast<int>(2 * std::max<std::size_t>(1, name.size() / 3)) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t shorter = std::min(name.size(), candidate.size());
    if (2 * (longer - shorter) > static_cast<std::size_t>(best_distance)) continue;
    const int distance = twice_edit_distance(name, candidate);
    if (distance < best_distance || (distance == best_distance && !best.empty() && candidate < best)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "shardplan: internal error: %s does not hold (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace shardplan
