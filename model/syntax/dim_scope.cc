#include "model/syntax/dim_scope.h"

namespace shardplan {

void DimScope::declare(const std::vector<BlockDim>& own) {
  for (const BlockDim& dim : own) own_.emplace(dim.name.text, &dim);
}

bool DimScope::is_inferred(const std::string& name) const {
  const auto own = own_.find(name);
  return own != own_.end() && own->second->kind == BlockDim::Kind::kInferred;
}

std::int64_t DimScope::whole(const Expression& expression) {
  open_.clear();
  return expression.evaluate([&](std::string_view name) { return lookup(name); },
                             [&](std::int64_t written) { return literal(written); });
}

std::int64_t DimScope::count(const Expression& expression) {
  open_.clear();
  return expression.evaluate([&](std::string_view name) { return lookup(name); });
}

std::int64_t DimScope::literal(std::int64_t written) {
  if (written < kLeastLiteral || is_built_in_) return written;
  file_.literals.insert(written);
  const auto other = file_.other_literals.find(written);
  return other == file_.other_literals.end() ? written : other->second;
}

double DimScope::real(const Expression& expression) {
  open_.clear();
  return expression.evaluate_real([&](std::string_view name) { return lookup(name); });
}

std::int64_t DimScope::lookup(std::string_view name_view) {
  const std::string name(name_view);
  if (const auto found = bound_.find(name); found != bound_.end()) return found->second;
  const auto own = own_.find(name);
  if (own == own_.end()) {
    const auto found = file_.dims.find(name);
    if (found != file_.dims.end()) {
      file_.used_dims.insert(name);
      return found->second;
    }
    if (name == "rank" || name == "group_size") {
      throw InputError(
          SourcePlace{},
          "{} is known only where a model is written per device: parallel_mode hybrid_parallel, or stand_alone "
          "with communication operators",
          name);
    }
    std::vector<std::string> known;
    for (const auto& [other, value] : file_.dims) known.push_back(other);
    for (const auto& [other, dim] : own_) known.push_back(other);
    const std::string nearest = nearest_name(name, known);
    throw InputError({}, "no dim '{}' here{}", name,
                     nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
  }
  if (own->second->kind == BlockDim::Kind::kInferred) {
    throw InputError({}, "dim {} cannot be inferred: no input has it as a dimension of its own", name);
  }
  if (!open_.insert(name).second) throw InputError({}, "dim {} depends on itself", name);
  if (open_.size() > 200) throw InputError(SourcePlace{}, "dims that depend on each other more than 200 deep");
  const std::int64_t value = own->second->expression.evaluate([&](std::string_view other) { return lookup(other); },
                                                              [&](std::int64_t written) { return literal(written); });
  open_.erase(name);
  if (value < 1) throw InputError({}, "dim {} is {}; expected at least 1", name, value);
  bound_[name] = value;
  return value;
}

}  // namespace shardplan
