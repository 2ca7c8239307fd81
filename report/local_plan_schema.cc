#include "report/local_report.h"

namespace shardplan {

std::string local_plan_schema() {
  return R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "$id": "shardplan.local_plan/1",
  "title": "The costs of a model written per device",
  "description": "The file plan.json that `shardplan plan --out DIR` writes for a model whose file is the program of one device. It holds no decisions, since the model's file makes all of them, and is not read back. Times are in seconds and sizes in bytes. Readers ignore unknown keys.",
  "type": "object",
  "required": ["schema", "model", "cluster", "training", "fits", "usable_bytes", "step_seconds", "ranks", "communications"],
  "properties": {
    "schema": {"type": "string", "pattern": "^shardplan\\.local_plan/1(\\.[0-9]+)?$"},
    "model": {"type": "string", "description": "name of the model"},
    "cluster": {"type": "string", "description": "name of the cluster"},
    "training": {"type": "boolean", "description": "whether a step trains the model, or only runs it forward"},
    "fits": {"type": "boolean", "description": "whether no rank needs more than usable_bytes"},
    "usable_bytes": {"type": "integer", "minimum": 0},
    "step_seconds": {"type": "number", "minimum": 0, "description": "the end of the rank that ends last"},
    "ranks": {"type": "array", "description": "by rank", "items": {"type": "object",
      "required": ["computation_seconds", "communication_seconds", "end_seconds", "peak_bytes"], "properties": {
      "computation_seconds": {"type": "number", "minimum": 0, "description": "sum of the kernels' times"},
      "communication_seconds": {"type": "number", "minimum": 0, "description": "sum of the communications' times, also where kernels run at the same time"},
      "end_seconds": {"type": "number", "minimum": 0, "description": "from the step's beginning to this rank's end"},
      "peak_bytes": {"type": "integer", "minimum": 0}}}},
    "communications": {"type": "array", "description": "in the order in which they run, one for each group of ranks", "items": {"type": "object",
      "required": ["name", "type", "ranks", "bytes", "begin_seconds", "seconds"], "properties": {
      "name": {"type": "string", "description": "the operator's name on the first of the ranks"},
      "type": {"type": "string", "description": "the operator's type, such as AllReduce"},
      "ranks": {"type": "array", "items": {"type": "integer", "minimum": 0}, "description": "in the order of the group"},
      "bytes": {"type": "integer", "minimum": 0, "description": "what the first of the ranks contributes"},
      "begin_seconds": {"type": "number", "minimum": 0, "description": "from the step's beginning"},
      "seconds": {"type": "number", "minimum": 0}}}}}
}
)json";
}

}  // namespace shardplan
