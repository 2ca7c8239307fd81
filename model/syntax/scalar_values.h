#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml.h"
#include "operators/data_type.h"

namespace shardplan {

/// What scalars of a model file mean where the place asks for one kind of value; nothing for what is no such value.
/// Python's spellings are taken as well, since users copy them from their scripts.

/// null or None.
bool is_none(const YamlNode& node);
/// true, false, True or False.
std::optional<bool> flag_value(const YamlNode& node);
/// A decimal number with an optional sign; no expression.
std::optional<std::int64_t> whole_value(const YamlNode& node);
/// One of the words, whatever its case and what stands before a dot: AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL and
/// nn.Momentum are auto_parallel and momentum. Words that are types of numbers have MindSpore's names as well.
std::optional<std::string> choice_value(const YamlNode& node, const std::vector<std::string>& words);

/// A type of numbers as files here call it, or as MindSpore does: f16, float16, mstype.float16, np.float16. Text that is no
/// such type is nothing.
std::optional<DataType> data_type_value(const std::string& text);

/// "sgd, adam or adamw", for messages.
std::string either(const std::vector<std::string>& words);

}  // namespace shardplan
