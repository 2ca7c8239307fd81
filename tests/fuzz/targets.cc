#include "tests/fuzz/targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/write_files.h"
#include "base/yaml.h"
#include "costmodel/calibration/measurements.h"
#include "costmodel/cluster/cluster.h"
#include "costmodel/cluster/cluster_mesh.h"
#include "costmodel/cluster/rank_table.h"
#include "costmodel/roofline_costs.h"
#include "graph/tensor_versions.h"
#include "layouts/mindspore_layout.h"
#include "layouts/redistribution/redistribution_planner.h"
#include "layouts/uneven.h"
#include "model/planned_model.h"
#include "model/read_model.h"
#include "operators/families/communication.h"
#include "planner/job_cluster.h"
#include "planner/local_plan.h"
#include "planner/model_planner.h"
#include "planner/problem/strategy_file.h"
#include "report/layouts/layout_report.h"
#include "report/layouts/redistribution_analysis.h"
#include "report/local_report.h"
#include "report/plan_file/plan_file.h"
#include "report/plan_file/plan_json.h"
#include "simulator/checkpoint/checkpoint.h"
#include "simulator/checkpoint/checkpoint_folder.h"
#include "simulator/execute/reference.h"
#include "simulator/local/local_executor.h"
#include "solver/contest/contest_problem.h"
#include "solver/searches/search_list.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/random_model.h"

namespace shardplan {
namespace {

namespace fs = std::filesystem;

constexpr char kFile[] = "case";

/// A target whose inputs are these texts, mutated; some are left unchanged.
FuzzTarget mutating(std::string name, std::uint64_t batch, const std::vector<std::string>& corpus,
                    std::function<void(const std::string&)> work) {
  FuzzTarget target;
  target.name = std::move(name);

  target.batch = batch;
  const Mutator mutator(corpus);
  target.make = [corpus, mutator](Random& random) {
    const std::string& text = corpus[random.below(corpus.size())];
    return random.below(64) == 0 ? text : mutator.mutated(text, random);
  };
  target.run = [work = std::move(work)](const std::string& text) { return result_of([&] { work(text); }); };
  return target;
}

std::vector<std::string> texts_of(const std::string& folder, const std::string& extension, std::size_t most_bytes) {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == extension && entry.file_size() <= most_bytes) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const std::string& path : paths) texts.push_back(read_text_file(path));
  return texts;
}

std::vector<std::string> random_models(std::size_t count, std::size_t most_operators) {
  std::vector<std::string> texts;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    Random random(seed);
    texts.push_back(random_model(random, most_operators));
  }
  return texts;
}

// ---- models

void read_model_case(const std::string& text) {
  const Model model = read_model_text(text, kFile);
  const OperatorGraph graph = planned_graph(one_micro_batch(model));
  tensor_versions(graph);
}

void plan_model_case(const std::string& text) {
  const auto model = std::make_shared<const Model>(read_model_text(text, kFile));
  constexpr std::size_t kMostOperators = 60;
  if (model->graph.operators().size() > kMostOperators) return;
  PlanOptions options;
  options.level = level_of(model->parallel.level);
  options.work_limit = 300'000;
  const ModelPlanner planner(model, read_cluster("ascend-910"), options);
  const Plan plan = planner.plan(options.level, model->parallel.search);
  if (!plan.strategies.empty()) plan_json(plan);
}

const std::vector<std::string> kLocalModels = {R"(shardplan: 1
dims: {B: 8, K: 4, own: B/group_size}
inputs: {x: {shape: [own, K], begin: [rank*own, 0]}}
parameters: {w: [K, K], v: {shape: [K, K], layerwise_parallel: true}}
constants: {n: group_size}
operators:
  a:    {op: MatMul, in: [x, w]}
  b:    {op: AllGather, in: a, group: [[0, 1], [3, 2]]}
  c:    {op: MatMul, in: [b, v]}
  d:    {op: ReduceScatter, in: c, group: [rank//2*2, rank//2*2+1], ranks: [0, 1]}
  mean: {op: ReduceMean, in: c}
  sum:  {op: AllReduce, in: mean, group: mp}
  loss: {op: RealDiv, in: [sum, n]}
outputs: [d]
loss: loss
training: {optimizer: adam}
parallel: {parallel_mode: hybrid_parallel, gradients_mean: true, device_num: 4, mesh: {dp: 2, mp: 2}}
)",
                                               R"(shardplan: 1
inputs: {x: [2, 3, 4, 4], y: [4, 2]}
operators:
  a: {op: NeighborExchangeV2, in: x, send_rank_ids: [1-rank, -1, -1, -1, 1-rank, -1, -1, -1], send_lens: [1, 2, 0, 0],
      recv_rank_ids: [1-rank, -1, -1, -1, 1-rank, -1, -1, -1], recv_lens: [2, 1, 0, 0]}
  b: {op: AlltoAll, in: y, split_count: 2, split_dim: 0, concat_dim: 1}
  c: {op: NeighborExchange, in: [y, b], send_rank_ids: [1-rank, rank], recv_rank_ids: [rank, 1-rank],
      recv_shapes: [[2, 4], [4, 2]], out: [e, f]}
  d: {op: Broadcast, in: e, root_rank: 1}
parallel: {parallel_mode: stand_alone, device_num: 2}
)"};

/// All ranks of a model written per device, their costs, and the execution of a step if it is small.
void local_model_case(const std::string& text) {
  const auto model = std::make_shared<const Model>(read_model_text(text, kFile));
  constexpr std::size_t kMostOperators = 60;
  constexpr std::int64_t kMostNumbers = 100'000;
  if (!model->local) return;
  const Cluster cluster = job_cluster(*model, {"ascend-910", {}, {}}).cluster;
  if (model->local->group_size > cluster.num_devices()) return;
  if (model->graph.operators().size() > kMostOperators) return;
  const LocalPlan plan = plan_locally(model, take_devices(cluster, model->local->group_size));
  local_plan_json(plan);
  std::vector<const OperatorGraph*> graphs;
  std::int64_t numbers = 0;
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    local_ir(plan, rank);
    graphs.push_back(plan.ranks[rank].plan.graph.get());
    for (const GraphTensor& tensor : graphs.back()->tensors()) {
      if (num_elements(tensor.type.shape) > kMostNumbers) return;
      numbers += num_elements(tensor.type.shape);
    }
    for (const GraphOperator& op : graphs.back()->operators()) {
      const OperatorType& type = *graphs.back()->operations()[op.operation].type;
      if (!is_executable(type) && !is_communication(type)) return;
    }
  }
  if (numbers > kMostNumbers) return;
  const LocalProgram program = local_program(graphs);
  LocalExecutor(program, 0).run(0, [&](std::int64_t rank, TensorId id) {
    return draw_tensor(*graphs[static_cast<std::size_t>(rank)], id, 0, 0);
  });
}

// ---- clusters

void read_cluster_case(const std::string& text) {
  const Cluster cluster = read_cluster_text(text, kFile);
  const Cluster again = read_cluster_text(write_cluster(cluster), "written");
  Cluster expected = cluster;
  expected.text = again.text;
  expected.notices = again.notices;
  if (!(again == expected)) throw std::runtime_error("a cluster that is written reads back as another");
  const DeviceMesh mesh = make_mesh(cluster);
  search_pieces(mesh);
  RooflineCosts(cluster, mesh);
}

// ---- plans

const std::string kSmallModel = R"(shardplan: 1
model: small
dims: {B: 8, H: 16}
inputs: {x: [B, H]}
operators:
  up:   {block: nn.Dense, in: x, out_channels: 2*H}
  act:  {op: GeLU, in: up}
  down: {block: nn.Dense, in: act, out_channels: H}
  loss: {op: ReduceMean, in: down}
loss: loss
training: {optimizer: momentum}
parallel: {mesh: {dp: 2, mp: 4}}
)";

Plan small_plan(Level level, PlanOptions options = {}) {
  const auto model = std::make_shared<const Model>(read_model_text(kSmallModel, "small.yaml"));
  options.level = level;
  options.work_limit = 1'000'000;
  return ModelPlanner(model, read_cluster("ascend-910"), options).plan(level, "auto");
}

void read_plan_case(const std::string& text) {
  const PlanFile file = read_plan_file(text, kFile);
  const auto model = std::make_shared<const Model>(
      model_source(file.model_text, file.model_file)->at({file.options.dims, file.options.strategies}));
  constexpr std::size_t kMostOperators = 60;
  if (model->graph.operators().size() > kMostOperators) return;
  Cluster cluster = read_cluster_text(file.cluster_text, file.cluster_name);
  try {
    if (cluster.num_devices() != file.mesh.num_devices()) cluster = take_devices(cluster, file.mesh.num_devices());
  } catch (const InputError&) {  // two parts of the file contradict each other
    return;
  }
  PlanOptions options = file.options;
  options.strategy_file = "";
  const ModelPlanner planner(model, cluster, options);
  if (!(planner.mesh() == file.mesh)) return;
  const Decisions decisions = decisions_of(file, planner.graph(), planner.versions(), file.mesh);
  plan_json(planner.decided(decisions, planner.unsolved(options.level, options.search)));
}

void read_strategies_case(const std::string& path, const std::string& text) {
  write_file(path, text);
  PlanOptions options;
  options.strategy_file = path;
  small_plan(Level::kSpeed, options);
}

// ---- other files

void read_contest_case(const std::string& text) {
  const StrategyProblem problem = parse_contest_problem(text, kFile);
  constexpr std::size_t kMostNodes = 100;
  if (problem.nodes.size() > kMostNodes) return;
  SearchOptions options;
  options.limits.work = 200'000;
  PlanResult result;
  try {
    result = make_search("auto")->search(problem, options);
  } catch (const InputError&) {  // numbers too large to add up, which is not the fault of one line
    return;
  }
  if (result.choice && evaluate(problem, *result.choice).forbidden_count > 0) {
    throw std::runtime_error("the search returns a choice that is forbidden");
  }
}

const std::string kLayouts = "x=2, y=4\n8, 6\n[{x}, {}]\n[{}, {x}]\n";
const std::vector<std::string> kLayoutCases = {
    kLayouts,
    "x=2, y=4\n16, 8\n[{x, y}, {}]\n[{}, {y:(1)2, x}]\n",
    "x=2, y=4\n8, 6\n[(2:{}, 4:{x}), {}]\n[{y}, {}] unreduced={x}\n",
    "a=2,b=2,c=2\n4, 4, 4\n[{a}, {b}, {c}]\n[{c}, {a}, {b}]\n",
    "n=3, g=4\n7, 12\n[{n}, {g}]\n[{g:(2)2}, {n}] unreduced={g:(1)2} unreduced_kind=max\n",
    "x=8\n24, 2\n[(3:{}, 8:{x}), {}]\n[{x:(4)2}, {}]\n",
};

std::vector<std::string> four_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size() && lines.size() < 4;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  lines.resize(4);
  return lines;
}

/// A mesh, a shape and two layouts: read, printed, read again, and one redistributed to the other.
void redistribute_case(const std::string& text) {
  const std::vector<std::string> lines = four_lines(text);
  const DeviceMesh mesh = DeviceMesh::parse(lines[0]);
  Shape shape;
  for (const std::string& token : tokens_of(lines[1])) {
    if (token.find_first_not_of("0123456789") == std::string::npos && token.size() < 4)
      shape.push_back(std::stol(token));
  }
  for (std::int64_t& extent : shape) extent = std::max<std::int64_t>(extent, 1);
  const TensorLayout ends[] = {parse_layout(lines[2], mesh), parse_layout(lines[3], mesh)};
  for (const TensorLayout& end : ends) {
    if (!(parse_layout(to_string(end, mesh), mesh) == end)) {
      throw std::runtime_error("a layout that is written reads back as another");
    }
    if (!check_uneven_layout(end, mesh, shape).empty()) return;
  }
  constexpr std::int64_t kMostDevices = 64;
  constexpr std::int64_t kMostElements = 10'000;
  if (mesh.num_devices() > kMostDevices || num_elements(shape) > kMostElements) return;
  RedistributionQuestion question;
  question.cluster = take_devices(read_cluster("dgx-a100x8"), 64);
  question.mesh = mesh;
  question.shape = shape;
  question.from = canonical(ends[0], mesh, shape);
  question.to = canonical(ends[1], mesh, shape);
  try {
    question.cluster = take_devices(question.cluster, mesh.num_devices());
  } catch (const InputError&) {  // no whole groups
  }
  const RedistributionReport report = answer(question, true);
  if (report.error && !report.is_verified()) throw std::runtime_error("a redistribution is wrong");
  json_report(report);
  layout_report(question.from, mesh, shape);
}

// ---- checkpoints

/// A safetensors file as text: the header, after a line with the length of the data and the error of that length.
std::string checkpoint_text(const std::string& header, std::int64_t data) {
  return fmt::format("0 {}\n{}", data, header);
}
std::string file_of_checkpoint(const std::string& text) {
  const std::size_t line = std::min(text.find('\n'), text.size());
  const std::string header = text.substr(std::min(line + 1, text.size()));
  long lie = 0;
  long data = 0;
  std::sscanf(text.c_str(), "%ld %ld", &lie, &data);
  const std::uint64_t length = header.size() + static_cast<std::uint64_t>(lie);
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(static_cast<std::size_t>(std::clamp(data, 0L, 100'000L)), '\1');
}

const std::vector<std::string> kCheckpoints = {
    checkpoint_text(R"({"w": {"dtype": "F64", "shape": [4, 2], "data_offsets": [0, 64]}})", 64),
    checkpoint_text(R"({"__metadata__": {"format": "shardplan.checkpoint/1", "model": "m", "step": "2", "seed": "0",
 "mesh": "dp=2, mp=2", "rank": "0", "shape:w": "[4, 2]", "layout:w": "[{mp}, {}]", "shape:b": "[2]", "layout:b": "[{}]"},
 "w": {"dtype": "F64", "shape": [2, 2], "data_offsets": [0, 32]}, "b": {"dtype": "F32", "shape": [2], "data_offsets": [32, 40]}}   )",
                    40),
    checkpoint_text(R"({"__metadata__": {"format": "shardplan.checkpoint/1", "model": "m", "step": "2", "seed": "0",
 "ranks": "1", "rank": "0", "shape:w": "[4, 2]", "begin:w": "[0, 0]", "shape:b": "[2]", "begin:b": "[0]"},
 "w": {"dtype": "F64", "shape": [4, 2], "data_offsets": [0, 64]}, "b": {"dtype": "F32", "shape": [2], "data_offsets": [64, 72]}})",
                    72),
};

void read_checkpoint_case(const std::string& folder, const std::string& text) {
  const std::string path = folder + "/" + (text.find("\"rank\"") == std::string::npos ? kIntegratedFile : rank_file(0));
  fs::remove_all(folder);
  write_file(path, file_of_checkpoint(text));
  Checkpoint checkpoint(folder);
  constexpr std::int64_t kMostDevices = 1024;
  if (checkpoint.form().mesh.num_devices() > kMostDevices) return;
  CheckpointForm form = integrated(checkpoint.form());
  transform_checkpoint(checkpoint, form, "");
  checkpoint.verify();
}

}  // namespace

std::string FuzzTarget::text(std::uint64_t seed, std::uint64_t index) const {
  Random random = Random(seed).fork(index);
  return make(random);
}

CaseResult fault_of(const std::string& what, const InputError& error, const Diagnostic& line) {
  std::string kind = what + ": ";
  bool is_quoted = false;
  for (const char c : line.message) {
    if (c == '\'' || c == '"') is_quoted = !is_quoted;
    if (!is_quoted && std::isdigit(static_cast<unsigned char>(c)) == 0) kind += c == '\n' ? ' ' : c;
  }
  return {CaseResult::Kind::kFault, kind + "\n" + error.what()};
}

CaseResult result_of(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const InputError& error) {
    for (const Diagnostic& fault : error.diagnostics()) {
      const bool has_place = !fault.place.file.empty() && fault.place.line > 0;
      if (!has_place) return fault_of("an error without a place", error, fault);
    }
    return {CaseResult::Kind::kRefused};
  }
}

std::vector<FuzzTarget> fuzz_targets(const std::string& folder) {
  std::vector<FuzzTarget> targets;
  constexpr std::size_t kMostModelBytes = 3000;
  std::vector<std::string> models = texts_of("configs", ".yaml", kMostModelBytes);
  for (const std::string& text : random_models(30, 12)) models.push_back(text);
  targets.push_back(mutating("models", 400, models, read_model_case));

  std::vector<std::string> small = random_models(40, 8);
  small.push_back(kSmallModel);
  for (const char* name : {"mlp", "semi-auto-matmul", "basic-blocks-net2", "mnist-train"}) {
    small.push_back(read_text_file(fmt::format("configs/{}.yaml", name)));
  }
  targets.push_back(mutating("planned models", 60, small, plan_model_case));

  std::vector<std::string> local = kLocalModels;
  for (const char* name : {"documents/collectives", "documents/left-out-collective", "hybrid-parallel-net"}) {
    local.push_back(read_text_file(fmt::format("configs/{}.yaml", name)));
  }
  targets.push_back(mutating("models per device", 200, local, local_model_case));

  std::vector<std::string> clusters = texts_of("configs/clusters", ".yaml", kMostModelBytes);
  targets.push_back(mutating("clusters", 1200, clusters, read_cluster_case));

  const Plan plan = small_plan(Level::kSpeed);
  targets.push_back(mutating("plans", 200, {plan_json(plan), plan_json(small_plan(Level::kMemory))}, read_plan_case));
  const std::string strategies = folder + "/strategies.json";
  targets.push_back(mutating("strategy files", 60, {strategy_file_text(plan)},
                             [strategies](const std::string& text) { read_strategies_case(strategies, text); }));

  const Cluster ascend = read_cluster("ascend-910");
  const Cluster two_nodes = read_cluster("ascend-910x2");
  targets.push_back(mutating("rank tables", 1600, {write_rank_table(ascend), write_rank_table(two_nodes)},
                             [two_nodes](const std::string& text) {
                               make_mesh(with_rank_table(two_nodes, read_rank_table_text(text, kFile)));
                             }));
  targets.push_back(
      mutating("contest problems", 2000,
               {read_text_file("tests/data/contest_problem.json"), read_text_file("tests/data/diamond_problem.json")},
               read_contest_case));
  const Cluster a100 = read_cluster("dgx-a100");
  targets.push_back(mutating("measurements", 1200, texts_of("configs/measurements", ".yaml", 20'000),
                             [a100](const std::string& text) { read_measurements_text(text, kFile, a100); }));
  FuzzTarget layouts = mutating("layouts", 1200, kLayoutCases, redistribute_case);
  // Layouts are given on command lines, where there is no line to name: only the kind of result counts.
  layouts.run = [](const std::string& text) {
    CaseResult result = result_of([&] { redistribute_case(text); });
    if (result.text.starts_with("an error without a place")) result = {CaseResult::Kind::kRefused};
    return result;
  };
  targets.push_back(std::move(layouts));
  const std::string checkpoint = folder + "/checkpoint";
  FuzzTarget checkpoints = mutating("checkpoints", 300, kCheckpoints, {});
  checkpoints.run = [checkpoint](const std::string& text) {  // binary files have no lines; their errors name the file
    CaseResult result = result_of([&] { read_checkpoint_case(checkpoint, text); });
    if (result.text.starts_with("an error without a place") && result.text.find(checkpoint) != std::string::npos) {
      result = {CaseResult::Kind::kRefused};
    }
    return result;
  };
  targets.push_back(std::move(checkpoints));
  targets.push_back(command_target(folder));
  targets.push_back(graph_target(4));
  return targets;
}

}  // namespace shardplan
