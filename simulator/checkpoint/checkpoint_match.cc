#include "simulator/checkpoint/checkpoint_match.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace shardplan {
namespace {

constexpr std::size_t kMostNamed = 3;

/// "a, b, c and 4 more".
std::string some_names(const std::vector<std::string>& names) {
  const auto shown = std::min(names.size(), kMostNamed);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

std::optional<std::size_t> CheckpointMatch::find(const GraphTensor& tensor) {
  const std::optional<std::size_t> found = checkpoint_.find(tensor.name);
  if (found) {
    taken_.insert(tensor.name);
  } else if (tensor.kind != TensorKind::kState) {
    if (std::find(missing_.begin(), missing_.end(), tensor.name) == missing_.end()) missing_.push_back(tensor.name);
  } else if (std::find(fresh_.begin(), fresh_.end(), tensor.name) == fresh_.end()) {
    fresh_.push_back(tensor.name);
    has_fresh_copies_ = has_fresh_copies_ || tensor.is_master_copy;
  }
  return found;
}

void CheckpointMatch::add_other_shape(const std::string& name, const Shape& stored, const Shape& expected,
                                      const std::string& remark, const std::string& hint) {
  add_fault({{checkpoint_.path(), 0, 0},
             fmt::format("tensor '{}' has the shape {}, in the model it has {}{}", name, to_string(stored),
                         to_string(expected), remark),
             hint});
}

void CheckpointMatch::add_other_padding(const std::string& name, const Shape& shape, const Shape& stored,
                                        const Shape& expected) {
  const auto words = [](const Shape& unpadded) {
    return unpadded.empty() ? std::string("without padding") : fmt::format("of which {} exist", to_string(unpadded));
  };
  add_fault({{checkpoint_.path(), 0, 0},
             fmt::format("tensor '{}' has the shape {} {}, in the model {}", name, to_string(shape), words(stored),
                         words(expected)),
             "give the dims of the model the same `size` and `pad`"});
}

void CheckpointMatch::add_fault(Diagnostic fault) {
  const auto is_it = [&](const Diagnostic& known) { return known.message == fault.message; };
  if (std::none_of(faults_.begin(), faults_.end(), is_it)) faults_.push_back(std::move(fault));
}

std::vector<std::string> CheckpointMatch::notices() const {
  std::vector<Diagnostic> faults = faults_;
  if (!missing_.empty()) {
    faults.push_back(
        {{checkpoint_.path(), 0, 0},
         fmt::format("has no tensor{} {}, which the model has", missing_.size() == 1 ? "" : "s", some_names(missing_)),
         {}});
  }
  if (!faults.empty()) throw InputError(std::move(faults));
  std::vector<std::string> notices;
  if (!fresh_.empty()) {
    notices.push_back(fmt::format("optimizer states that the checkpoint does not hold: {}{}", some_names(fresh_),
                                  has_fresh_copies_ ? "; master copies start as the loaded weights" : ""));
  }
  std::vector<std::string> extra;
  for (const CheckpointTensor& stored : checkpoint_.form().tensors) {
    if (!taken_.contains(stored.name)) extra.push_back(stored.name);
  }
  if (!extra.empty()) {
    notices.push_back(fmt::format("tensors of the checkpoint that the model does not have: {}", some_names(extra)));
  }
  return notices;
}

void start_master_copies(const OperatorGraph& graph, std::map<TensorId, TensorValues>& loaded) {
  for (const TensorId id : graph.tensors().ids()) {
    const GraphTensor& tensor = graph.tensor(id);
    if (!tensor.is_master_copy || loaded.contains(id)) continue;
    const auto parameter = loaded.find(*tensor.state_of);
    if (parameter != loaded.end()) loaded[id] = parameter->second;
  }
}

}  // namespace shardplan
