#include "model/model_schema.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "model/blocks/built_in_blocks.h"
#include "model/syntax/model_keys.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

constexpr const char* kNamePattern = "^[A-Za-z_][A-Za-z0-9_]*$";

Json reference(const char* definition) { return {{"$ref", fmt::format("#/definitions/{}", definition)}}; }

Json list_of(Json item) { return {{"type", "array"}, {"items", std::move(item)}}; }

Json one_or_more(const Json& item) { return {{"anyOf", Json::array({item, list_of(item)})}}; }

/// Names to values of one form.
Json map_of(Json value) {
  return {
      {"type", "object"}, {"propertyNames", {{"pattern", kNamePattern}}}, {"additionalProperties", std::move(value)}};
}

/// {openstate: true, allreduce: {mode: index, config: [20, 35]}, allgather: {mode: size, config: 32}}.
Json comm_fusion_schema() {
  const auto mode = [](const char* name, const Json& config) {
    Json one = {{"type", "object"},
                {"properties", {{"mode", {{"const", name}}}, {"config", config}}},
                {"required", Json::array({"mode"})},
                {"additionalProperties", false}};
    if (config.contains("minimum") || config.contains("items")) one["required"].push_back("config");
    return one;
  };
  const Json none = {{"type", "null"}};
  Json kind = {{"anyOf", Json::array({mode("auto", none), mode("best", none),
                                      mode("size", {{"type", "integer"}, {"minimum", 1}})})}};
  Json properties = {{"openstate", {{"type", "boolean"}}}, {"allgather", kind}, {"reducescatter", kind}};
  kind["anyOf"].push_back(mode("index", {{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", 0}}}}));
  properties["allreduce"] = kind;
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

Json value_of(ValueForm form) {
  switch (form) {
    case ValueForm::kText:
      return {{"type", "string"}};
    case ValueForm::kName:
      return {{"type", "string"}};
    case ValueForm::kNames:
      return one_or_more({{"type", "string"}});
    case ValueForm::kInputs:
      return one_or_more({{"type", Json::array({"string", "number"})}});
    case ValueForm::kWhole:
      return {{"type", "integer"}};
    case ValueForm::kNumber:
      return {{"type", Json::array({"number", "string"})}};  // YAML 1.1 takes 6e-4 for a string
    case ValueForm::kFlag:
      return {{"type", "boolean"}};
    case ValueForm::kExpression:
      return reference("expression");
    case ValueForm::kShape:
      return list_of(reference("expression"));
    case ValueForm::kDataType:
      return {{"enum", {"f64", "f32", "f16", "bf16", "f8e4m3", "i64", "i32", "i8", "u8", "bool"}}};
    case ValueForm::kEntry:
      return reference("entry");
    case ValueForm::kEntries:
      return {{"anyOf", Json::array({list_of(reference("entry")), {{"type", "string"}}})}};
    case ValueForm::kPlace:
      return reference("place");
    case ValueForm::kDims:
      return map_of({{"anyOf", Json::array({reference("expression"), reference("dim")})}});
    case ValueForm::kBlockDims:
      return map_of({{"anyOf", Json::array({{{"enum", {"inferred", "given"}}}, reference("expression")})}});
    case ValueForm::kTensors:
      return map_of(reference("tensor"));
    case ValueForm::kConstants:
      return map_of(reference("constant"));
    case ValueForm::kBlocks:
      return map_of(reference("block"));
    case ValueForm::kOperators:
      return map_of(reference("operator"));
    case ValueForm::kTraining:
      return reference("training");
    case ValueForm::kParallel:
      return reference("parallel");
    case ValueForm::kStrategies:
      return {{"type", "object"}, {"additionalProperties", reference("settings")}};
    case ValueForm::kCustomOperators:
      return map_of(reference("custom_operator"));
    case ValueForm::kMesh:
      return {{"anyOf", Json::array({{{"const", "auto"}}, map_of({{"type", "integer"}, {"minimum", 1}})})}};
    case ValueForm::kCommFusion:
      return comm_fusion_schema();
    case ValueForm::kFactors:
      return map_of({{"enum", {"sum", "max", "min", "whole"}}});
  }
  return Json::object();
}

Json property_of(const KeySpec& spec) {
  Json property = value_of(spec.form);
  if (!spec.choices.empty()) {
    property = Json::object();
    Json choices = Json::array();
    for (const std::string& choice : spec.choices) {
      choices.push_back(spec.form == ValueForm::kWhole ? Json(std::stoi(choice)) : Json(choice));
    }
    property["enum"] = std::move(choices);
  }
  if (!spec.meaning.empty()) property["description"] = spec.meaning;
  return property;
}

Json properties_of(const KeySpecs& keys) {
  Json properties = Json::object();
  for (const KeySpec& spec : keys) properties[spec.name] = property_of(spec);
  return properties;
}

/// A map with these keys and no others.
Json closed(const KeySpecs& keys) {
  return {{"type", "object"}, {"properties", properties_of(keys)}, {"additionalProperties", false}};
}

Json attribute(const AttributeSpec& spec) {
  Json property;
  switch (spec.kind) {
    case AttributeKind::kFlag:
      property = {{"type", "boolean"}};
      break;
    case AttributeKind::kInteger:
      property = reference("expression");
      break;
    case AttributeKind::kNumber:
      property = {{"type", Json::array({"number", "string"})}};
      break;
    case AttributeKind::kText:
      property = {{"type", "string"}};
      break;
    case AttributeKind::kList:
      property = one_or_more(reference("expression"));
      break;
  }
  property["description"] =
      spec.default_value ? fmt::format("{}; {}", spec.description, to_string(*spec.default_value)) : spec.description;
  return property;
}

/// "If `key` is `name`, these attributes may (and those without a default must) stand beside it."
Json when(const char* key, const std::string& name, const std::vector<AttributeSpec>& attributes) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const AttributeSpec& spec : attributes) {
    properties[spec.name] = attribute(spec);
    if (!spec.default_value) required.push_back(spec.name);
  }
  Json then = {{"properties", std::move(properties)}};
  if (!required.empty()) then["required"] = std::move(required);
  return {{"if", {{"properties", {{key, {{"const", name}}}}}, {"required", {key}}}}, {"then", std::move(then)}};
}

/// An operator or the use of a block; attributes and given dims make further keys.
Json operator_definition() {
  Json types = Json::array();
  Json blocks = Json::array();
  Json cases = Json::array();
  for (const OperatorType& type : operator_catalogue()) {
    if (type.is_internal) continue;
    types.push_back(type.name);
    if (!type.attributes.empty()) cases.push_back(when("op", type.name, type.attributes));
  }
  for (const BuiltInBlock& block : built_in_blocks()) {
    blocks.push_back(block.name);
    cases.push_back(when("block", block.name, block.options));
  }
  Json properties = properties_of(operator_keys());
  properties.update(properties_of(call_keys()));
  // The names that there are, for completion; own operators and blocks as well.
  properties["op"] = {{"anyOf", Json::array({{{"enum", types}}, {{"type", "string"}}})},
                      {"description", properties["op"]["description"]}};
  properties["block"] = {{"anyOf", Json::array({{{"enum", blocks}}, {{"type", "string"}}})},
                         {"description", properties["block"]["description"]}};
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"oneOf", Json::array({{{"required", {"op"}}}, {{"required", {"block"}}}})},
          {"allOf", std::move(cases)}};
}

Json shape_or(const KeySpecs& keys) { return {{"anyOf", Json::array({value_of(ValueForm::kShape), closed(keys)})}}; }

}  // namespace

std::string model_schema() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "shardplan model, version 1"}};
  schema.update(closed(file_keys()));
  schema["properties"]["shardplan"] = {{"const", 1}, {"description", "format version"}};
  schema["required"] = {"shardplan"};
  Json& definitions = schema["definitions"] = Json::object();
  definitions["expression"] = {{"type", Json::array({"integer", "string"})},
                               {"description", "a number, or an expression of dims: 4*H, H/heads"}};
  definitions["entry"] = {
      {"anyOf",
       Json::array(
           {{{"type", "null"}, {"description", "data parallel"}},
            {{"type", "string"}, {"description", "a layout, or Python's tuple"}},
            list_of({{"anyOf", Json::array({{{"type", "integer"}, {"minimum", 1}},
                                            {{"type", "object"}, {"additionalProperties", {{"type", "null"}}}}})}})})}};
  definitions["dim"] = closed(dim_keys());
  definitions["dim"]["required"] = {"size"};
  definitions["tensor"] = shape_or(parameter_keys());
  definitions["constant"] = {
      {"anyOf", Json::array({{{"type", Json::array({"number", "string"})}}, closed(constant_keys())})}};
  definitions["block"] = closed(block_keys());
  definitions["operator"] = operator_definition();
  definitions["settings"] = closed(settings_keys());
  definitions["place"] = {
      {"anyOf", Json::array({closed(place_keys()), {{"type", "string"}, {"description", "Python's tuple"}}})}};
  definitions["training"] = closed(training_keys());
  definitions["parallel"] = closed(parallel_keys());
  definitions["custom_operator"] = closed(custom_operator_keys());
  return schema.dump(1) + "\n";
}

}  // namespace shardplan
