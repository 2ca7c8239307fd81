#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace shardplan {
namespace {

/// Input on which readers of numbers, names and structure often fail.
const std::vector<std::string> kNumbers = {"0",
                                           "1",
                                           "-1",
                                           "2",
                                           "3",
                                           "7",
                                           "64",
                                           "1000000",
                                           "1048577",
                                           "2147483647",
                                           "2147483648",
                                           "4294967296",
                                           "4611686018427387904",
                                           "9223372036854775807",
                                           "9223372036854775808",
                                           "18446744073709551616",
                                           "-9223372036854775808",
                                           "1e9",
                                           "1e18",
                                           "1e308",
                                           "1e-320",
                                           "0.5",
                                           "nan",
                                           "inf",
                                           "-inf",
                                           "0x10",
                                           "010",
                                           "1_000",
                                           "1.0",
                                           "+3",
                                           "1/3",
                                           "B*B",
                                           "2**40",
                                           "(2*3)"};
const std::vector<std::string> kOddities = {"{",        "}",    "[",        "]",
                                            "(",        ")",    ",",        ":",
                                            ": ",       "\n",   "\n  ",     "\n- ",
                                            "\t",       "  ",   "''",       "\"\"",
                                            "#",        "&a ",  "*a",       "<<: ",
                                            "!!",       "|",    "%",        "null",
                                            "true",     "no",   "{}",       "[]",
                                            "()",       "[[]]", "~",        "\\",
                                            "\"",       "'",    "\xc3\xa9", "\xff",
                                            "\r\n",     "...",  "*",        "given",
                                            "inferred", "-",    "/",        "\\u0000",
                                            "\\ud800",  "=",    "?",        "unreduced={x}",
                                            "@",        "$",    "x:(1)2",   "(2:{}, 4:{x})"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-' || c == '+';
}
bool is_number(const std::string& token) {
  return std::isdigit(static_cast<unsigned char>(token.front())) != 0 ||
         (token.size() > 1 && (token.front() == '-' || token.front() == '+') &&
          std::isdigit(static_cast<unsigned char>(token[1])) != 0);
}
bool is_space(const std::string& token) { return token.find_first_not_of(" \t\r\n") == std::string::npos; }

std::size_t draw(Random& random, std::size_t count) { return static_cast<std::size_t>(random.below(count)); }
template <class T>
const T& one_of_these(const std::vector<T>& items, Random& random) {
  return items[draw(random, items.size())];
}

/// The end of the bracket that opens at `begin`; the end of the text if it is not closed.
std::size_t group_end(const std::vector<std::string>& tokens, std::size_t begin) {
  int depth = 0;
  for (std::size_t i = begin; i < tokens.size(); ++i) {
    const char c = tokens[i].front();
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (depth == 0) return i + 1;
  }
  return tokens.size();
}

std::string joined(const std::vector<std::string>& tokens, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) text += tokens[i];
  return text;
}

using Offset = std::ptrdiff_t;

}  // namespace

std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> tokens;
  const auto kind = [](char c) { return is_word(c) ? 1 : c == ' ' ? 2 : 0; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool goes_on = i > 0 && kind(text[i]) != 0 && kind(text[i]) == kind(text[i - 1]);
    if (!goes_on) tokens.emplace_back();
    tokens.back() += text[i];
  }
  return tokens;
}

Mutator::Mutator(const std::vector<std::string>& texts) {
  constexpr std::size_t kLongestGroup = 400;
  std::set<std::string> words;
  std::set<std::string> groups;
  for (const std::string& text : texts) {
    const std::vector<std::string> tokens = tokens_of(text);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (is_word(tokens[i].front())) words.insert(tokens[i]);
      if (std::string("{[(").find(tokens[i].front()) == std::string::npos) continue;
      const std::string group = joined(tokens, i, group_end(tokens, i));
      if (group.size() <= kLongestGroup) groups.insert(group);
    }
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      if (end - begin <= kLongestGroup) lines_.push_back(text.substr(begin, end - begin));
      begin = end;
    }
  }
  words_.assign(words.begin(), words.end());
  groups_.assign(groups.begin(), groups.end());
  if (words_.empty()) words_.push_back("x");
  if (groups_.empty()) groups_.push_back("{}");
  if (lines_.empty()) lines_.push_back("\n");
}

void Mutator::change_group(std::vector<std::string>& tokens, Random& random) const {
  std::vector<std::size_t> opening;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (std::string("{[(").find(tokens[i].front()) != std::string::npos) opening.push_back(i);
  }
  if (opening.empty()) return;
  const std::size_t begin = one_of_these(opening, random);
  const std::size_t end = group_end(tokens, begin);
  const std::vector<std::string> group(tokens.begin() + static_cast<Offset>(begin),
                                       tokens.begin() + static_cast<Offset>(end));
  const auto erase = [&] {
    tokens.erase(tokens.begin() + static_cast<Offset>(begin), tokens.begin() + static_cast<Offset>(end));
  };
  switch (random.below(5)) {
    case 0:
      erase();
      break;
    case 1: {
      erase();
      const std::vector<std::string> other = tokens_of(one_of_these(groups_, random));
      tokens.insert(tokens.begin() + static_cast<Offset>(begin), other.begin(), other.end());
      break;
    }
    case 2:  // only its contents
      if (end - begin >= 2) {
        tokens.erase(tokens.begin() + static_cast<Offset>(end - 1));
        tokens.erase(tokens.begin() + static_cast<Offset>(begin));
      }
      break;
    case 3: {  // nested in itself
      const std::size_t depth = 1 + draw(random, 150);
      const std::string open(1, group.front().front());
      const std::string close(1, open == "{" ? '}' : open == "[" ? ']' : ')');
      tokens.insert(tokens.begin() + static_cast<Offset>(end), depth, close);
      tokens.insert(tokens.begin() + static_cast<Offset>(begin), depth, open);
      break;
    }
    default:  // twice
      tokens.insert(tokens.begin() + static_cast<Offset>(end), group.begin(), group.end());
      tokens.insert(tokens.begin() + static_cast<Offset>(end), ", ");
  }
}

void Mutator::change_line(std::vector<std::string>& tokens, Random& random) const {
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == "\n" && i + 1 < tokens.size()) begins.push_back(i + 1);
  }
  const auto line_end = [&](std::size_t line) { return line + 1 < begins.size() ? begins[line + 1] : tokens.size(); };
  const std::size_t line = draw(random, begins.size());
  const auto begin = tokens.begin() + static_cast<Offset>(begins[line]);
  const auto end = tokens.begin() + static_cast<Offset>(line_end(line));
  switch (random.below(5)) {
    case 0:
      tokens.erase(begin, end);
      break;
    case 1: {
      const std::vector<std::string> copy(begin, end);
      const std::size_t at = begins[draw(random, begins.size())];
      tokens.insert(tokens.begin() + static_cast<Offset>(at), copy.begin(), copy.end());
      break;
    }
    case 2: {
      const std::vector<std::string> other = tokens_of(one_of_these(lines_, random));
      tokens.insert(begin, other.begin(), other.end());
      break;
    }
    case 3:
      tokens.insert(begin, std::string(1 + draw(random, 4), ' '));
      break;
    default:  // the rest of the file is missing
      tokens.erase(begin, tokens.end());
  }
}

void Mutator::change(std::vector<std::string>& tokens, Random& random) const {
  if (tokens.empty()) tokens.push_back("x");
  switch (random.below(9)) {
    case 0:
      return change_group(tokens, random);
    case 1:
      return change_line(tokens, random);
    case 2:
      tokens.erase(tokens.begin() + static_cast<Offset>(draw(random, tokens.size())));
      return;
    case 3: {
      const std::size_t at = draw(random, tokens.size() + 1);
      tokens.insert(tokens.begin() + static_cast<Offset>(at), one_of_these(kOddities, random));
      return;
    }
    case 4: {
      std::swap(tokens[draw(random, tokens.size())], tokens[draw(random, tokens.size())]);
      return;
    }
    default:
      break;
  }
  // Replaces words by words and numbers by numbers, which gets furthest into readers.
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!is_space(tokens[i]) && is_word(tokens[i].front())) places.push_back(i);
  }
  if (places.empty()) return;
  std::string& token = tokens[one_of_these(places, random)];
  const bool as_number = is_number(token) ? random.below(8) != 0 : random.below(8) == 0;
  token = as_number ? one_of_these(kNumbers, random) : one_of_these(words_, random);
}

std::string Mutator::mutated(const std::string& text, Random& random) const {
  std::vector<std::string> tokens = tokens_of(text);
  const std::uint64_t changes = random.below(2) == 0 ? 1 : 1 + random.below(4);
  for (std::uint64_t i = 0; i < changes; ++i) change(tokens, random);
  return joined(tokens, 0, tokens.size());
}

}  // namespace shardplan
