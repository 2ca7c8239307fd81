#include "tests/report/sdy_checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace shardplan {
namespace {

struct SdyAxis {
  std::string axis;
  std::int64_t before = 1, size = 0;
};

class SdyReader {
 public:
  explicit SdyReader(const std::string& text) : text_(text) {}

  void module() {
    expect("module");
    expect("@");
    word();
    expect("{");
    mesh();
    while (!accepts("}")) function();
    skip();
    if (at_ != text_.size()) fail("text behind the module");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw std::runtime_error(fmt::format("line {}: {}", line, what));
  }

  void skip() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else if (text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  bool accepts(const std::string& token) {
    skip();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  void expect(const std::string& token) {
    if (!accepts(token)) fail(fmt::format("expected '{}', found '{}'", token, text_.substr(at_, 12)));
  }

  std::string word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    if (begin == at_) fail("expected a name");
    return text_.substr(begin, at_ - begin);
  }

  std::string quoted() {
    expect("\"");
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\n') fail("a string that does not end");
      if (text_[at_] == '\\') {
        if (at_ + 2 >= text_.size() || std::isxdigit(static_cast<unsigned char>(text_[at_ + 1])) == 0)
          fail("an escape");
        at_ += 2;
      }
      ++at_;
    }
    ++at_;
    return text_.substr(begin, at_ - begin - 1);
  }

  std::int64_t number() {
    const std::string digits = word();
    if (!std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
      fail(fmt::format("'{}' is not a number", digits));
    }
    return std::stoll(digits);
  }

  void mesh() {
    expect("sdy.mesh");
    expect("@");
    mesh_ = word();
    expect("=");
    expect("<[");
    std::int64_t devices = 1;
    if (!accepts("]")) {
      do {
        const std::string axis = quoted();
        expect("=");
        const std::int64_t size = number();
        if (size < 1 || !axes_.emplace(axis, size).second) fail(fmt::format("axis \"{}\"", axis));
        order_.push_back(axis);
        devices *= size;
      } while (accepts(","));
      expect("]");
    }
    if (accepts(",")) {
      expect("device_ids");
      expect("=");
      expect("[");
      std::set<std::int64_t> ids;
      do ids.insert(number());
      while (accepts(","));
      expect("]");
      if (static_cast<std::int64_t>(ids.size()) != devices || *ids.begin() != 0 || *ids.rbegin() != devices - 1) {
        fail("device_ids are no order of the devices");
      }
    }
    expect(">");
  }

  /// The tensor's type as text, and its rank.
  std::pair<std::string, std::size_t> tensor() {
    expect("tensor<");
    const std::size_t begin = at_;
    std::size_t rank = 0;
    while (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      while (std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
      if (text_[at_] != 'x') fail("an extent without x behind it");
      ++at_;
      ++rank;
    }
    static const std::set<std::string> kElements{"f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "ui8", "i1"};
    if (const std::string element = word(); !kElements.contains(element)) fail("no element type: " + element);
    const std::string type = text_.substr(begin, at_ - begin);
    expect(">");
    return {type, rank};
  }

  void sharding(std::size_t rank) {
    expect("<@");
    if (word() != mesh_) fail("another mesh");
    expect(",");
    expect("[");
    std::vector<SdyAxis> used;
    std::size_t dimensions = 0;
    if (!accepts("]")) {
      do {
        axes(used);
        ++dimensions;
      } while (accepts(","));
      expect("]");
    }
    if (dimensions != rank) fail(fmt::format("{} dimensions for a tensor of {}", dimensions, rank));
    if (accepts(",")) {
      expect("unreduced");
      expect("=");
      const std::size_t first = used.size();
      axes(used);
      if (used.size() == first) fail("no unreduced axes");
      const auto key = [&](const SdyAxis& ref) {
        return std::pair(std::find(order_.begin(), order_.end(), ref.axis) - order_.begin(), ref.before);
      };
      for (std::size_t i = first + 1; i < used.size(); ++i) {
        if (key(used[i]) < key(used[i - 1])) fail("unreduced axes are not in the order of the mesh");
      }
    }
    expect(">");
  }

  /// In braces, appended to the axes of the same sharding.
  void axes(std::vector<SdyAxis>& used) {
    expect("{");
    if (accepts("}")) return;
    bool is_first = true;
    do {
      const SdyAxis ref = axis();
      if (!is_first && used.back().axis == ref.axis && used.back().before * used.back().size == ref.before) {
        fail(fmt::format("two sub-axes of \"{}\" that are one", ref.axis));
      }
      for (const SdyAxis& other : used) {
        if (other.axis == ref.axis && ref.before < other.before * other.size && other.before < ref.before * ref.size) {
          fail(fmt::format("axis \"{}\" is used twice", ref.axis));
        }
      }
      used.push_back(ref);
      is_first = false;
    } while (accepts(","));
    expect("}");
  }

  SdyAxis axis() {
    SdyAxis ref;
    ref.axis = quoted();
    const auto found = axes_.find(ref.axis);
    if (found == axes_.end()) fail(fmt::format("no axis \"{}\" in the mesh", ref.axis));
    ref.size = found->second;
    if (accepts(":")) {
      expect("(");
      ref.before = number();
      expect(")");
      ref.size = number();
      if (ref.size < 2 || ref.size == found->second || found->second % (ref.before * ref.size) != 0) {
        fail(fmt::format("\"{}\":({}){} is no sub-axis", ref.axis, ref.before, ref.size));
      }
    }
    return ref;
  }

  void attributes(std::size_t rank) {
    if (!accepts("{")) return;
    expect("sdy.sharding");
    expect("=");
    expect("#sdy.sharding");
    sharding(rank);
    expect("}");
  }

  /// In parentheses; with a body every argument has a name.
  std::vector<std::string> arguments() {
    std::vector<std::string> names;
    expect("(");
    if (accepts(")")) return names;
    do {
      if (accepts("%")) {
        names.push_back(word());
        expect(":");
      }
      const auto [type, rank] = tensor();
      types_[names.empty() ? "" : names.back()] = type;
      attributes(rank);
    } while (accepts(","));
    expect(")");
    return names;
  }

  void function() {
    expect("func.func");
    expect("private");
    expect("@");
    skip();
    const std::string symbol = text_[at_] == '"' ? quoted() : word();
    if (!symbols_.insert(symbol).second) fail(fmt::format("a second @{}", symbol));
    types_.clear();
    const std::vector<std::string> names = arguments();
    if (accepts("->")) {
      if (skip(), text_[at_] == '(') {
        arguments();
      } else {
        tensor();
      }
    }
    if (!accepts("{")) return;
    std::set<std::string> values(names.begin(), names.end());
    while (!accepts("return")) {
      expect("%");
      const std::string made = word();
      expect("=");
      expect("sdy.sharding_constraint");
      expect("%");
      const std::string read = word();
      if (!values.contains(read)) fail("no value %" + read);
      const std::size_t begin = at_;
      // Its type follows and gives the number of dimensions of the sharding.
      const std::size_t colon = text_.find(" : ", at_);
      if (colon == std::string::npos) fail("no type");
      at_ = colon + 3;
      const auto [type, rank] = tensor();
      if (type != types_[read]) fail("another type than its operand's");
      const std::size_t end = at_;
      at_ = begin;
      sharding(rank);
      at_ = end;
      values.insert(made);
      types_[made] = type;
    }
    expect("%");
    const std::string returned = word();
    if (!values.contains(returned)) fail("no value %" + returned);
    expect(":");
    if (tensor().first != types_[returned]) fail("returns another type");
    expect("}");
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::string mesh_;
  std::map<std::string, std::int64_t> axes_;
  std::vector<std::string> order_;  // the axes as the mesh lists them
  std::set<std::string> symbols_;
  std::map<std::string, std::string> types_;  // by value, of the current function
};

}  // namespace

std::string sdy_fault(const std::string& text) {
  try {
    SdyReader(text).module();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace shardplan
