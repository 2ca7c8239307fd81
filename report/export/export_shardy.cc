#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/export/export.h"
#include "report/export/exported_plan.h"

namespace shardplan {
namespace {

constexpr std::string_view kShardyHowTo =
    "// How to use it: sdy_opt reads this file. @step has the shardings of a step's arguments (inputs, parameters,\n"
    "// optimizer states; its scalars are replicated) and results: give them to your own function. The function\n"
    "// with an operator's name constrains its first result: inline it after that operator, '*' being every copy of\n"
    "// a repeat. A partial result is unreduced: the all_reduce is left to whoever reads it.\n"
    "// Collectives follow from the shardings; their order and overlap cannot be expressed here.\n";

std::string mlir_comment(std::string_view text) {
  std::string line = "// ";
  for (const char c : text) line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return line + '\n';
}

/// An MLIR string literal; escapes are two hexadecimal digits.
std::string mlir_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || byte < 0x20 || byte >= 0x7f) {
      result += fmt::format("\\{:02X}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// `{"x", "y":(1)2}`.
std::string mlir_axes(const std::vector<AxisRef>& axes, const DeviceMesh& mesh) {
  std::vector<std::string> items;
  for (const AxisRef& ref : axes) {
    std::string item = mlir_string(mesh.axes()[ref.axis].name);
    if (!mesh.is_whole(ref)) item += fmt::format(":({}){}", ref.before, ref.size);
    items.push_back(std::move(item));
  }
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

/// `<@mesh, [{"pcie"}, {}], unreduced={"hccs"}>`; empty, with the reason in `why`, if Shardy has no such sharding.
std::optional<std::string> mlir_sharding(const TensorLayout& layout, const DeviceMesh& mesh, std::string* why) {
  std::vector<std::string> dimensions;
  for (const DimensionLayout& dimension : layout.dimensions) {
    if (dimension.is_sharded() && dimension.parts.size() != 1) {
      *why = "a dimension is sharded in parts";
      return std::nullopt;
    }
    dimensions.push_back(mlir_axes(dimension.is_sharded() ? dimension.parts[0].axes : std::vector<AxisRef>(), mesh));
  }
  if (layout.partial.empty()) return fmt::format("<@mesh, [{}]>", fmt::join(dimensions, ", "));
  if (layout.reduction != Reduction::kSum) {
    *why = "Shardy's unreduced axes are those of sums";
    return std::nullopt;
  }
  // Its verifier wants them in the order of the mesh, and neighbouring sub-axes as one.
  std::vector<AxisRef> unreduced(layout.partial.begin(), layout.partial.end());
  std::ranges::sort(unreduced);
  return fmt::format("<@mesh, [{}], unreduced={}>", fmt::join(dimensions, ", "), mlir_axes(joined(unreduced), mesh));
}

std::string mlir_type(const TensorType& type) {
  std::string text = "tensor<";
  for (const std::int64_t extent : type.shape) text += fmt::format("{}x", extent);
  std::string_view element = to_string(type.dtype);
  if (type.dtype == DataType::kBool) element = "i1";
  if (type.dtype == DataType::kU8) element = "ui8";
  if (type.dtype == DataType::kF8E4M3) element = "f8E4M3FN";
  return fmt::format("{}{}>", text, element);
}

class ShardyWriter {
 public:
  explicit ShardyWriter(const Plan& plan) : plan_(plan), exported_(exported_plan(plan)) {}

  ExportedText run() {
    std::vector<std::string> axes;
    for (const MeshAxis& axis : plan_.mesh.axes()) {
      axes.push_back(fmt::format("{}={}", mlir_string(axis.name), axis.size));
    }
    std::string order;
    if (!plan_.mesh.devices().empty()) {
      order = fmt::format(", device_ids=[{}]", fmt::join(plan_.mesh.devices(), ", "));
    }
    text_ = mlir_comment(export_title(plan_));
    text_ += kShardyHowTo;
    for (const std::string& what : left_to_the_program(plan_)) {
      text_ += mlir_comment("cannot be expressed: " + what);
      cannot_say_.push_back(what);
    }
    text_ += fmt::format("module @plan {{\n  sdy.mesh @mesh = <[{}]{}>\n  func.func private @step(\n",
                         fmt::join(axes, ", "), order);
    std::vector<Item> arguments;
    for (const auto* list : {&exported_.inputs, &exported_.parameters, &exported_.states}) {
      for (const ExportedTensor& tensor : *list) arguments.push_back(argument(tensor));
    }
    append_list(arguments);
    text_ += "  )";
    if (!exported_.outputs.empty()) {
      text_ += " -> (\n";
      std::vector<Item> results;
      for (const ExportedTensor& tensor : exported_.outputs) results.push_back(argument(tensor));
      append_list(results);
      text_ += "  )";
    }
    text_ += "\n";
    write_constraints();
    return {text_ + "}\n", cannot_say_};
  }

 private:
  ExportedEntry problem(const ExportedTensor& tensor, const std::string& why) const {
    return {tensor.name, "", fmt::format("{} {}; {}", tensor.name, to_string(tensor.layout, plan_.mesh), why)};
  }

  /// One function for every result to constrain, copies of a repeat under one name.
  void write_constraints() {
    std::vector<ExportedEntry> entries;
    for (const ExportedTensor& tensor : exported_.constraints) {
      std::string why;
      const auto value = mlir_sharding(tensor.layout, plan_.mesh, &why);
      const std::string type = mlir_type(tensor.type);
      entries.push_back(value ? ExportedEntry{tensor.name,
                                              fmt::format("(%x: {0}) -> {0} {{\n"
                                                          "    %y = sdy.sharding_constraint %x {1} : {0}\n"
                                                          "    return %y : {0}\n"
                                                          "  }}\n",
                                                          type, *value),
                                              ""}
                              : problem(tensor, why));
    }
    for (const ExportedEntry& entry : fold_entries(entries)) {
      if (entry.problem.empty()) {
        text_ += fmt::format("  func.func private @{}{}", mlir_string(entry.name), entry.value);
      } else {
        text_ += "  " + mlir_comment("cannot be expressed: " + entry.problem);
        cannot_say_.push_back(entry.problem);
      }
    }
  }

  struct Item {
    std::string text;
    std::string name;
  };

  Item argument(const ExportedTensor& tensor) {
    const std::string type = mlir_type(tensor.type);
    std::string why;
    if (const auto value = mlir_sharding(tensor.layout, plan_.mesh, &why)) {
      return {fmt::format("{} {{sdy.sharding = #sdy.sharding{}}}", type, *value), tensor.name};
    }
    cannot_say_.push_back(problem(tensor, why).problem);
    return {type, "cannot be expressed: " + cannot_say_.back()};
  }

  /// One item per line, its name as a comment after the comma.
  void append_list(const std::vector<Item>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      text_ +=
          fmt::format("      {}{}  {}", items[i].text, i + 1 < items.size() ? "," : "", mlir_comment(items[i].name));
    }
  }

  const Plan& plan_;
  const ExportedPlan exported_;
  std::string text_;
  std::vector<std::string> cannot_say_;
};

}  // namespace

ExportedText export_shardy(const Plan& plan) { return ShardyWriter(plan).run(); }

}  // namespace shardplan
