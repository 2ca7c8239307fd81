#include "model/file_dims.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace shardplan {
namespace {

/// The file's dims, in whatever order they stand; those that cannot be computed become 1 and a fault.
class DimEvaluator {
 public:
  DimEvaluator(const std::vector<BlockDim>& dims, const std::map<std::string, std::int64_t>& overrides,
               std::vector<Diagnostic>& faults, const std::map<std::string, std::int64_t>& known)
      : overrides_(overrides), faults_(faults), values_(known) {
    for (const BlockDim& dim : dims) {
      dims_.emplace(dim.name.text, &dim);
      if (known.contains(dim.name.text)) {
        faults.push_back({dim.name.place,
                          fmt::format("dims: {} has a value already: a model written per device is read for each rank",
                                      dim.name.text),
                          "choose another name"});
      }
    }
    for (const auto& [name, value] : overrides) {
      if (!dims_.contains(name)) {
        const std::string nearest = nearest_name(name, names());
        faults.push_back(
            {{"--dim", 0, 0},
             fmt::format("no dim '{}'{}", name, nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)),
             dims_.empty() ? "the model has no dims" : fmt::format("the model's dims: {}", fmt::join(names(), ", "))});
      } else if (value < 1) {
        faults.push_back({{"--dim", 0, 0}, fmt::format("{} is {}; expected at least 1", name, value), ""});
      }
    }
  }

  FileDims evaluate() {
    for (const auto& [name, dim] : dims_) value_of(name, *dim);
    return {std::move(values_), broken_.empty()};
  }

 private:
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, dim] : dims_) names.push_back(name);
    return names;
  }

  std::int64_t value_of(const std::string& name, const BlockDim& dim) {
    if (const auto known = values_.find(name); known != values_.end()) return known->second;
    if (const auto given = overrides_.find(name); given != overrides_.end()) {
      return values_[name] = std::max<std::int64_t>(given->second, 1);
    }
    if (!open_.insert(name).second) {
      fault(dim, "depends on itself");
      return values_[name] = 1;
    }
    std::int64_t value = 1;
    try {
      value = dim.expression.evaluate([&](std::string_view other) {
        const auto found = dims_.find(std::string(other));
        if (const auto at = values_.find(std::string(other)); at != values_.end() && found == dims_.end()) {
          return at->second;
        }
        if (found != dims_.end()) {
          if (open_.size() > 200) throw InputError(SourcePlace{}, "dims that depend on each other more than 200 deep");
          const std::int64_t inner = value_of(found->first, *found->second);
          if (broken_.contains(found->first)) broken_.insert(name);  // reported there
          return inner;
        }
        const std::string nearest = nearest_name(std::string(other), names());
        throw InputError({}, "no dim '{}' here{}", other,
                         nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
      });
      if (value < 1) {
        fault(dim, fmt::format("is {}; expected at least 1", value));
        value = 1;
      }
    } catch (const InputError& error) {
      fault(dim, error.diagnostics()[0].message);
    }
    open_.erase(name);
    return values_[name] = value;
  }

  void fault(const BlockDim& dim, const std::string& what) {
    if (!broken_.insert(dim.name.text).second) return;
    const bool is_sentence = what.starts_with("is ") || what.starts_with("depends");
    faults_.push_back({dim.name.place, fmt::format("dims: {}{} {}", dim.name.text, is_sentence ? "" : ":", what), ""});
  }

  const std::map<std::string, std::int64_t>& overrides_;
  std::vector<Diagnostic>& faults_;
  std::map<std::string, const BlockDim*> dims_;
  std::map<std::string, std::int64_t> values_;
  std::set<std::string> open_;    // being computed
  std::set<std::string> broken_;  // without a value, themselves or by what they depend on
};

/// Dims that were evaluated without padding: they refer to each other in no circle.
class PaddedDimEvaluator {
 public:
  PaddedDimEvaluator(const std::vector<BlockDim>& dims, const std::map<std::string, std::int64_t>& real,
                     const std::map<std::string, std::int64_t>& given,
                     const std::map<std::string, std::int64_t>& padded)
      : real_(real), given_(given), padded_(padded) {
    for (const BlockDim& dim : dims) dims_.emplace(dim.name.text, &dim);
  }

  std::map<std::string, std::int64_t> evaluate() {
    for (const auto& [name, dim] : dims_) value_of(name, *dim);
    return std::move(values_);
  }

 private:
  std::int64_t value_of(const std::string& name, const BlockDim& dim) {
    if (const auto known = values_.find(name); known != values_.end()) return known->second;
    std::int64_t value = real_.at(name);
    if (!given_.contains(name)) value = std::max(value, expression_of(dim).value_or(value));
    if (const auto own = padded_.find(name); own != padded_.end()) {
      value = std::max(value, own->second);
    } else if (dim.pad && value % *dim.pad != 0 && value <= INT64_MAX - *dim.pad) {
      value += *dim.pad - value % *dim.pad;
    }
    return values_[name] = value;
  }

  std::optional<std::int64_t> expression_of(const BlockDim& dim) {
    try {
      return dim.expression.evaluate([&](std::string_view other) {
        const auto found = dims_.find(std::string(other));
        return found == dims_.end() ? real_.at(std::string(other)) : value_of(found->first, *found->second);
      });
    } catch (const InputError&) {
      return std::nullopt;  // no whole number
    }
  }

  std::map<std::string, const BlockDim*> dims_;
  const std::map<std::string, std::int64_t>& real_;
  const std::map<std::string, std::int64_t>& given_;
  const std::map<std::string, std::int64_t>& padded_;
  std::map<std::string, std::int64_t> values_;
};

}  // namespace

std::map<std::string, std::int64_t> padded_file_dims(const std::vector<BlockDim>& dims,
                                                     const std::map<std::string, std::int64_t>& real,
                                                     const std::map<std::string, std::int64_t>& given,
                                                     const std::map<std::string, std::int64_t>& padded) {
  return PaddedDimEvaluator(dims, real, given, padded).evaluate();
}

FileDims evaluate_file_dims(const std::vector<BlockDim>& dims, const std::map<std::string, std::int64_t>& overrides,
                            std::vector<Diagnostic>& faults, const std::map<std::string, std::int64_t>& known) {
  return DimEvaluator(dims, overrides, faults, known).evaluate();
}

void add_dims_behind(const std::vector<BlockDim>& dims, std::set<std::string>& used) {
  std::vector<std::string> open(used.begin(), used.end());
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    for (const BlockDim& dim : dims) {
      if (dim.name.text != name) continue;
      for (const std::string& other : dim.expression.names()) {
        if (used.insert(other).second) open.push_back(other);
      }
    }
  }
}

}  // namespace shardplan
