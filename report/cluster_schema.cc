#include "report/cluster_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json_text.h"
#include "costmodel/cluster/cluster.h"
#include "costmodel/cluster/cluster_keys.h"
#include "costmodel/cluster/quantity.h"

namespace shardplan {
namespace {

Json text() { return {{"type", "string"}, {"minLength", 1}}; }

/// A decimal number and one of the units, optionally separated by blanks.
Json quantity(Quantity kind) {
  const std::string units = fmt::format("{}", fmt::join(unit_names(kind), "|"));
  return {{"type", "string"}, {"pattern", fmt::format("^[0-9]+(\\.[0-9]+)? *({})$", units)}};
}

Json list_of(Json item) { return {{"type", "array"}, {"minItems", 1}, {"items", std::move(item)}}; }

Json closed(const ClusterKeys& keys);

Json value_of(ClusterValue value) {
  switch (value) {
    case ClusterValue::kVersion:
      return {{"const", 1}};
    case ClusterValue::kText:
      return text();
    case ClusterValue::kName:
      return {{"type", "string"}, {"pattern", "^[A-Za-z0-9_-]+$"}};
    case ClusterValue::kCount:
      return {{"type", "integer"}, {"minimum", 1}, {"maximum", kMostClusterDevices}};
    case ClusterValue::kTime:
      return quantity(Quantity::kTime);
    case ClusterValue::kTimeList:
      return list_of(quantity(Quantity::kTime));
    case ClusterValue::kBytes:
      return quantity(Quantity::kBytes);
    case ClusterValue::kByteList:
      return list_of(quantity(Quantity::kBytes));
    case ClusterValue::kByteRate:
      return quantity(Quantity::kByteRate);
    case ClusterValue::kOperationRate:
      return quantity(Quantity::kOperationRate);
    case ClusterValue::kShare:
      return {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 1}};
    case ClusterValue::kLinkPer:
      return {{"enum", {"device", "group"}}};
    case ClusterValue::kFusion:
      return {{"enum", {"none", "library", "hand-written", "elementwise"}}};
    case ClusterValue::kTf32:
      return {{"enum", {"none", "convolutions", "all"}}};
    case ClusterValue::kAlgorithms:
      return {{"enum", {"level by level", "rings and trees"}}};
    case ClusterValue::kTruth:
      return {{"type", "boolean"}};
    case ClusterValue::kCollective:
      return {{"enum", {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute"}}};
    case ClusterValue::kDevice:
      return closed(cluster_device_keys());
    case ClusterValue::kMemory:
      return closed(cluster_memory_keys());
    case ClusterValue::kFlops: {
      Json json = closed(cluster_flops_keys());
      json["minProperties"] = 1;
      return json;
    }
    case ClusterValue::kEfficiency:
      return closed(cluster_efficiency_keys());
    case ClusterValue::kMatrixUnits:
      return closed(cluster_matrix_units_keys());
    case ClusterValue::kCollectives:
      return closed(cluster_collectives_keys());
    case ClusterValue::kProtocols:
      return {{"type", "array"}, {"items", closed(cluster_protocol_keys())}};
    case ClusterValue::kSpeedsTogether:
      return closed(cluster_together_keys());
    case ClusterValue::kLevels:
      return list_of(closed(cluster_level_keys()));
    case ClusterValue::kRanks:
      return list_of({{"type", "integer"}, {"minimum", 0}, {"maximum", kMostClusterDevices - 1}});
    case ClusterValue::kTables:
      return {{"type", "array"}, {"items", closed(cluster_table_keys())}};
    case ClusterValue::kSources:
      return {{"type", "object"}, {"additionalProperties", text()}};
  }
  return Json::object();
}

/// A map with these keys only.
Json closed(const ClusterKeys& keys) {
  Json properties = Json::object();
  Json needed = Json::array();
  for (const ClusterKey& key : keys) {
    properties[key.name] = value_of(key.value);
    if (!key.meaning.empty()) properties[key.name]["description"] = key.meaning;
    if (key.is_needed) needed.push_back(key.name);
  }
  Json json = {{"type", "object"}};
  if (!needed.empty()) json["required"] = std::move(needed);
  json["properties"] = std::move(properties);
  json["additionalProperties"] = false;
  return json;
}

}  // namespace

std::string cluster_schema() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "shardplan cluster"}};
  schema.update(closed(cluster_file_keys()));
  return schema.dump(2) + "\n";
}

}  // namespace shardplan
