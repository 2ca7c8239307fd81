#include "report/plan_file/plan_json.h"

namespace shardplan {

std::string plan_schema() {
  return R"json({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "$id": "shardplan.plan/1",
  "title": "A plan of shardplan",
  "description": "The file plan.json that `shardplan plan --out DIR` writes. Times are in seconds and sizes in bytes, per device. Readers ignore unknown keys.",
  "type": "object",
  "required": ["schema", "version", "model", "cluster", "options", "mesh", "result", "baselines", "operators", "tensors", "program", "memory", "proof"],
  "properties": {
    "schema": {"type": "string", "pattern": "^shardplan\\.plan/1(\\.[0-9]+)?$"},
    "version": {"type": "string", "description": "version of the shardplan that wrote the file"},
    "model": {"type": "object", "required": ["name", "file", "sha256", "text"], "properties": {
      "name": {"type": "string"}, "file": {"type": "string"}, "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
      "text": {"type": "string", "description": "the complete model file, so that the plan can be read without other files"}}},
    "cluster": {"type": "object", "required": ["name", "sha256", "text", "assumed"], "properties": {
      "name": {"type": "string"}, "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "text": {"type": "string"},
      "assumed": {"type": "array", "items": {"type": "string"}, "description": "constants of the cluster that are assumed, not from a datasheet or a measurement"}}},
    "options": {"type": "object", "required": ["level", "search", "seed", "dims", "set"], "properties": {
      "level": {"enum": [0, 1, 2]}, "costs": {"enum": ["cluster", "mindspore"], "description": "the cost model by which the forward strategies were chosen"}, "search": {"type": "string"}, "seed": {"type": "integer", "minimum": 0},
      "layers": {"enum": ["uniform", "free"], "description": "whether all copies of a repeated block have the same strategies"},
      "memory_slack": {"type": "number", "minimum": 0}, "capacity_bytes": {"type": ["integer", "null"], "minimum": 0},
      "memory": {"enum": ["bounded", "unbounded"]}, "overlap": {"type": "boolean", "description": "whether collectives overlap with kernels"},
      "time_limit_seconds": {"type": "number", "minimum": 0, "description": "time limit of the search; another run may find another plan"},
      "pieces": {"type": "array", "items": {"type": "string"}, "description": "with mesh: auto: the pieces of the mesh that strategies combine"},
      "dims": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
      "set": {"type": "object", "additionalProperties": {"type": "string"}}}},
    "mesh": {"type": "object", "required": ["axes", "devices"], "properties": {
      "axes": {"type": "array", "items": {"type": "object", "required": ["name", "size", "levels"], "properties": {
        "name": {"type": "string"}, "size": {"type": "integer", "minimum": 1},
        "levels": {"type": "array", "items": {"type": "string"}, "description": "levels of the cluster that the axis spans"}}}},
      "devices": {"type": "array", "items": {"type": "integer", "minimum": 0}, "description": "the device at each row-major point"}}},
    "workers": {"type": "array", "description": "with place: what each worker does in a step; the mesh is that of one worker", "items": {"type": "object",
      "required": ["worker", "operators", "sends", "receives", "sent_bytes", "seconds", "peak_bytes"], "properties": {
      "worker": {"type": "integer", "minimum": 0}, "operators": {"type": "integer", "minimum": 0},
      "sends": {"type": "integer", "minimum": 0}, "receives": {"type": "integer", "minimum": 0},
      "sent_bytes": {"allOf": [{"$ref": "#/$defs/bytes"}], "description": "per device"},
      "micro_batches_at_once": {"type": "integer", "minimum": 1, "description": "largest number of micro-batches begun and not finished"},
      "seconds": {"type": "object", "required": ["compute", "collectives", "send", "receive", "waits"], "additionalProperties": {"$ref": "#/$defs/time"}},
      "peak_bytes": {"$ref": "#/$defs/bytes"}}}},
    "result": {"type": "object", "required": ["status", "objective", "cost", "bound", "gap", "seconds", "peak_bytes", "usable_bytes"], "properties": {
      "status": {"enum": ["optimal", "feasible", "infeasible", "none_found"]},
      "candidates": {"enum": ["complete", "restricted"]},
      "objective": {"enum": ["ratio", "memory", "speed"]},
      "cost": {"type": "number", "minimum": 0, "description": "ratio: seconds of communication; memory: bytes; speed: seconds of the additive step"},
      "bound": {"type": "number", "minimum": 0, "description": "lower bound, in the unit of cost, over all plans with the layouts that the user, a strategy file or a parallel mode gives and with the pieces into which the search divides the mesh"},
      "gap": {"type": ["number", "null"], "minimum": 0, "description": "(cost - bound) / bound"},
      "tried_shapes": {"type": "array", "description": "with mesh: auto: the plan for each shape; bound is a bound over all of them", "items": {"type": "object", "required": ["pieces", "status"], "properties": {
        "pieces": {"type": "array", "items": {"type": "string"}}, "status": {"enum": ["optimal", "feasible", "infeasible", "none_found"]},
        "seconds": {"type": "number"}, "communication_seconds": {"type": "number"}, "peak_bytes": {"$ref": "#/$defs/bytes"}, "bound": {"type": "number", "minimum": 0}}}},
      "free_bound": {"type": "number", "minimum": 0, "description": "with uniform layers, if computed: a lower bound over plans whose layers may differ, in the unit of cost, at level 2 over all instruction orders; bound only covers uniform plans"},
      "overlapped": {"type": "object", "description": "level 2 with overlap: seconds of the step, a lower bound over all strategies and instruction orders, and (step - bound) / bound", "required": ["step", "bound", "gap"],
        "properties": {"step": {"type": "number", "minimum": 0}, "bound": {"type": "number", "minimum": 0}, "gap": {"type": ["number", "null"], "minimum": 0},
        "one_block_ahead": {"const": true, "description": "the bound only covers orders that recompute at most one block ahead"}}},
      "critical_path": {"type": "array", "description": "with overlap: the critical path of the step by class, longest first; the seconds add up to the step", "items": {"type": "object", "required": ["class", "seconds", "forward", "backward", "update", "slowed"], "properties": {
        "class": {"type": "string", "description": "kernels or collectives, such as matmul, all_gather of weights"}, "seconds": {"$ref": "#/$defs/time"}, "forward": {"$ref": "#/$defs/time"}, "backward": {"$ref": "#/$defs/time"}, "update": {"$ref": "#/$defs/time"},
        "slowed": {"allOf": [{"$ref": "#/$defs/time"}], "description": "how much of the seconds is slowdown by concurrent instructions"}}}},
      "ratio": {"type": ["number", "null"], "description": "computation divided by communication; null if work is repeated or nothing is communicated"},
      "seconds": {"$ref": "#/$defs/seconds"}, "peak_bytes": {"$ref": "#/$defs/bytes"}, "usable_bytes": {"$ref": "#/$defs/bytes"},
      "mindspore": {"type": "object", "description": "with costs mindspore: the value of the forward strategies in MindSpore's model, and its lower bound", "required": ["weighted_bytes", "bound"],
        "properties": {"weighted_bytes": {"type": "number", "minimum": 0}, "bound": {"type": "number", "minimum": 0}}}}},
    "startup": {"type": "object", "description": "parameter_broadcast: broadcasts before the first step", "required": ["seconds", "broadcasts"], "properties": {
      "seconds": {"type": "number"},
      "broadcasts": {"type": "array", "items": {"type": "object", "required": ["collective", "tensor", "axes", "bytes", "seconds"], "properties": {
        "collective": {"const": "broadcast"}, "tensor": {"type": "string"}, "axes": {"type": "array", "items": {"type": "string"}},
        "bytes": {"type": "integer"}, "seconds": {"type": "number"}}}}}},
    "padding": {"type": "object", "description": "dims that the model pads, and the cost per device", "required": ["dims", "peak_bytes", "mask_seconds"], "properties": {
      "dims": {"type": "object", "additionalProperties": {"type": "object", "required": ["size", "padded"], "properties": {
        "size": {"type": "integer", "minimum": 1}, "padded": {"type": "integer", "minimum": 1}}}},
      "peak_bytes": {"$ref": "#/$defs/bytes"}, "mask_seconds": {"type": "number", "minimum": 0}}},
    "baselines": {"type": "array", "items": {"type": "object", "required": ["name", "seconds", "peak_bytes", "fits"], "properties": {
      "name": {"type": "string"}, "seconds": {"$ref": "#/$defs/seconds"}, "peak_bytes": {"$ref": "#/$defs/bytes"}, "fits": {"type": "boolean"}}}},
    "operators": {"type": "array", "description": "operators of the model, in program order", "items": {"type": "object",
      "required": ["name", "op", "attributes", "place", "source", "strategy", "in", "out", "seconds", "flops"], "properties": {
      "name": {"type": "string"}, "op": {"type": "string"}, "attributes": {"type": "object"}, "stage": {"$ref": "#/$defs/stage"},
      "scope": {"type": "string"}, "place": {"type": ["integer", "null"]},
      "source": {"type": "object", "properties": {"line": {"type": "integer"}, "column": {"type": "integer"}}},
      "strategy": {"allOf": [{"$ref": "#/$defs/strategy"}, {"required": ["origin"], "properties": {"origin": {"enum": ["user", "search", "default", "follows"]}}}]},
      "in": {"type": "array", "items": {"$ref": "#/$defs/side"}}, "out": {"type": "array", "items": {"$ref": "#/$defs/side"}},
      "seconds": {"$ref": "#/$defs/time"}, "flops": {"type": "number", "minimum": 0, "description": "of one device in a step, as seconds: all micro-batches"}}}},
    "tensors": {"type": "array", "items": {"type": "object", "required": ["name", "kind", "dtype", "shape", "versions"], "properties": {
      "name": {"type": "string"}, "kind": {"enum": ["input", "parameter", "state", "constant", "result"]},
      "dtype": {"enum": ["f64", "f32", "f16", "bf16", "f8e4m3", "i64", "i32", "i8", "u8", "bool"]},
      "shape": {"$ref": "#/$defs/shape"}, "layout": {"$ref": "#/$defs/layout"},
      "unpadded_shape": {"allOf": [{"$ref": "#/$defs/shape"}], "description": "shape without padding, if the model pads it"},
      "device_matrix": {"type": ["array", "null"], "items": {"type": "integer", "minimum": 1}},
      "tensor_map": {"type": ["array", "null"], "items": {"type": ["integer", "array"]}, "description": "axes counted from the right, -1: not sharded"},
      "local_shape": {"$ref": "#/$defs/shape"}, "bytes": {"$ref": "#/$defs/bytes"},
      "versions": {"type": "array", "items": {"$ref": "#/$defs/layout"}, "description": "the tensor's layouts over its life, produced or stored first"}}}},
    "program": {"type": "array", "description": "instructions of every device, in order", "items": {"type": "object",
      "required": ["id", "kind", "instance", "in", "out", "start", "seconds", "worker"], "properties": {
      "id": {"type": "integer", "minimum": 0}, "kind": {"enum": ["constant", "operator", "phase", "collective", "halo", "send"]},
      "collective": {"enum": ["slice", "all_gather", "all_to_all", "reduce_scatter", "all_reduce", "collective_permute", "to_partial"]},
      "instance": {"type": "string"}, "operator": {"type": ["string", "null"]}, "stage": {"$ref": "#/$defs/stage"},
      "origin": {"type": "object", "properties": {"kind": {"enum": ["forward_op", "redistribution", "mirror", "parallel_optimizer"]},
        "producer": {"type": "string"}, "consumer": {"type": "string"}, "operand": {"type": "integer"}, "because": {"type": "string"}}},
      "in": {"type": "array", "description": "number of the producing instruction; [number, k] for its result k; or the name of an input or stored tensor",
        "items": {"type": ["integer", "array", "string"]}},
      "out": {"type": "array", "items": {"type": "object", "required": ["tensor", "layout"], "properties": {"tensor": {"type": "string"}, "layout": {"$ref": "#/$defs/layout"}}}},
      "strategy": {"allOf": [{"$ref": "#/$defs/strategy"}], "description": "of a phase, whose factors are its own; that of an operator is in operators"},
      "halo": {"type": "array", "description": "of a halo exchange: the widest halo of each dimension", "items": {"type": "object", "required": ["dim", "axes", "before", "after"], "properties": {
        "dim": {"type": "integer", "minimum": 0}, "axes": {"type": "array", "items": {"type": "string"}}, "before": {"type": "integer", "minimum": 0}, "after": {"type": "integer", "minimum": 0}}}},
      "axes": {"type": "array", "items": {"type": "string"}}, "from_dim": {"type": ["integer", "null"]}, "to_dim": {"type": ["integer", "null"]},
      "groups": {"type": "array", "description": "given for up to 64 devices; beyond that see the axes", "items": {"type": "array", "items": {"type": "integer"}}},
      "op": {"type": ["string", "null"], "description": "of a phase its type; of a collective that reduces, the reduction"}, "fusion": {"type": "integer", "minimum": 0},
      "pieces": {"type": "integer", "minimum": 2, "description": "number of pieces in which the collective runs beside its product"},
      "bytes": {"allOf": [{"$ref": "#/$defs/bytes"}], "description": "bytes of the tensor of one group"},
      "local_shape": {"$ref": "#/$defs/shape"}, "start": {"$ref": "#/$defs/time"}, "seconds": {"$ref": "#/$defs/time"},
      "runs": {"type": "integer", "minimum": 2, "description": "runs per step, one for each micro-batch; omitted if 1"},
      "critical": {"allOf": [{"$ref": "#/$defs/time"}], "description": "seconds per step that the critical path runs through it; for a bucket, listed at its first member; omitted if 0"},
      "worker": {"type": "integer", "minimum": 0, "description": "the worker that runs it; of a send, the sender"}, "to_worker": {"type": "integer", "minimum": 0, "description": "the receiver of a send"}}}},
    "memory": {"type": "object", "required": ["peak_bytes", "at", "alive", "profile"], "properties": {
      "peak_bytes": {"$ref": "#/$defs/bytes"},
      "at": {"type": "object", "properties": {"id": {"type": "integer"}, "seconds": {"$ref": "#/$defs/time"}}},
      "alive": {"type": "array", "items": {"type": "object", "properties": {"tensor": {"type": "string"}, "bytes": {"$ref": "#/$defs/bytes"}}}},
      "profile": {"type": "array", "description": "[seconds, bytes] at each instruction", "items": {"type": "array"}}}},
    "proof": {"type": ["object", "null"], "properties": {"result": {"enum": ["equal", "different"]}, "seed": {"type": "integer"},
      "dims": {"type": "object"}, "checks": {"type": "array"}}}
  },
  "$defs": {
    "time": {"type": "number", "minimum": 0},
    "bytes": {"type": "integer", "minimum": 0},
    "stage": {"enum": ["forward", "backward", "update"]},
    "shape": {"type": "array", "items": {"type": "integer", "minimum": 1}},
    "layout": {"type": "string", "description": "Shardy's notation: [{x}, {}] unreduced={y}"},
    "side": {"type": "object", "required": ["tensor", "layout", "local_shape"], "properties": {
      "tensor": {"type": "string"}, "layout": {"$ref": "#/$defs/layout"}, "local_shape": {"$ref": "#/$defs/shape"}}},
    "strategy": {"type": "object", "required": ["factors", "in", "out"], "properties": {
      "factors": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
      "partial": {"type": "object", "required": ["axes", "group", "reduction"], "properties": {"axes": {"type": "array", "items": {"type": "string"}},
        "group": {"type": "integer", "minimum": 0}, "reduction": {"enum": ["sum", "max", "min"]}}},
      "in": {"type": ["array", "null"], "description": "MindSpore's tuples; null where no tuple can express it"}, "out": {"type": ["array", "null"]}}},
    "seconds": {"type": "object", "required": ["step", "compute", "communication", "exposed", "repeated"], "properties": {
      "step": {"$ref": "#/$defs/time"}, "additive": {"allOf": [{"$ref": "#/$defs/time"}], "description": "compute plus communication, without overlap and buckets"}, "compute": {"allOf": [{"$ref": "#/$defs/time"}], "description": "all kernels of a step, each alone at full speed; with several workers, of the busiest one"},
      "communication": {"allOf": [{"$ref": "#/$defs/time"}], "description": "all collectives of a step, each alone and none in a bucket; with several workers, of the busiest one"},
      "exposed": {"allOf": [{"$ref": "#/$defs/time"}], "description": "step minus compute: kernels wait for communication, are slowed down by it, or (with several workers) wait for other workers"}, "repeated": {"$ref": "#/$defs/time"}}}
  }
}
)json";
}

}  // namespace shardplan
