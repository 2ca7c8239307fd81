#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace shardplan {

/// The width that all pages fit, in columns.
inline constexpr std::size_t kTerminalWidth = 100;

enum class TextStyle { kPlain, kBold, kRed };

/// The text in a terminal's colour, or unchanged if `colour` is false.
std::string styled(std::string_view text, TextStyle style, bool colour);

/// Rows of cells, printed one below the other in columns two blanks apart:
///
///   TextTable table({Align::kLeft, Align::kRight});
///   table.add({"forward", "29.2"});                     forward   29.2
///   table.add({"step", "113.0"});                       step     113.0
///
/// A row may have fewer cells than there are columns. No line ends in blanks.
class TextTable {
 public:
  enum class Align { kLeft, kRight };
  struct Cell {
    std::string text;
    TextStyle style = TextStyle::kPlain;

    Cell(std::string cell_text, TextStyle cell_style = TextStyle::kPlain)
        : text(std::move(cell_text)), style(cell_style) {}
    Cell(const char* cell_text) : text(cell_text) {}
  };

  explicit TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  /// All rows, one per line, indented by `indent` blanks.
  std::string to_string(std::size_t indent, bool colour = false) const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<Cell>> rows_;
};

/// One unit for a column of times or sizes, chosen by the largest value: 83.8 ms and 0.7 ms, not 700 us.
struct ColumnUnit {
  std::string_view name;  // "ms", "GiB"
  double size = 1;        // in picoseconds or bytes
  int decimals = 1;

  std::string format(std::int64_t value) const;
};
ColumnUnit time_unit(Picoseconds largest);
ColumnUnit bytes_unit(Bytes largest);

/// "1 device", "8 devices".
std::string counted(std::int64_t count, std::string_view thing);

/// The text in lines of at most `width` (longer only for a single longer word); lines after the first are indented by
/// `hang` blanks.
std::vector<std::string> wrapped(std::string_view words, std::size_t width, std::size_t hang = 0);

/// A text wrapped to a width of 100, later lines indented by two blanks.
std::string paragraph_lines(std::string_view words);

/// "key" in a column of 12 after two blanks, then the text, wrapped to a width of 100 in its own column.
std::string wrapped_line(std::string_view key, std::string_view words);

/// "key" as in `wrapped_line`, a figure in a column of 9, then the text, wrapped to a width of 100 in its own column.
std::string figure_line(std::string_view key, std::string_view figure, std::string_view words);

}  // namespace shardplan
