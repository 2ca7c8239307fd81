#include "solver/contest_problem.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/random.h"

namespace shardplan {
namespace {

/// Thrown when the deadline is over.
struct OutOfTime {};

void check_time(const Deadline& deadline) {
  if (deadline.is_over()) throw OutOfTime();
}

/// Characters of a file or a text, one piece at a time. A zero character marks the end of each piece, so that the hot
/// loops test one thing only; `refill` tells the end of a piece from the end of the input.
class Characters {
 public:
  Characters(std::string_view text, std::string name, const Deadline& deadline)
      : deadline_(deadline), name_(std::move(name)), rest_(text) {
    load();
  }
  Characters(const std::string& path, const Deadline& deadline)
      : deadline_(deadline), name_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) throw InputError(SourcePlace{path}, "cannot be read: {}", std::strerror(errno));
    load();
  }
  ~Characters() {
    if (file_ >= 0) close(file_);
  }
  Characters(const Characters&) = delete;
  Characters& operator=(const Characters&) = delete;

  /// The next character, or 0 at the end; a zero character in the input is an error.
  char peek() {
    if (*at_ == 0) refill();
    return *at_;
  }
  void advance() { ++at_; }
  void new_line() {
    ++line_;
    line_start_ = offset() + 1;
  }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    const SourcePlace place{name_, line_,
                            static_cast<int>(std::min<std::size_t>(offset() - line_start_, 2147483646) + 1)};
    throw InputError(place, "{}", fmt::format(format, std::forward<Args>(args)...));
  }
  const std::string& name() const { return name_; }
  const Deadline& deadline() const { return deadline_; }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 18;

  std::size_t offset() const { return loaded_ + static_cast<std::size_t>(at_ - buffer_.get()); }

  void refill() {
    if (at_ != end_) fail("zero character");
    if (!finished_) {
      loaded_ += static_cast<std::size_t>(end_ - buffer_.get());
      load();
    }
  }

  void load() {
    check_time(deadline_);
    std::size_t count = 0;
    if (file_ < 0) {
      count = rest_.copy(buffer_.get(), kPiece);
      rest_.remove_prefix(count);
    } else {
      ssize_t got;
      do {
        got = read(file_, buffer_.get(), kPiece);
      } while (got < 0 && errno == EINTR);
      if (got < 0) throw InputError(SourcePlace{name_}, "cannot be read: {}", std::strerror(errno));
      count = static_cast<std::size_t>(got);
    }
    finished_ = count == 0;
    at_ = buffer_.get();
    end_ = at_ + count;
    buffer_[count] = 0;
    if (!finished_ && *at_ == 0) fail("zero character");
  }

  const Deadline& deadline_;
  std::string name_;
  std::string_view rest_;
  int file_ = -1;
  std::unique_ptr<char[]> buffer_ = std::make_unique<char[]>(kPiece + 1);
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::size_t loaded_ = 0;  // characters in the pieces before this one
  bool finished_ = false;
  int line_ = 1;
  std::size_t line_start_ = 0;
};

/// The part of JSON that the contest uses, read as a stream: the caller says what should come next.
class Scanner {
 public:
  explicit Scanner(Characters& characters) : in_(characters) {}

  char peek() {
    for (;;) {
      const char c = in_.peek();
      if (c == '\n') {
        in_.new_line();
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return c;
      }
      in_.advance();
    }
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    in_.advance();
    return true;
  }
  void expect(char wanted, const char* where) {
    if (!take(wanted)) in_.fail("{}; expected '{}' {}", found(), wanted, where);
  }

  std::string string() {
    expect('"', "before a name");
    std::string text;
    for (;;) {
      const char c = in_.peek();
      if (c == 0 || c == '\n') in_.fail("a name that does not end");
      in_.advance();
      if (c == '"') return text;
      if (c == '\\') {
        text += c;
        if (in_.peek() == 0) in_.fail("a name that does not end");
        text += in_.peek();
        in_.advance();
      } else {
        text += c;
      }
      if (text.size() > 4096) in_.fail("a name of more than 4096 characters");
    }
  }

  /// A whole number of at least 0 that fits in 64 bits; "1e18" and "4.0" are whole numbers.
  std::int64_t number() {
    const char first = peek();
    if (first == '-') in_.fail("a negative number; expected at least 0");
    if (first < '0' || first > '9') in_.fail("{}; expected a number", found());
    std::uint64_t value = 0;
    for (;;) {
      const char c = in_.peek();
      const unsigned digit = static_cast<unsigned char>(c) - unsigned{'0'};
      if (digit > 9) {
        if (c == '.' || c == 'e' || c == 'E') return decimal(value);
        return static_cast<std::int64_t>(value);
      }
      if (value > kLargest / 10 || (value == kLargest / 10 && digit > kLargest % 10)) too_large();
      value = value * 10 + digit;
      in_.advance();
    }
  }

  template <class Function>
  void list(Function each) {
    expect('[', "before a list");
    if (take(']')) return;
    do {
      each();
    } while (take(','));
    expect(']', "after a list");
  }

  template <class Function>
  void object(Function each) {
    expect('{', "before an object");
    if (take('}')) return;
    do {
      const std::string key = string();
      expect(':', "after a name");
      each(key);
    } while (take(','));
    expect('}', "after an object");
  }

  /// Reads a list of numbers into `numbers`, which is cleared first.
  void numbers(std::vector<std::int64_t>& numbers) {
    numbers.clear();
    list([&] { numbers.push_back(number()); });
  }

  void skip_value(int depth = 0) {
    if (depth > 64) in_.fail("values nested more than 64 deep");
    const char c = peek();
    if (c == '{') {
      object([&](const std::string&) { skip_value(depth + 1); });
    } else if (c == '[') {
      list([&] { skip_value(depth + 1); });
    } else if (c == '"') {
      string();
    } else {
      std::size_t length = 0;
      for (char d = c; d == '-' || d == '+' || d == '.' || (d >= '0' && d <= '9') || (d >= 'a' && d <= 'z') || d == 'E';
           d = in_.peek()) {
        in_.advance();
        if (++length > 64) break;
      }
      if (length == 0 || length > 64) in_.fail("{}; expected a value", found());
    }
  }

  std::string found() {
    const char c = in_.peek();
    if (c == 0) return "the file ends";
    if (c < 32 || c > 126) return fmt::format("character 0x{:02x}", static_cast<unsigned char>(c));
    return fmt::format("'{}'", c);
  }
  Characters& characters() { return in_; }

 private:
  static constexpr std::uint64_t kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

  [[noreturn]] void too_large() { in_.fail("a number that does not fit in 64 bits"); }

  /// The rest of a number with a fraction or an exponent, exactly: digits are moved, never rounded.
  std::int64_t decimal(std::uint64_t digits) {
    int exponent = 0;
    const auto append = [&](unsigned digit) {
      if (digits > (kLargest - digit) / 10) too_large();
      digits = digits * 10 + digit;
    };
    if (in_.peek() == '.') {
      in_.advance();
      int zeros = 0;  // not appended before a digit other than zero follows
      bool any = false;
      for (char c = in_.peek(); c >= '0' && c <= '9'; in_.advance(), c = in_.peek()) {
        any = true;
        if (c == '0') {
          if (++zeros > 4096) in_.fail("a number of more than 4096 digits");
          continue;
        }
        for (; zeros > 0; --zeros, --exponent) append(0);
        append(static_cast<unsigned>(c - '0'));
        --exponent;
      }
      if (!any) in_.fail("{}; expected digits after '.'", found());
    }
    if (in_.peek() == 'e' || in_.peek() == 'E') {
      in_.advance();
      const bool is_negative = in_.peek() == '-';
      if (is_negative || in_.peek() == '+') in_.advance();
      int shift = 0;
      bool any = false;
      for (char c = in_.peek(); c >= '0' && c <= '9'; in_.advance(), c = in_.peek()) {
        any = true;
        shift = std::min(shift * 10 + (c - '0'), 100000);
      }
      if (!any) in_.fail("{}; expected digits after 'e'", found());
      exponent += is_negative ? -shift : shift;
    }
    if (digits == 0) return 0;
    for (; exponent > 0; --exponent) append(0);
    for (; exponent < 0; ++exponent) {
      if (digits % 10 != 0) in_.fail("a number with a fraction; expected a whole number");
      digits /= 10;
    }
    return static_cast<std::int64_t>(digits);
  }

  Characters& in_;
};

/// Lists of numbers, equal ones held once and in one piece of memory.
class NumberLists {
 public:
  std::uint32_t intern(const std::vector<std::int64_t>& numbers) {
    std::uint64_t hash = numbers.size();
    for (const std::int64_t number : numbers) hash = mix(hash ^ static_cast<std::uint64_t>(number));
    for (auto [at, end] = places_.equal_range(hash); at != end; ++at) {
      if (lists_[at->second] == numbers) return at->second;
    }
    lists_.push_back(numbers);
    places_.emplace(hash, static_cast<std::uint32_t>(lists_.size() - 1));
    return static_cast<std::uint32_t>(lists_.size() - 1);
  }
  std::vector<std::int64_t>& operator[](std::uint32_t id) { return lists_[id]; }
  std::size_t size() const { return lists_.size(); }

 private:
  std::vector<std::vector<std::int64_t>> lists_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> places_;  // looked up, never walked
};

/// The file as it stands, before its parts are compared with each other.
struct ContestFile {
  std::string name;
  std::vector<std::array<std::int64_t, 2>> intervals, edge_nodes;
  std::vector<std::uint32_t> node_costs, node_usages, edge_costs;
  NumberLists node_lists, edge_lists;
  std::int64_t usage_limit = 0;
};

class ContestReader {
 public:
  explicit ContestReader(Characters& characters) : scan_(characters) {}

  StrategyProblem read() {
    bool has_problem = false;
    scan_.object([&](const std::string& key) {
      if (key != "problem") return scan_.skip_value();
      once(has_problem, key);
      read_problem();
    });
    if (scan_.peek() != 0) fail("{} after the end of the problem", scan_.found());
    if (!has_problem) fail("no \"problem\"");
    return build();
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    scan_.characters().fail(format, std::forward<Args>(args)...);
  }
  template <class... Args>
  [[noreturn]] void fail_file(fmt::format_string<Args...> format, Args&&... args) {
    throw InputError(SourcePlace{scan_.characters().name()}, "{}", fmt::format(format, std::forward<Args>(args)...));
  }
  void once(bool& is_set, const std::string& key) {
    if (is_set) fail("a second \"{}\"", key);
    is_set = true;
  }

  void read_problem() {
    std::map<std::string, bool> seen;
    scan_.object([&](const std::string& key) {
      if (key == "name" || key == "nodes" || key == "edges" || key == "usage_limit") once(seen[key], key);
      if (key == "name") {
        file_.name = scan_.string();
      } else if (key == "nodes") {
        scan_.object([&](const std::string& part) {
          if (part == "intervals" || part == "costs" || part == "usages") once(seen["nodes." + part], part);
          if (part == "intervals")
            read_pairs(file_.intervals, "an interval");
          else if (part == "costs")
            read_lists(file_.node_lists, file_.node_costs);
          else if (part == "usages")
            read_lists(file_.node_lists, file_.node_usages);
          else
            scan_.skip_value();
        });
      } else if (key == "edges") {
        scan_.object([&](const std::string& part) {
          if (part == "nodes" || part == "costs") once(seen["edges." + part], part);
          if (part == "nodes")
            read_pairs(file_.edge_nodes, "an edge's nodes");
          else if (part == "costs")
            read_lists(file_.edge_lists, file_.edge_costs);
          else
            scan_.skip_value();
        });
      } else if (key == "usage_limit") {
        file_.usage_limit = scan_.number();
      } else {
        scan_.skip_value();
      }
    });
    for (const char* key : {"nodes", "nodes.intervals", "nodes.costs", "nodes.usages", "edges", "edges.nodes",
                            "edges.costs", "usage_limit"}) {
      if (!seen[key]) fail("the problem has no \"{}\"", key);
    }
  }

  void read_pairs(std::vector<std::array<std::int64_t, 2>>& pairs, const char* what) {
    scan_.list([&] {
      scan_.numbers(numbers_);
      if (numbers_.size() != 2) fail("{} has {} numbers; expected 2", what, numbers_.size());
      pairs.push_back({numbers_[0], numbers_[1]});
      check_count(pairs.size());
    });
  }
  void read_lists(NumberLists& pool, std::vector<std::uint32_t>& lists) {
    scan_.list([&] {
      scan_.numbers(numbers_);
      lists.push_back(pool.intern(numbers_));
      check_count(lists.size());
    });
  }
  void check_count(std::size_t count) {
    if (count > 0x7fffffff) fail("more than 2^31 items");
  }

  StrategyProblem build() {
    StrategyProblem problem;
    problem.name = file_.name;
    build_nodes(problem);
    build_edges(problem);
    return problem;
  }

  void build_nodes(StrategyProblem& problem) {
    const std::size_t count = file_.intervals.size();
    if (file_.node_costs.size() != count || file_.node_usages.size() != count) {
      fail_file("{} intervals, {} lists of costs and {} of usages; expected one of each per node", count,
                file_.node_costs.size(), file_.node_usages.size());
    }
    std::vector<std::int64_t> times;
    for (const auto& [begin, end] : file_.intervals) {
      if (begin < end) times.insert(times.end(), {begin, end});
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    const auto renumber = [&](std::int64_t time) {
      return static_cast<std::uint32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
    };
    problem.memory_limits.assign(times.empty() ? 0 : times.size() - 1, file_.usage_limit);

    std::vector<std::optional<StrategyTableId>> cost_table(file_.node_lists.size());
    std::vector<std::optional<UsageTableId>> usage_table(file_.node_lists.size());
    problem.nodes.reserve(count);
    for (std::size_t node = 0; node < count; ++node) {
      check_time(scan_.characters().deadline());
      const std::uint32_t costs = file_.node_costs[node];
      const std::uint32_t usages = file_.node_usages[node];
      const std::vector<std::int64_t>& cost_list = file_.node_lists[costs];
      if (cost_list.empty()) fail_file("node {} has no strategies", node);
      if (file_.node_lists[usages].size() != cost_list.size()) {
        fail_file("node {} has {} costs and {} usages", node, cost_list.size(), file_.node_lists[usages].size());
      }
      if (!cost_table[costs]) {
        StrategyTable table;
        for (const std::int64_t cost : cost_list)
          table.costs.push_back(cost >= kForbidden ? Cost{0, kForbidden} : Cost{cost, 0});
        cost_table[costs] = problem.strategy_tables.push_back(std::move(table));
      }
      ProblemNode item{*cost_table[costs], {}};
      const auto [begin, end] = file_.intervals[node];
      if (begin < end) {
        if (!usage_table[usages]) usage_table[usages] = problem.usage_tables.push_back({file_.node_lists[usages]});
        item.memory.push_back({*usage_table[usages], renumber(begin), renumber(end)});
      }
      problem.nodes.push_back(std::move(item));
    }
  }

  void build_edges(StrategyProblem& problem) {
    if (file_.edge_nodes.size() != file_.edge_costs.size()) {
      fail_file("{} edges and {} lists of edge costs; expected as many", file_.edge_nodes.size(),
                file_.edge_costs.size());
    }
    // One list of numbers may be the matrix of several shapes; the first shape takes it, others copy.
    std::vector<std::vector<MatrixId>> matrices(file_.edge_lists.size());
    problem.edges.reserve(file_.edge_nodes.size());
    for (std::size_t edge = 0; edge < file_.edge_nodes.size(); ++edge) {
      check_time(scan_.characters().deadline());
      const auto [from, to] = file_.edge_nodes[edge];
      for (const std::int64_t end : {from, to}) {
        if (end >= static_cast<std::int64_t>(problem.nodes.size())) {
          fail_file("edge {} names node {}; there are {}", edge, end, problem.nodes.size());
        }
      }
      const NodeId from_node(static_cast<std::size_t>(from));
      const NodeId to_node(static_cast<std::size_t>(to));
      const std::uint32_t list = file_.edge_costs[edge];
      const std::size_t rows = problem.num_strategies(from_node);
      const std::size_t columns = problem.num_strategies(to_node);
      const std::vector<MatrixId>& known = matrices[list];
      const std::size_t entries =
          known.empty() ? file_.edge_lists[list].size() : problem.matrices[known[0]].costs.size();
      if (entries != rows * columns) {
        fail_file("edge {} has {} costs; expected {} x {}, one for each pair of strategies", edge, entries, rows,
                  columns);
      }
      const auto same = std::find_if(known.begin(), known.end(), [&](MatrixId id) {
        return problem.matrices[id].rows == rows && problem.matrices[id].columns == columns;
      });
      MatrixId matrix;
      if (same != known.end()) {
        matrix = *same;
      } else {
        CostMatrix item{static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(columns), {}};
        item.costs = known.empty() ? std::move(file_.edge_lists[list]) : problem.matrices[known[0]].costs;
        for (std::int64_t& cost : item.costs) cost = std::min(cost, kForbidden);
        matrix = problem.matrices.push_back(std::move(item));
        matrices[list].push_back(matrix);
      }
      problem.edges.push_back({from_node, to_node, matrix});
    }
  }

  Scanner scan_;
  ContestFile file_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace

StrategyProblem read_contest_problem(const std::string& path) { return *read_contest_problem(path, Deadline(0, {})); }

std::optional<StrategyProblem> read_contest_problem(const std::string& path, const Deadline& deadline) {
  try {
    Characters characters(path, deadline);
    return ContestReader(characters).read();
  } catch (const OutOfTime&) {
    return std::nullopt;
  }
}

StrategyProblem parse_contest_problem(const std::string& text, const std::string& name) {
  return *parse_contest_problem(text, name, Deadline(0, {}));
}

std::optional<StrategyProblem> parse_contest_problem(const std::string& text, const std::string& name,
                                                     const Deadline& deadline) {
  try {
    Characters characters(text, name, deadline);
    return ContestReader(characters).read();
  } catch (const OutOfTime&) {
    return std::nullopt;
  }
}

}  // namespace shardplan
