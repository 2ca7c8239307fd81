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

template <class Table>
Json words_of(const Table& table) {
  Json words = Json::array();
  for (const auto& [word, value] : table) words.push_back(word);
  return {{"enum", std::move(words)}};
}

/// What a file says: all, or only what differs from its base.
enum class Extent { kWhole, kDifference };

Json closed(const ClusterKeys& keys, Extent extent = Extent::kWhole);

Json value_of(ClusterValue value, Extent extent) {
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
    case ClusterValue::kTopology:
      return words_of(kTopologyWords);
    case ClusterValue::kFusion:
      return words_of(kFusionWords);
    case ClusterValue::kTf32:
      return words_of(kTf32Words);
    case ClusterValue::kAlgorithms:
      return {{"enum", {"level by level", "rings and trees"}}};
    case ClusterValue::kTruth:
      return {{"type", "boolean"}};
    case ClusterValue::kCollective:
      return words_of(kCollectiveWords);
    case ClusterValue::kDevice:
      return closed(cluster_device_keys(), extent);
    case ClusterValue::kMemory:
      return closed(cluster_memory_keys(), extent);
    case ClusterValue::kFlops: {
      Json json = closed(cluster_flops_keys());
      json["minProperties"] = 1;
      return json;
    }
    case ClusterValue::kEfficiency:
      return closed(cluster_efficiency_keys());
    case ClusterValue::kMatrixUnits:
      return closed(cluster_matrix_units_keys(), extent);
    case ClusterValue::kCollectives:
      return closed(cluster_collectives_keys());
    case ClusterValue::kProtocols:
      return {{"type", "array"}, {"items", closed(cluster_protocol_keys())}};
    case ClusterValue::kSpeedsTogether:
      return closed(cluster_together_keys());
    case ClusterValue::kLevels:
      return list_of(closed(cluster_level_keys(), extent));
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
Json closed(const ClusterKeys& keys, Extent extent) {
  Json properties = Json::object();
  Json needed = Json::array();
  for (const ClusterKey& key : keys) {
    properties[key.name] = value_of(key.value, extent);
    if (!key.meaning.empty()) properties[key.name]["description"] = key.meaning;
    // A difference names what it is about.
    const bool is_name =
        key.value == ClusterValue::kVersion || key.value == ClusterValue::kName || key.name == "cluster";
    if (key.is_needed && (extent == Extent::kWhole || is_name)) needed.push_back(key.name);
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
  schema["if"] = {{"required", {"base"}}};
  schema["then"] = closed(cluster_file_keys(), Extent::kDifference);
  schema["else"] = closed(cluster_file_keys());
  return schema.dump(2) + "\n";
}

}  // namespace shardplan
