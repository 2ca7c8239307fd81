#pragma once

#include <string>

#include "base/yaml.h"
#include "model/syntax/dim_scope.h"
#include "operators/operator_type.h"

namespace shardplan {

/// The value of an attribute as its kind requires it: numbers may be expressions of dims. Throws InputError with its
/// place; `where` names the attribute: "qkv: out_channels".
Attribute read_attribute(const YamlDocument& document, const YamlNode& node, AttributeKind kind, DimScope& dims,
                         const std::string& where);

}  // namespace shardplan
