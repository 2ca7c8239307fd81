// Reads and writes Shardy's notation. Open dimensions `?`, priorities `p1` and `replicated={...}` guide Shardy's
// propagation but place nothing; they are read, dropped and named in the note.

#include <cctype>

#include "base/error.h"
#include "base/shortened.h"
#include "layouts/tensor_layout.h"

namespace shardplan {
namespace {

class LayoutReader {
 public:
  LayoutReader(std::string_view text, const DeviceMesh& mesh) : text_(text), mesh_(mesh) {}

  TensorLayout read() {
    TensorLayout layout;
    expect('[');
    if (!accept(']')) {
      do layout.dimensions.push_back(read_dimension());
      while (accept(','));
      expect(']');
    }
    bool reduction_given = false;
    while (peek() != '\0') {
      const std::size_t start = at_;
      const std::string word = read_word("'unreduced={...}' or the end");
      expect('=');
      if (word == "unreduced") {
        if (!layout.partial.empty()) fail(start, "'unreduced' is given twice");
        layout.partial = read_axes();
      } else if (word == "unreduced_kind") {
        layout.reduction = read_reduction();
        reduction_given = true;
      } else if (word == "replicated") {
        read_axes();
        drop("replicated={...}");
      } else {
        fail(start, fmt::format("found '{}'; expected 'unreduced={{...}}', 'unreduced_kind=max' or the end", word));
      }
    }
    if (reduction_given && layout.partial.empty()) fail(at_, "'unreduced_kind' is given without 'unreduced={...}'");
    return layout;
  }

  const std::string& dropped() const { return dropped_; }

 private:
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (accept(c)) return;
    fail(at_, fmt::format("found {}; expected '{}'", found(), c));
  }
  std::string found() {
    if (peek() == '\0') return "the end";
    const auto byte = static_cast<unsigned char>(peek());
    return byte < 0x20 || byte > 0x7e ? fmt::format("the byte 0x{:02x}", byte) : fmt::format("'{}'", peek());
  }
  [[noreturn]] void fail(std::size_t at, const std::string& what) {
    throw InputError({}, "layout '{}', character {}: {}", shortened(text_), at + 1, what);
  }
  void drop(const std::string& what) {
    if (dropped_.find(what) != std::string::npos) return;
    dropped_ += (dropped_.empty() ? "" : ", ") + what;
  }

  std::string read_word(std::string_view expected) {
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    };
    if (!is_part(peek())) fail(at_, fmt::format("found {}; expected {}", found(), expected));
    std::string word;
    while (at_ < text_.size() && is_part(text_[at_])) word += text_[at_++];
    return word;
  }
  std::int64_t read_number() {
    const std::size_t start = at_;
    const std::string word = read_word("a whole number");
    std::int64_t value = 0;
    for (const char c : word) {
      if (c < '0' || c > '9' || value > INT64_MAX / 100) {
        fail(start, fmt::format("found '{}'; expected a whole number", word));
      }
      value = value * 10 + (c - '0');
    }
    if (value < 1) fail(start, fmt::format("found '{}'; expected a number of at least 1", word));
    return value;
  }

  DimensionLayout read_dimension() {
    DimensionLayout dimension;
    if (accept('(')) {
      do {
        DimensionPart part;
        part.size = read_number();
        expect(':');
        part.axes = read_axes();
        dimension.parts.push_back(std::move(part));
      } while (accept(','));
      expect(')');
    } else {
      dimension.parts.push_back({0, read_axes()});
    }
    if (peek() == 'p') {
      const std::size_t start = at_++;
      if (at_ >= text_.size() || !std::isdigit(static_cast<unsigned char>(text_[at_]))) {
        fail(start, "found 'p'; expected ',' or ']'");
      }
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) ++at_;
      drop("priorities");
    }
    return dimension;
  }

  std::vector<AxisRef> read_axes() {
    std::vector<AxisRef> axes;
    expect('{');
    if (accept('}')) return axes;
    do {
      if (accept('?')) {
        drop("'?'");
      } else {
        axes.push_back(read_axis());
      }
    } while (accept(','));
    expect('}');
    return axes;
  }

  AxisRef read_axis() {
    const char quote = peek() == '"' || peek() == '\'' ? peek() : '\0';
    if (quote != '\0') ++at_;
    const std::size_t start = at_;
    const std::string name = read_word("an axis");
    if (quote != '\0') expect(quote);
    std::optional<AxisRef> axis = mesh_.find(name);
    if (!axis) {
      std::vector<std::string> names;
      for (const MeshAxis& known : mesh_.axes()) names.push_back(known.name);
      const std::string near = name.size() > 1 ? nearest_name(name, names) : std::string();
      fail(start, fmt::format("unknown axis '{}'; the mesh is {}{}", name, mesh_.to_string(),
                              near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near)));
    }
    if (accept(':')) {
      expect('(');
      axis->before = read_number();
      expect(')');
      const std::int64_t size = read_number();
      if (axis->size % axis->before != 0 || axis->size / axis->before % size != 0) {
        fail(start, fmt::format("{}:({}){} is not part of axis {} of size {}; {} * {} must divide it", name,
                                axis->before, size, name, axis->size, axis->before, size));
      }
      axis->size = size;
    }
    return *axis;
  }

  Reduction read_reduction() {
    const std::size_t start = at_;
    const std::string word = read_word("sum, max or min");
    for (const Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
      if (word == to_string(reduction)) return reduction;
    }
    fail(start, fmt::format("found '{}'; expected sum, max or min", word));
  }

  std::string_view text_;
  const DeviceMesh& mesh_;
  std::size_t at_ = 0;
  std::string dropped_;
};

}  // namespace

TensorLayout parse_layout(std::string_view text, const DeviceMesh& mesh, std::string* note) {
  LayoutReader reader(text, mesh);
  TensorLayout layout = reader.read();
  if (const std::string fault = check_axes(layout, mesh); !fault.empty()) {
    throw InputError({}, "layout '{}': {}", shortened(text), fault);
  }
  if (note != nullptr) {
    *note = reader.dropped().empty() ? std::string()
                                     : fmt::format("layout '{}': {} read and dropped; they place nothing",
                                                   shortened(text), reader.dropped());
  }
  return layout;
}

std::string to_string(const TensorLayout& layout, const DeviceMesh& mesh) {
  std::string text = "[";
  for (const DimensionLayout& dimension : layout.dimensions) {
    if (text.size() > 1) text += ", ";
    if (dimension.parts.empty()) {
      text += "{}";
    } else if (dimension.parts.size() == 1) {
      text += mesh.to_string(dimension.parts.front().axes);
    } else {
      std::string parts;
      for (const DimensionPart& part : dimension.parts) {
        parts += fmt::format("{}{}:{}", parts.empty() ? "" : ", ", part.size, mesh.to_string(part.axes));
      }
      text += fmt::format("({})", parts);
    }
  }
  text += "]";
  if (!layout.partial.empty()) {
    text += " unreduced=" + mesh.to_string(layout.partial);
    if (layout.reduction != Reduction::kSum) text += fmt::format(" unreduced_kind={}", to_string(layout.reduction));
  }
  return text;
}

}  // namespace shardplan
