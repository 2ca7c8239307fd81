#include "tests/simulator/small_model.h"

#include <map>

#include "base/random.h"
#include "operators/operator_type.h"
#include "program/program_checker.h"
#include "strategies/strategy.h"

namespace shardplan {
namespace {

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

std::vector<TensorType> same_as_first(const Operation& operation) { return {operation.operands.front()}; }

TensorType of_shape(const Operation& operation, Shape shape) { return {std::move(shape), operation.operands[0].dtype}; }

Factor factor(const char* name, std::int64_t extent, FactorKind kind = FactorKind::kPassThrough) {
  return {name, extent, kind, Reduction::kSum};
}

TensorWalk walk(const std::vector<std::uint32_t>& factors) {
  TensorWalk result;
  for (const std::uint32_t f : factors) result.push_back({{f}, std::nullopt});
  return result;
}

ShardingRule product_rule(const Operation& o) {
  const Shape &a = o.operands[0].shape, &b = o.operands[1].shape;
  return {{factor("m", a[0]), factor("k", a[1], FactorKind::kReduction), factor("n", b[1])},
          {walk({0, 1}), walk({1, 2})},
          {walk({0, 2})},
          {{0}, {1}},
          {}};
}
void product_kernel(const KernelCall& call) {
  const OperandView &a = call.operands[0], &b = call.operands[1];
  for (std::size_t m = 0; m < size(a.shape[0]); ++m) {
    for (std::size_t n = 0; n < size(b.shape[1]); ++n) {
      for (std::size_t k = 0; k < size(a.shape[1]); ++k) {
        call.results[0].data[m * size(b.shape[1]) + n] +=
            a.data[m * size(a.shape[1]) + k] * b.data[k * size(b.shape[1]) + n];
      }
    }
  }
}

ShardingRule outer_rule(const Operation& o) {
  const Shape &a = o.operands[0].shape, &b = o.operands[1].shape;
  return {{factor("b", a[0], FactorKind::kReduction), factor("m", a[1]), factor("n", b[1])},
          {walk({0, 1}), walk({0, 2})},
          {walk({1, 2})},
          {{0}, {1}},
          {}};
}
void outer_kernel(const KernelCall& call) {
  const OperandView &a = call.operands[0], &b = call.operands[1];
  for (std::size_t i = 0; i < size(a.shape[0]); ++i) {
    for (std::size_t m = 0; m < size(a.shape[1]); ++m) {
      for (std::size_t n = 0; n < size(b.shape[1]); ++n) {
        call.results[0].data[m * size(b.shape[1]) + n] +=
            a.data[i * size(a.shape[1]) + m] * b.data[i * size(b.shape[1]) + n];
      }
    }
  }
}

ShardingRule elementwise_rule(const Operation& o) {
  const Shape& shape = o.operands[0].shape;
  const bool is_linear = o.type->name == "Descend";
  std::vector<std::vector<std::uint32_t>> linear;
  if (is_linear) linear = {{0, 1}};
  return {{factor("i", shape[0]), factor("j", shape[1])},
          std::vector<TensorWalk>(o.operands.size(), walk({0, 1})),
          {walk({0, 1})},
          linear,
          {}};
}
template <class Value>
void each(const KernelCall& call, const Value& value) {
  const Shape& shape = call.results[0].shape;
  for (std::size_t i = 0; i < size(shape[0]); ++i) {
    for (std::size_t j = 0; j < size(shape[1]); ++j) {
      const std::size_t at = i * size(shape[1]) + j;
      call.results[0].data[at] = value(at, call.boxes[0].begin + static_cast<std::int64_t>(i),
                                       call.boxes[1].begin + static_cast<std::int64_t>(j));
    }
  }
}
void square_kernel(const KernelCall& call) {
  each(call, [&](std::size_t at, std::int64_t, std::int64_t) {
    return call.operands[0].data[at] * call.operands[0].data[at];
  });
}
void place_kernel(const KernelCall& call) {
  each(call, [&](std::size_t at, std::int64_t i, std::int64_t j) {
    return call.operands[0].data[at] + static_cast<double>(10 * i + j);
  });
}
void descend_kernel(const KernelCall& call) {
  each(call, [&](std::size_t at, std::int64_t, std::int64_t) {
    return call.operands[0].data[at] - 0.1 * call.operands[1].data[at];
  });
}
void noise_kernel(const KernelCall& call) {
  each(call, [&](std::size_t at, std::int64_t i, std::int64_t j) {
    const std::uint64_t index = static_cast<std::uint64_t>(i * call.boxes[1].extent + j);
    return call.operands[0].data[at] + Random(mix(call.seed ^ mix(index))).unit();
  });
}

ShardingRule blur_rule(const Operation& o) {
  const Shape& shape = o.operands[0].shape;
  TensorWalk operand = walk({0, 2});
  operand[0] = {{}, Window{.output = 0, .offset = 1, .stride = 1, .dilation = 1, .pad_before = 1, .pad_after = 1}};
  return {{factor("i", shape[0]), factor("r", 3, FactorKind::kNeedReplication), factor("j", shape[1])},
          {operand},
          {walk({0, 2})},
          {{0}},
          {}};
}
void blur_kernel(const KernelCall& call) {
  const OperandView& x = call.operands[0];
  const std::int64_t extent = call.operation.operands[0].shape[0];
  const std::size_t columns = size(x.shape[1]);
  for (std::int64_t i = call.boxes[0].begin; i < call.boxes[0].end; ++i) {
    for (std::int64_t r = 0; r < 3; ++r) {
      const std::int64_t row = i + r - 1;
      if (row < 0 || row >= extent) continue;
      for (std::size_t j = 0; j < columns; ++j) {
        call.results[0].data[size(i - call.boxes[0].begin) * columns + j] +=
            static_cast<double>(r + 1) * x.data[size(row - x.begin[0]) * columns + j];
      }
    }
  }
}

ShardingRule total_rule(const Operation& o) {
  const Shape& shape = o.operands[0].shape;
  return {{factor("i", shape[0], FactorKind::kReduction), factor("j", shape[1], FactorKind::kReduction)},
          {walk({0, 1})},
          {{}},
          {{0}},
          {}};
}
void total_kernel(const KernelCall& call) {
  const Shape& shape = call.operands[0].shape;
  for (std::size_t i = 0; i < size(shape[0] * shape[1]); ++i) call.results[0].data[0] += call.operands[0].data[i];
}

OperatorType make_type(const char* name, std::vector<std::string> operands,
                       std::vector<TensorType> (*infer)(const Operation&), ShardingRule (*rule)(const Operation&),
                       Kernel kernel) {
  OperatorType type;
  type.name = name;
  type.signature.operands = std::move(operands);
  type.signature.results = {"y"};
  type.infer = infer;
  type.rule = rule;
  type.kernel = kernel;
  return type;
}

}  // namespace

const OperatorType& small_type(std::string_view name) {
  static const std::vector<OperatorType> types = {
      make_type(
          "Product", {"a", "b"},
          [](const Operation& o) {
            return std::vector{of_shape(o, {o.operands[0].shape[0], o.operands[1].shape[1]})};
          },
          product_rule, product_kernel),
      make_type(
          "Outer", {"a", "b"},
          [](const Operation& o) {
            return std::vector{of_shape(o, {o.operands[0].shape[1], o.operands[1].shape[1]})};
          },
          outer_rule, outer_kernel),
      make_type("Square", {"x"}, same_as_first, elementwise_rule, square_kernel),
      make_type("Place", {"x"}, same_as_first, elementwise_rule, place_kernel),
      make_type("Descend", {"p", "g"}, same_as_first, elementwise_rule, descend_kernel),
      make_type("Noise", {"x"}, same_as_first, elementwise_rule, noise_kernel),
      make_type("Blur", {"x"}, same_as_first, blur_rule, blur_kernel),
      make_type(
          "Total", {"x"}, [](const Operation& o) { return std::vector{of_shape(o, {})}; }, total_rule, total_kernel),
  };
  for (const OperatorType& type : types) {
    if (type.name == name) return type;
  }
  ADD_FAILURE() << "no small type " << name;
  return types.front();
}

SmallModel::SmallModel(std::string_view mesh)
    : builder_("small"), redistributions_(DeviceMesh::parse(mesh), even_costs(DeviceMesh::parse(mesh).axes().size())) {
  program_.mesh = DeviceMesh::parse(mesh);
}

std::vector<AxisRef> SmallModel::axes(std::string_view text) const {
  return parse_layout("[" + std::string(text) + "]", program_.mesh).dimensions[0].parts[0].axes;
}

Strategy SmallModel::strategy(const Operation& operation, std::string_view factors, std::string_view partial) const {
  Strategy result;
  const TensorLayout parsed = parse_layout("[" + std::string(factors) + "]", program_.mesh);
  for (const DimensionLayout& dimension : parsed.dimensions) result.factors.push_back(dimension.parts[0].axes);
  result.partial = axes(partial);
  EXPECT_EQ(check_strategy(operation, result, program_.mesh), "");
  return result;
}

ValueId SmallModel::add_value(TensorId tensor, const TensorType& type, const TensorLayout& layout) {
  ProgramValue value;
  value.name = builder_.tensor(tensor).name;
  value.tensor = tensor;
  value.type = type;
  value.layout = canonical(layout, program_.mesh, type.shape);
  value.local_shape = local_shape(value.layout, type.shape);
  value.bytes = local_bytes(type, value.layout);
  return program_.values.push_back(std::move(value));
}

ValueId SmallModel::give(const std::string& name, const Shape& shape, TensorKind kind, std::string_view layout) {
  GraphTensor tensor;
  tensor.name = name;
  tensor.type = {shape, DataType::kF32};
  tensor.kind = kind;
  const TensorId id = builder_.add_tensor(tensor);
  const ValueId value = add_value(id, tensor.type, parse_layout(layout, program_.mesh));
  program_.given.push_back({id, value, kind == TensorKind::kInput});
  return value;
}

ValueId SmallModel::constant(const std::string& name, const Shape& shape, Fill fill, std::string_view layout) {
  GraphTensor tensor;
  tensor.name = name;
  tensor.type = {shape, DataType::kF32};
  tensor.kind = TensorKind::kConstant;
  tensor.fill = fill;
  const TensorId id = builder_.add_tensor(tensor);
  const ValueId value = add_value(id, tensor.type, parse_layout(layout, program_.mesh));
  Instruction instruction;
  instruction.kind = InstructionKind::kConstant;
  instruction.name = name;
  instruction.outputs = {value};
  program_.instructions.push_back(instruction);
  return value;
}

ValueId SmallModel::run(const std::string& name, std::string_view type, const std::vector<ValueId>& operands,
                        std::string_view factors, std::string_view partial, Pass pass) {
  GraphOperator op;
  op.name = name;
  op.pass = pass;
  std::vector<TensorType> types;
  for (const ValueId operand : operands) {
    op.operands.push_back(*program_.values[operand].tensor);
    types.push_back(program_.values[operand].type);
  }
  const Operation operation = make_operation(small_type(type), {}, types);
  Instruction instruction;
  instruction.kind = InstructionKind::kOperator;
  instruction.name = name;
  instruction.inputs = operands;
  instruction.pass = pass;
  instruction.operation = std::make_shared<const Operation>(operation);
  instruction.strategy = strategy(operation, factors, partial);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    EXPECT_EQ(program_.values[operands[i]].layout, operand_layout(operation, instruction.strategy, program_.mesh, i))
        << name << " operand " << i;
  }
  const OperatorId id = builder_.add_operator(op, operation);
  instruction.op = id;
  const ValueId value = add_value(builder_.op(id).results[0], operation.results[0],
                                  result_layout(operation, instruction.strategy, program_.mesh, 0));
  instruction.outputs = {value};
  program_.instructions.push_back(instruction);
  return value;
}

ValueId SmallModel::fetch_halo(ValueId operand, std::string_view type, std::string_view factors) {
  const Operation operation = make_operation(small_type(type), {}, {program_.values[operand].type});
  Instruction instruction;
  instruction.kind = InstructionKind::kHalo;
  instruction.name = program_.values[operand].name + ".halo";
  instruction.inputs = {operand};
  instruction.operation = std::make_shared<const Operation>(operation);
  instruction.strategy = strategy(operation, factors, "{}");
  instruction.halo = halos(operation, instruction.strategy, program_.mesh);
  instruction.origin.edit().producer = program_.values[operand].name;
  const ValueId value =
      add_value(*program_.values[operand].tensor, program_.values[operand].type, program_.values[operand].layout);
  instruction.outputs = {value};
  program_.instructions.push_back(instruction);
  return value;
}

ValueId SmallModel::move(ValueId value, std::string_view layout) {
  const ProgramValue from = program_.values[value];
  const TensorLayout to = canonical(parse_layout(layout, program_.mesh), program_.mesh, from.type.shape);
  for (const CollectiveStep& step : redistributions_.plan(from.layout, to, from.type.shape, 4).steps) {
    Instruction instruction;
    instruction.kind = InstructionKind::kCollective;
    instruction.name =
        from.name + "." + std::string(to_string(step.kind)) + std::to_string(program_.instructions.size());
    instruction.inputs = {value};
    instruction.step = step;
    instruction.origin.edit().producer = from.name;
    value = add_value(*from.tensor, from.type, step.after);
    instruction.outputs = {value};
    program_.instructions.push_back(instruction);
  }
  return value;
}

void SmallModel::put_out(ValueId value) {
  const TensorId tensor = *program_.values[value].tensor;
  builder_.tensor(tensor).is_output = true;
  program_.outputs.push_back({tensor, value});
}

void SmallModel::update(ValueId parameter, ValueId value) {
  const TensorId tensor = *program_.values[parameter].tensor;
  builder_.tensor(*program_.values[value].tensor).updates = tensor;
  program_.updates.push_back({tensor, value});
}

SmallModel::Built SmallModel::build() {
  Built built{builder_.build(), std::move(program_)};
  EXPECT_EQ(check_program(built.program, built.graph), "");
  return built;
}

}  // namespace shardplan
