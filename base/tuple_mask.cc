#include "base/tuple_mask.h"

#include <algorithm>
#include <string_view>

namespace shardplan {
namespace {

constexpr std::string_view kMeaningful = ",[]{}\"':#";
constexpr std::string_view kMasks = "\x01\x02\x03\x04\x05\x06\x0e\x0f\x10";
static_assert(kMeaningful.size() == kMasks.size());

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// Scans a YAML text only as far as needed to know where values begin.
class TupleScanner {
 public:
  explicit TupleScanner(std::string& text) : text_(text) {}

  void run() {
    while (at_ < text_.size()) step();
  }

 private:
  char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\n'; }

  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      begins_value_ = true;
    } else if (c == '#' && (at_ == 0 || is_blank(text_[at_ - 1]))) {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return;
    } else if (begins_value_ && (c == '"' || c == '\'')) {
      at_ = end_of_quotes(at_);
      begins_value_ = false;
      return;
    } else if (begins_value_ && c == '(') {
      at_ = mask(at_);
      begins_value_ = false;
      return;
    } else if ((begins_value_ || depth_ > 0) && (c == '[' || c == '{')) {
      ++depth_;
      begins_value_ = true;
    } else if (depth_ > 0 && (c == ']' || c == '}')) {
      --depth_;
      begins_value_ = false;
    } else if ((depth_ > 0 && c == ',') || (c == ':' && is_blank(next()))) {
      begins_value_ = true;
    } else if (!is_blank(c) && !(begins_value_ && c == '-' && is_blank(next()))) {
      begins_value_ = false;
    }
    ++at_;
  }

  /// The position after the closing quote, or the end of the text if there is none.
  std::size_t end_of_quotes(std::size_t begin) const {
    const char quote = text_[begin];
    for (std::size_t i = begin + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        return i + 1;
      }
    }
    return text_.size();
  }

  /// Masks the tuple that begins here and returns the position after it.
  std::size_t mask(std::size_t begin) {
    const std::size_t end = end_of_tuple(begin);
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t which = kMeaningful.find(text_[i]);
      if (which != std::string_view::npos) text_[i] = kMasks[which];
    }
    return std::max(end, begin + 1);
  }

  std::size_t end_of_tuple(std::size_t begin) const {
    std::string open;  // closing brackets still expected
    for (std::size_t i = begin; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '"' || c == '\'') {
        i = end_of_quotes(i) - 1;
      } else if (c == '(' || c == '[' || c == '{') {
        open += c == '(' ? ')' : c == '[' ? ']' : '}';
      } else if (c == ')' || c == ']' || c == '}') {
        if (open.back() != c) {
          // The brackets around the tuple end here, or those inside it do not match.
          return depth_ > 0 ? i : begin;
        }
        open.pop_back();
        if (open.empty()) return i + 1;
      }
    }
    return begin;
  }

  std::string& text_;
  std::size_t at_ = 0;
  int depth_ = 0;  // of YAML's own brackets
  bool begins_value_ = true;
};

}  // namespace

std::string mask_tuples(std::string text) {
  const bool has_masks = text.find_first_of(kMasks) != std::string::npos;
  if (!has_masks && text.find('(') != std::string::npos) TupleScanner(text).run();
  return text;
}

std::string unmask_tuples(std::string scalar) {
  for (char& c : scalar) {
    const std::size_t which = kMasks.find(c);
    if (which != std::string_view::npos) c = kMeaningful[which];
  }
  return scalar;
}

}  // namespace shardplan
