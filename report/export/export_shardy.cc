#include <fmt/format.h>

#include "report/export/export.h"
#include "report/export/exported_plan.h"

namespace shardplan {
namespace {

/// `{"x", "y":(1)2}`.
std::string sharding_axes(const std::vector<AxisRef>& axes, const DeviceMesh& mesh) {
  std::vector<std::string> items;
  for (const AxisRef& ref : axes) {
    std::string item = python_text(mesh.axes()[ref.axis].name);
    if (!mesh.is_whole(ref)) item += fmt::format(":({}){}", ref.before, ref.size);
    items.push_back(std::move(item));
  }
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

/// `#sdy.sharding<@mesh, [{"pcie"}, {}]>`, or nothing where a dimension is sharded in parts.
std::optional<std::string> sharding(const TensorLayout& layout, const DeviceMesh& mesh) {
  std::vector<std::string> dimensions;
  for (const DimensionLayout& dimension : layout.dimensions) {
    if (dimension.is_sharded() && dimension.parts.size() != 1) return std::nullopt;
    dimensions.push_back(
        sharding_axes(dimension.is_sharded() ? dimension.parts[0].axes : std::vector<AxisRef>(), mesh));
  }
  return fmt::format("#sdy.sharding<@mesh, [{}]>", fmt::join(dimensions, ", "));
}

std::string tensor_type(const TensorType& type) {
  std::string text = "tensor<";
  for (const std::int64_t extent : type.shape) text += fmt::format("{}x", extent);
  std::string_view element = to_string(type.dtype);
  if (type.dtype == DataType::kBool) element = "i1";
  if (type.dtype == DataType::kU8) element = "ui8";
  return fmt::format("{}{}>", text, element);
}

class ShardyWriter {
 public:
  explicit ShardyWriter(const Plan& plan) : plan_(plan), exported_(exported_plan(plan)) {}

  ExportedText run() {
    std::vector<std::string> axes;
    for (const MeshAxis& axis : plan_.mesh.axes()) {
      axes.push_back(fmt::format("{}={}", python_text(axis.name), axis.size));
    }
    std::string order;
    if (!plan_.mesh.devices().empty()) {
      order = fmt::format(", device_ids=[{}]", fmt::join(plan_.mesh.devices(), ", "));
    }
    text_ = fmt::format("// {}\nmodule @plan {{\n  sdy.mesh @mesh = <[{}]{}>\n  func.func private @step(\n",
                        export_title(plan_), fmt::join(axes, ", "), order);
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
    if (!exported_.constraints.empty()) text_ += "  // sdy.sharding_constraint, by the operator's result:\n";
    std::vector<ExportedEntry> entries;
    for (const ExportedTensor& tensor : exported_.constraints) {
      const auto value = sharding(tensor.layout, plan_.mesh);
      entries.push_back(value ? ExportedEntry{tensor.name, *value, ""} : problem(tensor));
    }
    for (const ExportedEntry& entry : fold_entries(entries)) {
      if (entry.problem.empty()) {
        text_ += fmt::format("  //   {}: {}\n", entry.name, entry.value);
      } else {
        text_ += fmt::format("  //   cannot be said: {}\n", entry.problem);
        cannot_say_.push_back(entry.problem);
      }
    }
    return {text_ + "}\n", cannot_say_};
  }

 private:
  ExportedEntry problem(const ExportedTensor& tensor) const {
    return {tensor.name, "",
            fmt::format("{} {}; a dimension is sharded in parts", tensor.name, to_string(tensor.layout, plan_.mesh))};
  }

  struct Item {
    std::string text;
    std::string comment;
  };

  Item argument(const ExportedTensor& tensor) {
    const std::string type = tensor_type(tensor.type);
    if (const auto value = sharding(tensor.layout, plan_.mesh)) {
      return {fmt::format("{} {{sdy.sharding = {}}}", type, *value), tensor.name};
    }
    cannot_say_.push_back(problem(tensor).problem);
    return {type, "cannot be said: " + cannot_say_.back()};
  }

  /// One item a line, its name as a comment behind the comma.
  void append_list(const std::vector<Item>& items) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      text_ += fmt::format("      {}{}  // {}\n", items[i].text, i + 1 < items.size() ? "," : "", items[i].comment);
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
