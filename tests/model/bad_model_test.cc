#include <gtest/gtest.h>

#include "model/read_model.h"

namespace shardplan {
namespace {

/// A file, all its errors as they are printed, and what was not checked because of them.
struct BadModel {
  const char* name;
  const char* text;
  const char* faults;
  const char* note;
};

const BadModel kBadModels[] = {
    {"a_name_of_two_lines", "shardplan: 1\nmodel: \"a\\nb\"\ninputs: {x: [8]}\noperators: {y: {op: ReLU, in: x}}\n",
     "m.yaml:2:8: error: model: a name is one line without control characters", ""},
    {"blocks_that_nothing_uses", "shardplan: 1\nblocks: {b: {inputs: {x: [4]}, operators: {y: {op: ReLU, in: x}}}}\n",
     R"(m.yaml:1:1: error: the file has blocks and no operators that use them
    as in: operators: {y: {block: b, in: x}})",
     ""},
    {"no_operators", "shardplan: 1\ninputs: {x: [8]}\n",
     R"(m.yaml:1:1: error: the file has no operators
    as in: operators: {y: {op: ReLU, in: x}})",
     ""},
    {"no_model_at_all", "shardplan: 1\nmodel: abc\noperators: {}\n",
     R"(m.yaml:1:1: error: the file has no operators
    as in: operators: {y: {op: ReLU, in: x}})",
     ""},
    {"lines_behind_a_fault",
     R"(shardplan: 1
inputs: {x: [8, 8]}
operators:
  up: {block: nn.Dense, in: x, out_chanels: 8}
  ac: {op: Gelu, in: up}
  dn: {block: nn.Dens, in: ac, out_channels: 8}
  s:  {op: Softmax, in: dn, axes: 1}
)",
     R"(m.yaml:4:32: error: up: unknown key 'out_chanels'; did you mean 'out_channels'?
    attributes of nn.Dense: in_channels, out_channels, has_bias
m.yaml:5:12: error: ac: no operator 'Gelu'; did you mean 'GeLU'?
m.yaml:6:15: error: dn: no block 'nn.Dens'; did you mean 'nn.Dense'?
m.yaml:7:29: error: s: unknown key 'axes'; did you mean 'axis'?
    attributes of Softmax: axis)",
     "shapes behind up were not checked"},
    {"no_inputs_are_one_fault",
     R"(shardplan: 1
inputs: {x: [8, 8]}
operators:
  up: {block: nn.Dense, in: x, out_channels: 8}
  dn: {block: nn.Dense, in: [], out_channels: 8}
outputs: [dn]
)",
     "m.yaml:5:15: error: dn: nn.Dense takes 1 input, found 0", ""},
    {"negative_epsilon",
     R"(shardplan: 1
inputs: {x: [8, 8]}
operators: {y: {block: nn.LayerNorm, in: x, epsilon: -1}}
)",
     R"(m.yaml:3:42: error: y.layer_norm: attribute epsilon of LayerNorm is -1; expected at least 0
    x is f32 [8, 8], gamma is f32 [8], beta is f32 [8])",
     ""},
    {"unknown_dims_and_sizes",
     R"(shardplan: 1
dims: {B: 8, D: 16}
inputs: {x: [B, D], y: [B, Dim]}
operators:
  a: {op: ReLU, in: x, shape: [B, H]}
  b: {op: ReLU, in: y}
  c: {op: Add, in: [a, b]}
)",
     R"(m.yaml:3:28: error: y: no dim 'Dim' here
m.yaml:5:35: error: a: shape: no dim 'H' here)",
     "shapes behind a were not checked"},
    {"dims",
     R"(shardplan: 1
dims: {B: 8, D: 10, E: D/4, F: G*2, G: F/2, Z: D-10, width: Y+1, Y: widht, I: 010, J: 9999999999*9999999999}
inputs: {x: [B, E]}
operators: {a: {op: ReLU, in: x}}
)",
     R"(m.yaml:2:21: error: dims: E: D/4 is not whole: 10 / 4
m.yaml:2:29: error: dims: F depends on itself
m.yaml:2:45: error: dims: Z is 0; expected at least 1
m.yaml:2:66: error: dims: Y: no dim 'widht' here; did you mean 'width'?
m.yaml:2:79: error: dims: I: '010' is not an expression: 010 begins with 0; numbers are decimal
m.yaml:2:84: error: dims: J: 9999999999*9999999999 is beyond 64 bits)",
     "shapes were not checked"},
    {"cycle",
     R"(shardplan: 1
dims: {B: 8}
inputs: {x: [B]}
operators:
  a: {op: Add, in: [x, c]}
  b: {op: ReLU, in: a}
  c: {op: ReLU, in: b}
  d: {op: ReLU, in: c}
)",
     R"(m.yaml:5:3: error: a waits for its own result: a <- c <- b <- a)", ""},
    {"cycle_by_parameter",
     R"(shardplan: 1
dims: {V: 100, H: 8}
inputs: {tokens: {shape: [4], dtype: i32}}
operators:
  embed: {op: Gather, in: [head.weight, tokens]}
  head:  {block: nn.Dense, in: embed, out_channels: V}
)",
     R"(m.yaml:5:3: error: embed waits for its own result: embed <- head <- embed
    a parameter that is used before its block: declare it under parameters and pass it as an input)",
     ""},
    {"unused",
     R"(shardplan: 1
dims: {D: 16}
inputs: {x: [8, D], spare: [8]}
parameters: {w: [D, D], v: [D]}
constants: {c: 1/sqrt(D)}
operators:
  a: {op: MatMul, in: [x, w]}
  b: {op: ReLU, in: x}
outputs: [a]
)",
     R"(m.yaml:3:21: error: spare: no operator reads this input
m.yaml:4:25: error: v: no operator reads this parameter
m.yaml:5:13: error: c: no operator reads this constant
m.yaml:8:3: error: b feeds no output
    use its result, or name it in outputs)",
     ""},
    {"unused_beside_the_loss",
     R"(shardplan: 1
inputs: {x: [8]}
operators:
  a: {op: ReduceMean, in: x}
  b: {op: Tanh, in: x}
loss: a
)",
     R"(m.yaml:5:3: error: b feeds no output
    use its result, or name it in outputs beside the loss)",
     ""},
    {"duplicates",
     R"(shardplan: 1
model: a
model: b
inputs: {x: [8, 4], x: [3]}
operators: {a: {op: ReLU, in: x, in: x}}
)",
     R"(m.yaml:3:1: error: 'model' is given twice; first in line 2
m.yaml:4:21: error: 'x' is given twice; first in line 4
m.yaml:5:34: error: 'in' is given twice; first in line 5)",
     ""},
    {"operators",
     R"(shardplan: 1
dims: {D: 16}
inputs: {x: [8, D]}
parameters: {w: [D, 32]}
operators:
  a: {op: MatMul, in: [x, w], transpose_b: true}
  b: {op: Softmax, in: x, axis: 4}
  c: {op: Softmax, in: x, axes: 1}
  d: {op: Reshape, in: x, shape: [3, D]}
  e: {op: Concat, in: [x, b], axis: 0, shape: [16, D]}
  f: {op: Add, in: x}
  g: {op: Split, in: x, axis: 1, output_num: 2, out: [p, q, r]}
  h: {op: Softmax, in: x, axis: last}
  i: {op: MatMul, in: [x, w], transpose_b: yes}
  j: {op: ReLU, in: x, shape: [8, 2*D]}
  k: {op: Softmaxx, in: j}
)",
     R"(m.yaml:6:23: error: a: MatMul: the summed dimensions of [8, 16] and [16, 32] differ: 16 and 32
    x is f32 [8, 16], w is f32 [16, 32]
m.yaml:7:33: error: b: axis 4 of Softmax is outside [-2, 2)
m.yaml:8:27: error: c: unknown key 'axes'; did you mean 'axis'?
    attributes of Softmax: axis
m.yaml:9:24: error: d: Reshape: cannot make [3, 16] of [8, 16], which has 128 elements
m.yaml:11:20: error: f: Add takes 2 inputs (x1, x2), found 1
m.yaml:12:55: error: g: out has 3 names, Split has 2 results
m.yaml:13:33: error: h: axis: no dim 'last' here
m.yaml:14:44: error: i: transpose_b is 'yes'; expected true or false
m.yaml:15:31: error: j is [8, 16]; the file says [8, 2*D] = [8, 32]
m.yaml:16:11: error: k: no operator 'Softmaxx'; did you mean 'Softmax'?)",
     "shapes behind b, j were not checked"},
    {"built_in_blocks",
     R"(shardplan: 1
dims: {D: 16}
inputs: {x: [8, D], n: {shape: [8, D], dtype: i32}}
operators:
  a: {block: nn.Dense, in: x}
  b: {block: nn.Dense, in: x, out_channels: 4, in_channels: 5}
  c: {block: nn.dense, in: x}
  d: {block: nn.SoftmaxCrossEntropyWithLogits, in: x}
  e: {block: nn.SoftmaxCrossEntropyWithLogits, in: [x, n], reduction: avg}
  f: {block: nn.Conv2d, in: x, out_channels: 4, kernel_size: 3}
  g: {block: nn.LayerNorm, in: n}
  h: {block: nn.Dense, in: x, out_chanels: 4}
  i: {block: nn.Dense, in: [x, x], out_channels: 4}
)",
     R"(m.yaml:5:14: error: a: nn.Dense needs out_channels (size of the result's last dimension)
m.yaml:6:61: error: b: in_channels is 5, but dimension 1 of the input has size 16
m.yaml:7:14: error: c: no block 'nn.dense'; did you mean 'nn.Dense'?
m.yaml:8:52: error: d: nn.SoftmaxCrossEntropyWithLogits takes 2 inputs, found 1
m.yaml:9:71: error: e: reduction is 'avg'; expected none, mean or sum
m.yaml:10:29: error: f.x is [8, 16]; expected [batch, in_channels, height, width]
m.yaml:12:31: error: h: unknown key 'out_chanels'; did you mean 'out_channels'?
    attributes of nn.Dense: in_channels, out_channels, has_bias
m.yaml:13:28: error: i: nn.Dense takes 1 input, found 2)",
     ""},
    {"repeats",
     R"(shardplan: 1
dims: {B: 8}
inputs: {x: [B]}
blocks:
  one:  {inputs: {x: [B]}, operators: {r: {op: ReLU, in: x}}}
  many: {inputs: {x: [B]}, operators: {a: {block: one, in: x, repeat: 100000}}}
  self: {inputs: {x: [B]}, operators: {a: {block: self, in: x}}}
  two:  {inputs: {x: [B]}, operators: {a: {op: ReLU, in: x}, b: {op: Tanh, in: x}}}
  none: {operators: {a: {op: Range, limit: 4}}}
  both: {inputs: {x: [B]}, outputs: [a, b], operators: {a: {op: ReLU, in: x}, b: {op: Tanh, in: x}}}
operators:
  h: {block: both, in: x, repeat: 2}
  a: {block: many, in: x, repeat: 100000}
  b: {block: one, in: x, repeat: 99999999999999}
  c: {block: self, in: x}
  d: {block: two, in: x}
  e: {block: one, in: x, repeat: B-8}
  f: {block: one, in: [x, x]}
  g: {block: none, repeat: 2}
)",
     R"(m.yaml:7:51: error: self.a: block self contains itself: self -> self
    in c, line 15
m.yaml:8:3: error: block two has 2 results that nobody uses: a, b
    name the block's results: outputs: [...]
m.yaml:12:35: error: h: the results of each copy are the first inputs of the next; both has more results (2) than inputs (1)
m.yaml:13:35: error: a: more than 500000 operators
m.yaml:14:34: error: b: more than 500000 operators
m.yaml:17:34: error: e: repeat: a size of 0 (B-8); expected at least 1
m.yaml:18:23: error: f: one takes 1 input, found 2
m.yaml:19:28: error: g: a block without inputs cannot be repeated)",
     ""},
    {"sizes_beyond_64_bits",
     R"(shardplan: 1
dims: {B: 4294967296, C: 4294967296}
inputs: {x: [B, C], y: [B, 1], z: [1, C]}
operators: {a: {op: Add, in: [y, z]}, b: {op: Add, in: [a, x]}}
)",
     R"(m.yaml:3:10: error: x of f32 [4294967296, 4294967296] is too large: a tensor may have at most 1 PiB
m.yaml:4:30: error: a: Add: result [4294967296, 4294967296] has more bytes than 64 bits can count
    y is f32 [4294967296, 1], z is f32 [1, 4294967296])",
     "shapes behind a were not checked"},
    {"names",
     R"(shardplan: 1
inputs: {x: [4, 4]}
parameters: {x: [4, 4]}
operators:
  x: {op: ReLU, in: x}
  2a: {op: ReLU, in: x}
  b.c: {op: ReLU, in: x}
  d: {op: Split, in: x, axis: 1, output_num: 2, out: [q, x]}
  e: {op: ReLU, in: d}
  f: {op: ReLU, in: q.y}
  g: {in: q}
  h: 5
  i: {op: ReLU, block: nn.Dense, in: x}
  j: {op: Add, in: [h, i]}
)",
     R"(m.yaml:3:14: error: the name 'x' is taken by line 2
    inputs, constants, parameters, operators and results share one name space
m.yaml:5:3: error: the name 'x' is taken by line 2
    inputs, constants, parameters, operators and results share one name space
m.yaml:6:3: error: '2a' is not an operator's name
    letters, digits and '_', not beginning with a digit
m.yaml:7:3: error: 'b.c' is not an operator's name
    letters, digits and '_', not beginning with a digit
m.yaml:8:58: error: the name 'x' is taken by line 2
    inputs, constants, parameters, operators and results share one name space
m.yaml:9:21: error: e: no tensor 'd' here
    the results of d are called q, x
m.yaml:10:21: error: f: 'q' is a tensor (result, line 8) and has no parts
m.yaml:11:3: error: g has neither op nor block
    as in: {op: ReLU, in: x} or {block: nn.Dense, in: x, out_channels: 10}
m.yaml:12:6: error: h is '5'; expected a map
    as in: {op: ReLU, in: x} or {block: nn.Dense, in: x, out_channels: 10}
m.yaml:13:24: error: i has both op and block; expected one)",
     "shapes behind h, i were not checked"},
    {"blocks",
     R"(shardplan: 1
dims: {B: 8, D: 16}
inputs: {x: [B, D]}
blocks:
  b: {dims: {N: inferred, K: given, M: K*2, U: inferred}, inputs: {x: [N, D]}, operators: {a: {op: Reshape, in: x, shape: [M, U]}}}
  c: {inputs: {x: [D, D]}, operators: {a: {op: ReLU, in: x}}}
  scale: {inputs: {x: [D]}, operators: {a: {op: ReLU, in: x}}}
operators:
  a: {block: b, in: x}
  d: {block: b, in: x, K: 4, J: 3}
  e: {block: c, in: x}
  f: {block: scael, in: x}
  g: {block: b, in: x, K: 4}
  h: {block: scale, in: x}
outputs: [a.z, d, e, f, q]
loss: x
)",
     R"(m.yaml:5:127: error: b.a: shape: dim U cannot be inferred: no input has it as a dimension of its own
    in g, line 13
m.yaml:6:19: error: c.x is [8, 16]; expected [D, D] = [16, 16]
    in e, line 11
m.yaml:7:23: error: scale.x is [8, 16]; expected [D]
    in h, line 14
m.yaml:9:14: error: a: block b needs the dim K
m.yaml:10:30: error: d: unknown key 'J'
    attributes of b: K
m.yaml:12:14: error: f: no block 'scael'; did you mean 'scale'?
m.yaml:13:3: error: g feeds no output
    use its result, or name it in outputs
m.yaml:14:3: error: h feeds no output
    use its result, or name it in outputs
m.yaml:15:25: error: outputs: no tensor 'q' here
m.yaml:16:7: error: loss: 'x' is not a result of an operator)",
     ""},
    {"parts_of_blocks",
     R"(shardplan: 1
dims: {B: 8, D: 8}
inputs: {x: [B, D]}
blocks:
  one: {inputs: {x: [B, D]}, operators: {r: {block: nn.Dense, in: x, out_channels: D}}}
  two: {inputs: {x: [B, D]}, operators: {a: {op: ReLU, in: x}, b: {op: Tanh, in: x}}, outputs: [a, b]}
operators:
  o: {block: one, in: x, repeat: 3}
  t: {block: two, in: x}
  a: {op: Add, in: [o.3, o.1]}
  b: {op: Add, in: [t, t.a]}
  c: {op: Add, in: [t.a, t.c]}
  d: {op: MatMul, in: [o, o.r.weight]}
  e: {op: MatMul, in: [o, o.2.r.weight]}
  f: {op: MatMul, in: [o, o.2.r.weigth]}
)",
     R"(m.yaml:10:21: error: a: o has no copy 3; they are 0 to 2
m.yaml:11:21: error: b: t has 2 results; name one: t.a
m.yaml:12:26: error: c: t has no part 'c'
    there is t.a, t.b
m.yaml:13:27: error: d: each copy of o has its own r.weight; name one: o.0.r.weight
m.yaml:15:27: error: f: o.2 has no part 'r.weigth')",
     ""},
    {"constants",
     R"(shardplan: 1
dims: {D: 16}
inputs: {x: [8, D]}
constants:
  m: {shape: [8], fill: causal}
  i: {shape: [], fill: iota}
  z: {shape: [2], fill: zeroes}
  q: 1/sqrt(E)
  n: {fill: zeros}
operators:
  a: {op: Mul, in: [x, 0.5]}
  b: {op: Mul, in: [a, 1/E]}
  d: {op: AddN, in: [m, i, z, q, n]}
)",
     R"(m.yaml:5:3: error: m is f32 [8]; fill: causal needs a floating type and at least 2 dimensions
m.yaml:6:3: error: i is a scalar; fill: iota needs a dimension
m.yaml:7:25: error: z: fill is 'zeroes'; expected zeros, ones, iota, causal or a number
m.yaml:8:6: error: q: no dim 'E' here
m.yaml:9:6: error: n has no shape
m.yaml:12:24: error: b: no dim 'E' here)",
     ""},
    {"custom_operators",
     R"(shardplan: 1
dims: {B: 8, D: 16}
inputs: {x: [B, D]}
parameters: {w: [D, D]}
custom_operators:
  Mix: {rule: "b s, s f -> b f", factors: {s: sum}, flops: 2*b*s*f}
  Bad: {rule: "b s, s f -> b f", factors: {b: sum}}
  Worse: {rule: "b s t -> b"}
operators:
  m: {op: Mix, in: [x, w]}
  n: {op: Bad, in: [m, w]}
  o: {op: Worse, in: [m]}
  p: {op: Mixx, in: [x]}
)",
     R"(m.yaml:7:47: error: n: factor b is in a result, so it is not a sum
m.yaml:12:22: error: o: rule 'b s t -> b': operand 0 has 3 dimensions there, 2 in fact
m.yaml:13:11: error: p: no operator 'Mixx'; did you mean 'Mix'?)",
     ""},
    {"strategies",
     R"(shardplan: 1
dims: {B: 8, D: 16}
inputs: {x: [B, D]}
parameters: {w: [D, D]}
operators:
  a: {op: MatMul, in: [x, w], in_strategy: [1, 8]}
  b: {op: ReLU, in: a, in_strategy: [[0, 8]]}
  c: {op: ReLU, in: b, in_strategy: [[{dp: 2}, {}]], level: 3}
  d: {op: ReLU, in: c, in_strategy: [[2, 4]], parallel_mode: stand_alone}
  e: {op: ReLU, in: d, place: {role: MS_SERVER, rank: 1}}
  f: {block: nn.Dense, in: e, out_channels: 4, in_strategy: [[1, 1], [2, 2]]}
strategies:
  d: {in_strategy: [[4, 2]]}
  f.matmull: {in_strategy: [[4, 2], [1, 2]]}
  f.weight: {in_strategy: [[1, 1]]}
  nowhere.*: {level: 1}
  mat*: {level: 1}
  a: {wrong: 1}
)",
     R"(m.yaml:6:44: error: a: in_strategy is one entry; expected a list with one entry per tensor, as in [[1, 8]]
    an entry is [2, 4] (pieces per dimension), [{dp}, {mp}] (axes per dimension),
    null (data parallel) or [] (follows)
m.yaml:7:39: error: b: in_strategy: '0' pieces; expected a whole number, at least 1
    an entry is [2, 4] (pieces per dimension), [{dp}, {mp}] (axes per dimension),
    null (data parallel) or [] (follows)
m.yaml:8:39: error: c: in_strategy: a map in a layout; expected axes, as in {dp, mp}
    an entry is [2, 4] (pieces per dimension), [{dp}, {mp}] (axes per dimension),
    null (data parallel) or [] (follows)
m.yaml:8:61: error: c: level is '3'; expected a whole number from 0 to 2
m.yaml:9:62: error: d: parallel_mode is 'stand_alone'; inside a model it may be data_parallel, semi_auto_parallel or auto_parallel
m.yaml:10:38: error: e: place: role is 'MS_SERVER'; expected MS_WORKER
m.yaml:11:61: error: f: in_strategy has 2 entries, f has 1 input
m.yaml:13:20: error: d: in_strategy is given on line 9 and, differently, on line 13
    keep one of them
m.yaml:14:3: error: no operator, block or tensor 'f.matmull'; did you mean 'f.matmul'?
m.yaml:15:27: error: f.weight is a parameter; it takes strategy, not in_strategy
m.yaml:16:3: error: no operator, block or tensor 'nowhere.*'
m.yaml:17:3: error: no operator, block or tensor 'mat*'
    '*' stands for a whole part of a name
m.yaml:18:7: error: a: unknown key 'wrong')",
     ""},
    {"python_tuples",
     R"(shardplan: 1
inputs: {x: [8, 4]}
operators:
  a: {op: ReLU, in: x, in_strategy: ((1, 8,)}
  b: {op: ReLU, in: a, in_strategy: ((1, 2),)}
)",
     R"(m.yaml:4:37: error: a: in_strategy: '((1, 8,)': ')' is missing
    an entry is [2, 4] (pieces per dimension), [{dp}, {mp}] (axes per dimension),
    null (data parallel) or [] (follows))",
     ""},
    {"options",
     R"(shardplan: 1
inputs: {x: [8]}
operators: {a: {op: ReLU, in: x}}
training: {optimizer: adamm, beta1: 2, micro_batches: 0, learning_rate: fast}
parallel: {parallel_mode: auto, search_mode: dp, device_num: 7, mesh: {dp: 2, mp: 4}, full_batch: yes, level: 5, dataset_strategy: 3}
dtype: float31
)",
     R"(m.yaml:4:11: error: training: the model has no loss
    loss: NAME names the scalar to minimise
m.yaml:4:23: error: training: optimizer is 'adamm'; expected sgd, momentum, adam or adamw
m.yaml:4:37: error: training: beta1 is '2'; expected a number from 0 to 1
m.yaml:4:55: error: training: micro_batches is '0'; expected a whole number from 1 to 1048576
m.yaml:4:73: error: training: learning_rate is 'fast'; expected a number, at least 0
m.yaml:5:27: error: parallel: parallel_mode is 'auto'; expected stand_alone, data_parallel, semi_auto_parallel, auto_parallel or hybrid_parallel
m.yaml:5:46: error: parallel: search_mode is 'dp'; expected sharding_propagation, dynamic_programming, ilp, local or auto
m.yaml:5:71: error: parallel: mesh has 8 devices, device_num is 7
m.yaml:5:99: error: parallel: full_batch is 'yes'; expected true or false
m.yaml:5:111: error: parallel: level is '5'; expected a whole number from 0 to 2
m.yaml:5:132: error: parallel: dataset_strategy is '3'; expected entries of a strategy
    an entry is [2, 4] (pieces per dimension), [{dp}, {mp}] (axes per dimension),
    null (data parallel) or [] (follows)
m.yaml:6:8: error: dtype is 'float31'; expected f64, f32, f16, bf16, f8e4m3, i64, i32, i8, u8 or bool)",
     ""},
    {"loss_is_no_scalar",
     R"(shardplan: 1
inputs: {x: [8]}
operators: {a: {op: ReLU, in: x}}
loss: a
training: {optimizer: sgd, recompute: [b]}
)",
     R"(m.yaml:4:7: error: loss: a is [8]; expected a scalar
    reduce it: {op: ReduceMean, in: a}
m.yaml:5:11: error: training: recompute: no operator or block 'b')",
     ""},
    {"version",
     R"(shardplan: 2
modle: x
inputs: {x: [8]}
operators: {a: {op: ReLU, in: x}}
)",
     R"(m.yaml:1:12: error: format version '2'; this program reads 1
m.yaml:2:1: error: unknown key 'modle'; did you mean 'mode'?)",
     ""},
    {"a_cluster",
     R"(shardplan: 1
cluster: c
device: {name: D}
levels: [{name: x}]
)",
     R"(m.yaml:4:9: error: this file describes a cluster, not a model
    plan MODEL --cluster m.yaml)",
     ""},
    {"not_a_map",
     R"(- a
- b
)",
     R"(m.yaml:1:1: error: a model file is a map; found a list
    it begins with: shardplan: 1)",
     ""},
};

class BadModelTest : public testing::TestWithParam<BadModel> {};

TEST_P(BadModelTest, AllFaultsAreToldWithPlaceAndRemedy) {
  try {
    read_model_text(GetParam().text, "m.yaml");
    FAIL() << "no fault was found";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), GetParam().faults);
    EXPECT_EQ(error.note(), GetParam().note);
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, BadModelTest, testing::ValuesIn(kBadModels),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace shardplan
