#include "costmodel/calibration/measurements.h"

#include <algorithm>

#include "base/error.h"
#include "base/parse_number.h"
#include "base/yaml.h"
#include "costmodel/cluster/quantity.h"
#include "model/syntax/attribute_reader.h"
#include "operators/catalogue.h"

namespace shardplan {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllReduce, CollectiveKind::kAllToAll,
                                     CollectiveKind::kCollectivePermute};

class MeasurementReader {
 public:
  MeasurementReader(const std::string& text, const std::string& file, const Cluster& cluster)
      : cluster_(cluster), document_(parse_yaml(text, file, faults_)) {}

  Measurements read() {
    const YamlNode& root = document_.root;
    if (!root.is_map()) throw InputError(document_.place(root), "expected a map with operators or collectives");
    refuse_other_kinds(root);
    check_keys(document_, root, {"shardplan", "operators", "collectives"}, "", faults_);
    const YamlNode* version = root.find("shardplan");
    if (version == nullptr || version->text != "1") {
      fault(version == nullptr ? root : *version, "shardplan: expected the version of the format, 1");
    }
    each(root, "operators", [&](const YamlNode& node) { read_operator(node); });
    each(root, "collectives", [&](const YamlNode& node) { read_collective(node); });
    if (faults_.empty() && measurements_.operators.empty() && measurements_.collectives.empty()) {
      fault(root, "no measurement; expected operators or collectives");
    }
    if (!faults_.empty()) throw InputError(faults_);
    return std::move(measurements_);
  }

 private:
  /// A model or a cluster instead of measurements is one mistake, not one for each of its keys.
  void refuse_other_kinds(const YamlNode& root) const {
    for (const auto& [key, kind] : {std::pair{"model", "a model"}, std::pair{"levels", "a cluster"}}) {
      const YamlNode* found = root.find(key);
      if (found == nullptr) continue;
      throw InputError(document_.place(*found),
                       "this file describes {}, not measurements; expected the keys operators and collectives", kind);
    }
  }

  template <class... Args>
  void fault(const YamlNode& node, fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back({document_.place(node), fmt::format(format, std::forward<Args>(args)...), {}});
  }

  template <class Read>
  void each(const YamlNode& root, const char* key, const Read& read) {
    const YamlNode* list = root.find(key);
    if (list == nullptr) return;
    if (!list->is_sequence()) return fault(*list, "{}: expected a list, found {}", key, describe(*list));
    for (const YamlNode& node : list->items) {
      if (!node.is_map()) {
        fault(node, "{}: expected a map, found {}", key, describe(node));
        continue;
      }
      try {
        read(node);
      } catch (const InputError& error) {
        const Diagnostic& first = error.diagnostics().front();
        faults_.push_back({first.place.line > 0 ? first.place : document_.place(node), first.message, first.hint});
      }
    }
  }

  /// The value of a required key.
  const YamlNode& need(const YamlNode& map, const char* key) {
    const YamlNode* node = map.find(key);
    if (node == nullptr) throw InputError(document_.place(map), "{}: missing", key);
    return *node;
  }

  std::int64_t positive(const YamlNode& map, const char* key, std::int64_t (*parse)(std::string_view)) {
    const YamlNode& node = need(map, key);
    std::int64_t value = 0;
    try {
      value = parse(node.text);
    } catch (const InputError& error) {
      throw InputError(document_.place(node), "{}: {}", key, error.diagnostics().front().message);
    }
    if (value < 1) throw InputError(document_.place(node), "{}: '{}' is nothing; expected more", key, node.text);
    return value;
  }

  static std::int64_t parse_size(std::string_view text) {
    const auto size = text.size() <= 15 ? parse_number<std::int64_t>(text) : std::nullopt;
    if (!size || *size < 0) throw InputError(SourcePlace{}, "'{}' is not a whole number", text);
    return *size;
  }

  DataType data_type(const YamlNode& node) {
    const std::optional<DataType> type = parse_data_type(node.text);
    if (!type) throw InputError(document_.place(node), "dtype is {}; expected {}", describe(node), data_type_list());
    return *type;
  }

  /// One for all operands, or a list with one for each.
  std::vector<DataType> data_types(const YamlNode& node, std::size_t operands) {
    if (!node.is_sequence()) return std::vector<DataType>(operands, data_type(node));
    std::vector<DataType> types;
    for (const YamlNode& item : node.items) types.push_back(data_type(item));
    if (types.size() == operands) return types;
    throw InputError(document_.place(node), "dtype: a list of {}; expected one type, or one for each of {} operands",
                     types.size(), operands);
  }

  void read_operator(const YamlNode& node) {
    const YamlNode& name = need(node, "op");
    const OperatorType* type = find_operator_type(name.text);
    if (type == nullptr) {
      throw InputError(document_.place(name), "op: no operator '{}'; `shardplan operators` lists them", name.text);
    }
    std::vector<std::string> known = {"op", "dtype", "operands", "time"};
    for (const AttributeSpec& attribute : type->attributes) known.push_back(attribute.name);
    check_keys(document_, node, known, type->name, faults_);
    const YamlNode& shapes = need(node, "operands");
    if (!shapes.is_sequence()) throw InputError(document_.place(shapes), "operands: expected a list of shapes");
    const std::vector<DataType> dtypes = data_types(need(node, "dtype"), shapes.items.size());
    std::vector<TensorType> operands;
    for (const YamlNode& shape : shapes.items) {
      TensorType operand{{}, dtypes[operands.size()]};
      if (!shape.is_sequence()) throw InputError(document_.place(shape), "operands: expected a shape, as [4096, 1024]");
      for (const YamlNode& size : shape.items) {
        operand.shape.push_back(parse_size(size.text));
        if (operand.shape.back() < 1) throw InputError(document_.place(size), "operands: a size is 0");
      }
      operands.push_back(std::move(operand));
    }
    Attributes attributes;
    FileNumbers no_dims;
    DimScope scope(no_dims);
    for (const AttributeSpec& attribute : type->attributes) {
      const YamlNode* value = node.find(attribute.name);
      if (value == nullptr) continue;
      attributes[attribute.name] = read_attribute(document_, *value, attribute.kind, scope, attribute.name);
    }
    const Picoseconds time = positive(node, "time", parse_time);
    measurements_.operators.push_back({make_operation(*type, attributes, std::move(operands)), time});
  }

  void read_collective(const YamlNode& node) {
    check_keys(document_, node, {"collective", "level", "devices", "bytes", "time"}, "collectives", faults_);
    CollectiveMeasurement measured;
    const YamlNode& name = need(node, "collective");
    const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](CollectiveKind known) {
      return to_string(known) == name.text || (known == CollectiveKind::kCollectivePermute && name.text == "permute");
    });
    if (kind == std::end(kKinds)) {
      throw InputError(
          document_.place(name),
          "collective: '{}'; expected all_gather, reduce_scatter, all_reduce, all_to_all or collective_permute",
          name.text);
    }
    measured.kind = *kind;
    const YamlNode& level = need(node, "level");
    measured.level = level.text;
    const auto found = std::find_if(cluster_.levels.begin(), cluster_.levels.end(),
                                    [&](const ClusterLevel& known) { return known.name == level.text; });
    if (found == cluster_.levels.end()) {
      throw InputError(document_.place(level), "level: {} has no level '{}'", cluster_.name, level.text);
    }
    measured.devices = positive(node, "devices", parse_size);
    if (measured.devices < 2 || found->count % measured.devices != 0) {
      throw InputError(document_.place(need(node, "devices")),
                       "devices: {} of level {}; expected 2 or more that divide {}", measured.devices, found->name,
                       found->count);
    }
    measured.bytes = positive(node, "bytes", parse_bytes);
    measured.time = positive(node, "time", parse_time);
    measurements_.collectives.push_back(std::move(measured));
  }

  const Cluster& cluster_;
  std::vector<Diagnostic> faults_;
  YamlDocument document_;
  Measurements measurements_;
};

}  // namespace

Measurements read_measurements(const std::string& path, const Cluster& cluster) {
  return read_measurements_text(read_text_file(path), path, cluster);
}

Measurements read_measurements_text(const std::string& text, const std::string& file, const Cluster& cluster) {
  return MeasurementReader(text, file, cluster).read();
}

}  // namespace shardplan
