#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "layouts/tensor_layout.h"
#include "operators/data_type.h"
#include "operators/sharding_rule.h"

namespace shardplan {

struct OperatorType;

using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;
using Attributes = std::map<std::string, Attribute>;

/// As MindSpore prints it: true -> "true", (1, 2) -> "(1, 2)".
std::string to_string(const Attribute& attribute);
/// False for an empty text, the default of attributes that may be left out. Plans and reports leave it out too.
bool is_given(const Attribute& attribute);

struct TensorType {
  SharedShape shape;
  DataType dtype = DataType::kF32;

  Bytes bytes() const;
  bool operator==(const TensorType&) const = default;
};
/// What one device holds of a tensor.
Bytes local_bytes(const TensorType& type, const TensorLayout& layout);

/// An operator with its sizes but without its position in a graph: what 96 equal layers have in common. Created only
/// by `make_operation`, which infers results and rule.
struct Operation {
  const OperatorType* type = nullptr;
  Attributes attributes;  // defaults filled in
  std::vector<TensorType> operands;
  std::vector<TensorType> results;
  ShardingRule rule;

  std::int64_t integer(const std::string& attribute) const;
  double number(const std::string& attribute) const;
  bool flag(const std::string& attribute) const;
  const std::string& text(const std::string& attribute) const;
  const std::vector<std::int64_t>& list(const std::string& attribute) const;

  bool operator==(const Operation&) const = default;
};

}  // namespace shardplan
