// plan.json read back, as untrusted input.
//
// `Node` walks through the document and knows its path and line, so every error message has both. The form is checked
// up to the first fault. Decisions are then looked up in the graph of the model in the file; all that do not fit are
// collected, up to a limit.

#include "report/plan_file/plan_file.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/json_tree.h"
#include "base/parse_number.h"
#include "layouts/uneven.h"
#include "report/local_report.h"
#include "report/plan_file/plan_json.h"

namespace shardplan {
namespace {

constexpr std::size_t kMaxFaults = 20;
constexpr double kMaxSeconds = 9e6;  // the range of 63 bits of picoseconds

/// A value of the document with its path, for messages.
class Node {
 public:
  Node(const JsonNode& value, std::string path) : value_(value), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(value_.place, "{}: {}", path_.empty() ? "the document" : path_, what);
  }

  bool has(const char* key) const {
    expect_object();
    const JsonNode* const found = value_.find(key);
    return found != nullptr && found->kind != JsonNode::Kind::kNull;
  }
  Node operator[](const char* key) const {
    expect_object();
    const JsonNode* const found = value_.find(key);
    if (found == nullptr) fail(fmt::format("has no '{}'", key));
    return Node(*found, path_.empty() ? key : path_ + "." + key);
  }
  const SourcePlace& place() const { return value_.place; }
  std::vector<Node> items() const {
    if (value_.kind != JsonNode::Kind::kArray) fail("expected a list");
    std::vector<Node> nodes;
    nodes.reserve(value_.items.size());
    for (std::size_t i = 0; i < value_.items.size(); ++i) {
      nodes.emplace_back(value_.items[i], fmt::format("{}[{}]", path_, i));
    }
    return nodes;
  }
  std::vector<std::pair<std::string, Node>> entries() const {
    expect_object();
    std::vector<std::pair<std::string, Node>> nodes;
    for (const JsonMember& member : value_.members) {
      nodes.emplace_back(member.key.text, Node(member.value, path_ + "." + member.key.text));
    }
    return nodes;
  }
  std::string text() const {
    if (value_.kind != JsonNode::Kind::kString) fail("expected a text");
    return value_.text;
  }
  bool flag() const {
    if (value_.kind != JsonNode::Kind::kTruth) fail("expected true or false");
    return value_.text == "true";
  }
  std::int64_t integer(std::int64_t least, std::int64_t most) const {
    const std::optional<std::int64_t> value = number_as<std::int64_t>();
    if (!value || *value < least || *value > most) {
      fail(fmt::format("expected a whole number from {} to {}", least, most));
    }
    return *value;
  }
  std::uint64_t seed() const {
    const std::optional<std::uint64_t> value = number_as<std::uint64_t>();
    if (!value) fail("expected a whole number of at least 0");
    return *value;
  }
  double number(double least, double most) const {
    const std::optional<double> value = number_as<double>();
    if (!value || !(*value >= least && *value <= most)) {
      fail(fmt::format("expected a number from {} to {}", least, most));
    }
    return *value;
  }
  Bytes bytes() const { return integer(0, INT64_MAX); }
  Picoseconds picoseconds() const {
    return std::llround(number(0, kMaxSeconds) * static_cast<double>(kPicosecondsPerSecond));
  }
  /// Rethrows an InputError of `read`, which has no place of its own, as one at this path.
  template <class Read>
  auto located(Read read) const {
    try {
      return read();
    } catch (const InputError& error) {
      fail(error.diagnostics().empty() ? "is wrong" : error.diagnostics()[0].message);
    }
  }

 private:
  void expect_object() const {
    if (value_.kind != JsonNode::Kind::kObject) fail("expected an object");
  }
  /// Empty if the value is not a number or out of the type's range.
  template <class Number>
  std::optional<Number> number_as() const {
    return value_.kind == JsonNode::Kind::kNumber ? parse_number<Number>(value_.text) : std::nullopt;
  }

  const JsonNode& value_;
  std::string path_;
};

StepTime read_time(const Node& node) {
  StepTime time;
  time.computation = node["compute"].picoseconds();
  time.communication = node["communication"].picoseconds();
  time.exposed = node["exposed"].picoseconds();
  time.repeated = node["repeated"].picoseconds();
  return time;
}

std::vector<AxisRef> read_axes(const Node& node, const DeviceMesh& mesh) {
  std::vector<AxisRef> axes;
  for (const Node& item : node.items()) {
    const TensorLayout layout = item.located([&] { return parse_layout(fmt::format("[{{{}}}]", item.text()), mesh); });
    if (layout.dimensions.size() != 1 || layout.dimensions[0].parts.size() != 1 ||
        layout.dimensions[0].parts[0].axes.size() != 1) {
      item.fail("expected one axis");
    }
    axes.push_back(layout.dimensions[0].parts[0].axes[0]);
  }
  return axes;
}

DeviceMesh read_mesh(const Node& node) {
  std::vector<MeshAxis> axes;
  for (const Node& axis : node["axes"].items()) {
    axes.push_back({axis["name"].text(), axis["size"].integer(1, INT32_MAX)});
  }
  std::vector<std::int64_t> devices;
  for (const Node& device : node["devices"].items()) devices.push_back(device.integer(0, INT32_MAX));
  bool in_order = true;
  for (std::size_t i = 0; i < devices.size(); ++i) in_order = in_order && devices[i] == static_cast<std::int64_t>(i);
  return node.located([&] {
    const DeviceMesh mesh(axes);
    if (static_cast<std::int64_t>(devices.size()) != mesh.num_devices()) node["devices"].fail("expected one per point");
    return in_order ? mesh : DeviceMesh(axes, devices);
  });
}

PlanOptions read_options(const Node& node) {
  PlanOptions options;
  options.level = level_of(node["level"].integer(0, 2));
  if (node.has("costs")) {
    const std::string costs = node["costs"].text();
    if (costs != "cluster" && costs != "mindspore") node["costs"].fail("expected cluster or mindspore");
    options.costs = costs == "mindspore" ? StrategyCosts::kMindSpore : StrategyCosts::kCluster;
  }
  options.search = node["search"].text();
  options.seed = node["seed"].seed();
  if (node.has("memory_slack")) options.memory_slack = node["memory_slack"].number(0, 1e6);
  if (node.has("capacity_bytes")) options.capacity = node["capacity_bytes"].bytes();
  if (node.has("time_limit_seconds")) options.time_limit = node["time_limit_seconds"].number(0, 1e9);
  options.overlap = node.has("overlap") && node["overlap"].flag();
  options.uniform_layers = node.has("layers") && node["layers"].text() == "uniform";
  if (node.has("memory")) options.bounded_redistribution = node["memory"].text() != "unbounded";
  for (const auto& [name, value] : node["dims"].entries()) options.dims[name] = value.integer(1, INT64_MAX);
  for (const auto& [name, value] : node["set"].entries()) options.strategies[name] = value.text();
  return options;
}

Reduction read_reduction(const Node& node) {
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
    if (node.text() == to_string(reduction)) return reduction;
  }
  node.fail("expected sum, max or min");
}

LevelValue read_value(const Node& node, Level level) {
  const bool is_in_bytes = LevelValue{level, 0}.is_in_bytes();
  return {level, is_in_bytes ? node.bytes() : node.picoseconds()};
}

void read_result(const Node& node, PlanFile& plan) {
  bool is_known = false;
  for (const PlanStatus status :
       {PlanStatus::kOptimal, PlanStatus::kFeasible, PlanStatus::kInfeasible, PlanStatus::kNoPlanFound}) {
    if (node["status"].text() == to_string(status)) {
      plan.status = status;
      is_known = true;
    }
  }
  if (!is_known) node["status"].fail("expected optimal, feasible, infeasible or none_found");
  plan.candidates_complete = !node.has("candidates") || node["candidates"].text() == "complete";
  const Level level = plan.options.level;
  if (node["objective"].text() != to_string(level)) {
    node["objective"].fail(fmt::format("expected {}, the objective of level {}", to_string(level), number_of(level)));
  }
  if (node.has("mindspore")) {
    const auto value = [&](const char* key) {
      const double parts = node["mindspore"][key].number(0, 1e17) * static_cast<double>(kPartsOfWeightedByte);
      return MindSporeValue{std::llround(parts)};
    };
    plan.mindspore = {value("weighted_bytes"), value("bound")};
  }
  plan.cost = read_value(node["cost"], level);
  plan.bound = read_value(node["bound"], level);
  if (node.has("free_bound")) plan.free_bound = read_value(node["free_bound"], level);
  if (node.has("overlapped")) {
    plan.overlapped_bound = node["overlapped"]["bound"].picoseconds();
    plan.is_bound_one_block_ahead = node["overlapped"].has("one_block_ahead");
  }
  plan.time = read_time(node["seconds"]);
  plan.peak = node["peak_bytes"].bytes();
}

bool is_equal(const Node& result) {
  if (result.text() != "equal" && result.text() != "different") result.fail("expected equal or different");
  return result.text() == "equal";
}

ProofRecord read_proof(const Node& node) {
  ProofRecord proof;
  proof.equal = is_equal(node["result"]);
  proof.seed = node["seed"].seed();
  for (const auto& [name, size] : node["dims"].entries()) proof.dims[name] = size.integer(1, INT64_MAX);
  constexpr double kMost = std::numeric_limits<double>::max();
  for (const Node& check : node["checks"].items()) {
    // Numbers that are not finite are written as null.
    const auto number = [&](const char* key) { return check.has(key) ? check[key].number(0, kMost) : HUGE_VAL; };
    proof.checks.push_back({check["dtype"].text(), static_cast<int>(check["steps"].integer(0, INT32_MAX)),
                            check["compared"].text(), number("largest_difference"), number("allowed"),
                            is_equal(check["result"])});
  }
  return proof;
}

PlanFile::Operator read_operator(const Node& node, const DeviceMesh& mesh) {
  PlanFile::Operator op;
  op.name = node["name"].text();
  op.place = node.place();
  const Node strategy = node["strategy"];
  op.is_user = strategy["origin"].text() == "user";
  for (const auto& [factor, axes] : strategy["factors"].entries()) {
    op.factors.emplace_back(factor, read_axes(axes, mesh));
  }
  if (strategy.has("partial")) {
    const Node partial = strategy["partial"];
    op.partial = read_axes(partial["axes"], mesh);
    op.group = static_cast<std::uint32_t>(partial["group"].integer(0, INT32_MAX));
    op.reduction = read_reduction(partial["reduction"]);
  }
  return op;
}

}  // namespace

PlanFile read_plan_file(const std::string& text, const std::string& file) {
  const JsonNode document = parse_json(text, file);
  const Node root(document, "");
  const std::string schema = root["schema"].text();
  const std::string_view own = plan_schema_name();
  const std::size_t dot = schema.find('.', schema.find('/') == std::string::npos ? 0 : schema.find('/'));
  if (schema.substr(0, dot) != own) {  // shardplan.plan/1.2 is accepted too
    if (schema.substr(0, dot) == local_plan_schema_name()) {
      root["schema"].fail(fmt::format(
          "'{}': these are the costs of {}, a model written per device; they hold no plan to read back, so give the "
          "model's file instead",
          schema, root["model"].text()));
    }
    root["schema"].fail(fmt::format("found '{}', this version reads '{}'", schema, own));
  }
  PlanFile plan;
  plan.file = file;
  plan.model_name = root["model"]["name"].text();
  plan.model_file = root["model"]["file"].text();
  plan.model_text = root["model"]["text"].text();
  plan.cluster_name = root["cluster"]["name"].text();
  plan.cluster_text = root["cluster"]["text"].text();
  plan.options = read_options(root["options"]);
  plan.mesh = read_mesh(root["mesh"]);
  if (root["options"].has("pieces")) plan.options.pieces = read_axes(root["options"]["pieces"], plan.mesh);
  if (root.has("workers"))
    plan.workers = std::max<std::int64_t>(1, static_cast<std::int64_t>(root["workers"].items().size()));
  read_result(root["result"], plan);
  for (const Node& node : root["baselines"].items()) {
    plan.baselines.push_back(
        {node["name"].text(), read_time(node["seconds"]), node["peak_bytes"].bytes(), node["fits"].flag()});
  }
  if (root.has("proof")) plan.proof = read_proof(root["proof"]);
  plan.operators_place = root["operators"].place();
  plan.tensors_place = root["tensors"].place();
  for (const Node& node : root["operators"].items()) plan.operators.push_back(read_operator(node, plan.mesh));
  for (const Node& node : root["tensors"].items()) {
    PlanFile::Tensor tensor;
    tensor.name = node["name"].text();
    tensor.place = node.place();
    for (const Node& version : node["versions"].items()) {
      tensor.versions.push_back(version.located([&] { return parse_layout(version.text(), plan.mesh); }));
    }
    plan.tensors.push_back(std::move(tensor));
  }
  return plan;
}

namespace {

/// Collects faults up to a limit, since a file of another model would give thousands.
class FaultList {
 public:
  void add(const SourcePlace& place, std::string message) {
    if (faults_.size() < kMaxFaults) faults_.push_back({place, std::move(message), ""});
  }
  void throw_if_any() {
    if (!faults_.empty()) throw InputError(std::move(faults_));
  }

 private:
  std::vector<Diagnostic> faults_;
};

constexpr std::size_t kMostMissing = 3;  // names that are listed

/// "'a' is missing", "'a', 'b', 'c' and 4 more are missing".
std::string missing_text(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kMostMissing; ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kMostMissing) text += fmt::format(" and {} more", names.size() - kMostMissing);
  return text + (names.size() == 1 ? " is missing" : " are missing");
}

}  // namespace

Decisions decisions_of(const PlanFile& plan, const OperatorGraph& graph, const TensorVersions& versions,
                       const DeviceMesh& mesh) {
  FaultList faults;
  if (mesh != plan.mesh) {
    faults.add({plan.file, 0, 0},
               fmt::format("mesh: the file has {}, its cluster gives {}", plan.mesh.to_string(), mesh.to_string()));
    faults.throw_if_any();
  }
  Decisions decisions;
  decisions.strategies.resize(graph.operators().size());
  decisions.versions.resize(versions.all.size());
  IdVector<OperatorId, char> is_set(graph.operators().size(), 0);
  for (const PlanFile::Operator& op : plan.operators) {
    const std::optional<OperatorId> id = graph.find_operator(op.name);
    if (!id) {
      faults.add(op.place, fmt::format("operators: the model has no '{}'", op.name));
      continue;
    }
    if (is_set[*id]) faults.add(op.place, fmt::format("operators: '{}' is listed twice", op.name));
    is_set[*id] = 1;
    const Operation& operation = graph.operation(*id);
    Strategy strategy;
    strategy.factors.resize(operation.rule.factors.size());
    strategy.partial = op.partial;
    strategy.group = op.group;
    strategy.reduction = op.reduction;
    for (const auto& [name, axes] : op.factors) {
      const std::optional<std::uint32_t> factor = operation.rule.find(name);
      if (factor) {
        strategy.factors[*factor] = axes;
      } else {
        faults.add(op.place, fmt::format("operators: {} has no factor '{}'", op.name, name));
      }
    }
    const std::size_t groups =
        strategy.reduction == Reduction::kSum ? operation.rule.linear.size() : operation.rule.monotone.size();
    if (!strategy.partial.empty() && strategy.group >= groups) {
      faults.add(op.place,
                 fmt::format("operators: {}: no operand group {} can carry a partial sum", op.name, op.group));
      continue;
    }
    if (const std::string fault = check_strategy(operation, strategy, mesh); !fault.empty()) {
      faults.add(op.place, fmt::format("operators: {}: {}", op.name, fault));
    }
    decisions.strategies[*id] = std::move(strategy);
  }
  std::vector<std::string> missing;
  for (const OperatorId id : graph.operators().ids()) {
    if (!is_set[id]) missing.push_back(graph.operators()[id].name);
  }
  if (!missing.empty()) faults.add(plan.operators_place, "operators: " + missing_text(missing));
  faults.throw_if_any();

  std::map<std::string_view, const PlanFile::Tensor*> tensors;
  for (const PlanFile::Tensor& tensor : plan.tensors) tensors.emplace(tensor.name, &tensor);
  IdVector<TensorId, std::size_t> next(graph.tensors().size(), 0);
  for (const VersionId id : versions.all.ids()) {
    const TensorId tensor = versions.all[id].tensor;
    const GraphTensor& named = graph.tensor(tensor);
    const auto found = tensors.find(named.name);
    const std::size_t number = next[tensor]++;
    if (found == tensors.end()) {
      if (number == 0) missing.push_back(named.name);
      continue;
    }
    if (number >= found->second->versions.size()) {
      faults.add(found->second->place, fmt::format("tensors: '{}' has no version {}", named.name, number));
      continue;
    }
    const TensorLayout& layout = found->second->versions[number];
    if (const std::string fault = check_uneven_layout(layout, mesh, named.type.shape); !fault.empty()) {
      faults.add(found->second->place, fmt::format("tensors: {}: {}", named.name, fault));
      continue;
    }
    decisions.versions[id] = canonical(layout, mesh, named.type.shape);
    const TensorVersion& version = versions.all[id];
    if (version.kind == TensorVersion::Kind::kProduced &&
        *decisions.versions[id] != result_layout(graph.operation(*named.producer),
                                                 decisions.strategies[*named.producer], mesh, named.result)) {
      faults.add(found->second->place,
                 fmt::format("tensors: {} does not have the layout that its operator produces", named.name));
    }
    const bool may_be_partial = version.kind == TensorVersion::Kind::kProduced ||
                                version.kind == TensorVersion::Kind::kDelivered ||
                                version.kind == TensorVersion::Kind::kKept;
    if (!decisions.versions[id]->partial.empty() && !may_be_partial) {
      faults.add(found->second->place, fmt::format("tensors: {} is partial where it must be complete", named.name));
    }
    if (version.kind == TensorVersion::Kind::kUpdated && version.stored &&
        decisions.versions[id] != decisions.versions[*version.stored]) {
      faults.add(found->second->place,
                 fmt::format("tensors: {} is not updated in the layout in which it is stored", named.name));
    }
  }
  if (!missing.empty()) faults.add(plan.tensors_place, "tensors: " + missing_text(missing));
  faults.throw_if_any();
  return decisions;
}

}  // namespace shardplan
