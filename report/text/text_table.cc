#include "report/text/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardplan {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

/// The largest unit of which `largest` is at least one, else the last unit. Below ten units two decimals are shown.
ColumnUnit pick_unit(std::int64_t largest, const std::array<Unit, 4>& units) {
  const double value = static_cast<double>(largest);
  const auto unit =
      std::find_if(units.begin(), units.end() - 1, [&](const Unit& u) { return value >= 0.9995 * u.size; });
  return {unit->name, unit->size, value >= 9.995 * unit->size || unit->size == 1 ? 1 : 2};
}

/// The words after `head`, those that do not fit below the first of them.
std::string hung(std::string head, std::string_view words) {
  const std::vector<std::string> lines = wrapped(words, kTerminalWidth - head.size());
  return fmt::format("{}{}\n", head, fmt::join(lines, "\n" + std::string(head.size(), ' ')));
}

}  // namespace

std::string styled(std::string_view text, TextStyle style, bool colour) {
  if (!colour || style == TextStyle::kPlain || text.empty()) return std::string(text);
  const int code = style == TextStyle::kBold ? 1 : 31;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string TextTable::to_string(std::size_t indent, bool colour) const {
  std::vector<std::size_t> widths(columns_.size());
  for (const std::vector<Cell>& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].text.size());
  }
  std::string text;
  for (const std::vector<Cell>& row : rows_) {
    std::size_t used = row.size();
    while (used > 0 && row[used - 1].text.empty()) --used;
    if (used > 0) text.append(indent, ' ');
    for (std::size_t i = 0; i < used; ++i) {
      const std::size_t padding = widths[i] - row[i].text.size();
      if (i > 0) text += "  ";
      if (columns_[i] == Align::kRight) text.append(padding, ' ');
      text += styled(row[i].text, row[i].style, colour);
      if (columns_[i] == Align::kLeft && i + 1 < used) text.append(padding, ' ');
    }
    text += '\n';
  }
  return text;
}

std::string ColumnUnit::format(std::int64_t value) const {
  constexpr double kWithoutDecimals = 10'000;
  const double number = static_cast<double>(value) / size;
  return fmt::format("{:.{}f}", number, size == 1 || number >= kWithoutDecimals ? 0 : decimals);
}

ColumnUnit time_unit(Picoseconds largest) {
  return pick_unit(largest, {{{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"us", 1e6}}});
}

ColumnUnit bytes_unit(Bytes largest) {
  return pick_unit(largest, {{{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"B", 1}}});
}

std::string counted(std::int64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::vector<std::string> wrapped(std::string_view words, std::size_t width, std::size_t hang) {
  std::vector<std::string> lines;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (lines.empty() || lines.back().size() + 1 + end > width) {
      lines.emplace_back(lines.empty() ? 0 : hang, ' ');
    } else {
      lines.back() += ' ';
    }
    lines.back() += words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return lines;
}

std::string paragraph_lines(std::string_view words) {
  return fmt::format("{}\n", fmt::join(wrapped(words, kTerminalWidth, 2), "\n"));
}

std::string wrapped_line(std::string_view key, std::string_view words) {
  return hung(fmt::format("  {:<12}", key), words);
}

std::string figure_line(std::string_view key, std::string_view figure, std::string_view words) {
  if (words.empty()) return fmt::format("  {:<12}{}\n", key, figure);
  return hung(fmt::format("  {:<12}{:<9}  ", key, figure), words);
}

}  // namespace shardplan
