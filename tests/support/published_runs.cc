#include "tests/support/published_runs.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/yaml.h"
#include "model/read_model.h"
#include "planner/job_cluster.h"
#include "planner/model_planner.h"

namespace shardplan {
namespace {

const std::string kFolder = "bench/published/";

/// Values of a run: those of its own line, else those of `defaults:`.
class Line {
 public:
  Line(const YamlDocument& document, const YamlNode* defaults, const YamlNode& own)
      : document_(document), defaults_(defaults), own_(own) {}

  const YamlNode* find(const char* key) const {
    const YamlNode* node = own_.find(key);
    return node != nullptr || defaults_ == nullptr ? node : defaults_->find(key);
  }
  void read(const char* key, std::string& value) const {
    if (const YamlNode* node = find(key)) value = node->text;
  }
  void read(const char* key, std::int64_t& value) const {
    if (const YamlNode* node = find(key)) value = whole(*node);
  }
  void read(const char* key, bool& value) const {
    if (const YamlNode* node = find(key)) value = node->text == "true";
  }
  std::int64_t whole(const YamlNode& node) const {
    char* end = nullptr;
    const std::int64_t value = std::strtoll(node.text.c_str(), &end, 10);
    if (node.text.empty() || *end != '\0') {
      throw InputError(document_.place(node), "{} is not a whole number", describe(node));
    }
    return value;
  }

 private:
  const YamlDocument& document_;
  const YamlNode* defaults_;
  const YamlNode& own_;
};

/// "62.4 GB" or "82.4 GiB"; 0 for anything else.
double gibibytes(const std::string& text) {
  const bool is_decimal = text.ends_with(" GB");
  if (!is_decimal && !text.ends_with(" GiB")) return 0;
  return std::strtod(text.c_str(), nullptr) * (is_decimal ? 1e9 / (1 << 30) : 1);
}

PublishedRun read_run(const YamlDocument& document, const YamlNode* defaults, const YamlNode& node) {
  std::vector<Diagnostic> faults;
  check_keys(document, node,
             {"name",
              "what",
              "model",
              "dims",
              "cluster",
              "replicas",
              "data",
              "context",
              "zigzag",
              "tensor",
              "sequence_parallel",
              "gather_again",
              "whole_logits",
              "zero",
              "optimizer",
              "precision",
              "autocast",
              "fp8",
              "fp8_cache",
              "int8_weights",
              "wide_gradients",
              "narrow_gradients",
              "fused_attention",
              "written_norms",
              "fused_loss",
              "eager_loss",
              "recompute",
              "micro_batches",
              "overlap",
              "figure",
              "seconds",
              "assumed",
              "local_batch_norm",
              "bucket",
              "scatters_once",
              "own_gathers",
              "whole_table",
              "collective_matmul",
              "narrow_states",
              "memory"},
             "a run", faults);
  if (!faults.empty()) throw InputError(faults);
  const Line line(document, defaults, node);
  PublishedRun run;
  line.read("name", run.name);
  line.read("what", run.what);
  line.read("model", run.model);
  line.read("cluster", run.cluster);
  line.read("replicas", run.replicas);
  line.read("data", run.data);
  line.read("context", run.context);
  line.read("zigzag", run.zigzag);
  line.read("tensor", run.tensor);
  line.read("sequence_parallel", run.sequence_parallel);
  line.read("gather_again", run.gather_again);
  line.read("whole_logits", run.whole_logits);
  line.read("own_gathers", run.own_gathers);
  line.read("whole_table", run.whole_table);
  std::int64_t zero = 0;
  line.read("zero", zero);
  run.zero = static_cast<int>(zero);
  line.read("optimizer", run.optimizer);
  line.read("precision", run.precision);
  line.read("autocast", run.autocast);
  line.read("fp8", run.fp8);
  line.read("fp8_cache", run.fp8_cache);
  line.read("int8_weights", run.int8_weights);
  line.read("wide_gradients", run.wide_gradients);
  line.read("narrow_gradients", run.narrow_gradients);
  line.read("bucket", run.bucket);
  line.read("scatters_once", run.scatters_once);
  line.read("fused_attention", run.fused_attention);
  line.read("written_norms", run.written_norms);
  line.read("fused_loss", run.fused_loss);
  line.read("eager_loss", run.eager_loss);
  line.read("recompute", run.recompute);
  line.read("micro_batches", run.micro_batches);
  line.read("local_batch_norm", run.local_batch_norm);
  line.read("overlap", run.overlap);
  line.read("collective_matmul", run.collective_matmul);
  line.read("narrow_states", run.narrow_states);
  line.read("figure", run.figure);
  line.read("assumed", run.assumed);
  std::string seconds;
  line.read("seconds", seconds);
  run.seconds = std::strtod(seconds.c_str(), nullptr);
  line.read("memory", run.memory);
  run.gibibytes = gibibytes(run.memory);
  if (!(run.seconds > 0) && !(run.gibibytes > 0)) {
    throw InputError(document.place(node), "{}: expected seconds or memory, as '62.4 GB' or '82.4 GiB'", run.name);
  }
  for (const YamlNode* dims : {defaults == nullptr ? nullptr : defaults->find("dims"), node.find("dims")}) {
    if (dims == nullptr) continue;
    for (const YamlEntry& entry : dims->entries) run.dims[entry.key.text] = line.whole(entry.value);
  }
  return run;
}

/// "{$batch, $stored}" with the axes that the words stand for; words that stand for none leave no comma.
std::string with_axes(const std::string& text, const std::map<std::string, std::string>& axes) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      result += text[at++];
      continue;
    }
    const std::size_t begin = ++at;
    while (at < text.size() && text[at] >= 'a' && text[at] <= 'z') ++at;
    const auto found = axes.find(text.substr(begin, at - begin));
    const std::string word = found == axes.end() ? "" : found->second;
    result += word;
    const bool goes_on = text.compare(at, 2, ", ") == 0;
    if (word.empty() && goes_on) {
      at += 2;
    } else if (word.empty() && result.size() >= 2 && result.ends_with(", ")) {
      result.resize(result.size() - 2);
    }
  }
  return result;
}

}  // namespace

PublishedSource read_published(const std::string& path) {
  std::vector<Diagnostic> faults;
  const YamlDocument document = parse_yaml(read_text_file(path), path, faults);
  check_keys(document, document.root, {"title", "from", "assumed", "defaults", "runs"}, "", faults);
  if (!faults.empty()) throw InputError(faults);
  PublishedSource source;
  const Line line(document, nullptr, document.root);
  line.read("title", source.title);
  line.read("from", source.from);
  line.read("assumed", source.assumed);
  const YamlNode* runs = document.root.find("runs");
  if (runs == nullptr) throw InputError(document.place(document.root), "runs: missing");
  for (const YamlNode& node : runs->items) {
    source.runs.push_back(read_run(document, document.root.find("defaults"), node));
  }
  return source;
}

std::vector<PublishedSource> published_sources() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<PublishedSource> sources;
  for (const std::string& file : files) sources.push_back(read_published(file));
  return sources;
}

std::string model_text(const PublishedRun& run) {
  const bool is_shipped = run.model.find('/') != std::string::npos;
  std::string text = read_text_file(is_shipped ? run.model : kFolder + "models/" + run.model + ".yaml");
  for (const char* section : {"\ntraining:", "\nparallel:"}) text = text.substr(0, text.find(section)) + "\n";
  std::string mesh, batch;
  const auto axis = [&](const char* name, std::int64_t size, bool cuts_batch) {
    if (size == 1) return;
    mesh += fmt::format("{}{}: {}", mesh.empty() ? "" : ", ", name, size);
    if (cuts_batch) batch += fmt::format("{}{}", batch.empty() ? "" : ", ", name);
  };
  axis("replica", run.replicas, true);
  axis("data", run.data, true);
  axis("context", run.context, false);
  axis("tensor", run.tensor, false);
  const std::string tensor = run.tensor > 1 ? "tensor" : "";
  std::string stored = run.data > 1 ? "data" : "";
  if (run.context > 1) stored += stored.empty() ? "context" : ", context";
  std::map<std::string, std::string> words;
  for (const char* product : {"q", "k", "v", "up", "gate"}) {
    words[fmt::format("x{}", product)] = run.own_gathers ? fmt::format("x_{}", product) : "x";
    words[fmt::format("view{}", product)] = fmt::format("{}x_{}", run.own_gathers ? "" : "# ", product);
  }
  const bool is_reordered = run.context > 1 && run.zigzag;
  words["cachetype"] = run.fp8_cache ? "f8e4m3" : run.precision;
  words["positions"] = is_reordered ? "positions" : "# positions";
  words["givenpositions"] = is_reordered ? ", positions: [S]" : "";
  words["passedpositions"] = is_reordered ? ", positions" : "";
  words["readpositions"] = is_reordered ? ", positions, positions" : "";
  words["cutpositions"] = is_reordered ? ", \"[{context}]\", \"[{}]\"" : "";
  words.merge(
      std::map<std::string, std::string>{{"batch", batch},
                                         {"tensor", tensor},
                                         {"sequence", run.sequence_parallel ? tensor : ""},
                                         {"table", run.whole_table ? "" : tensor},
                                         {"vocabulary", run.whole_logits ? "" : tensor},
                                         {"context", run.context > 1 ? "context" : ""},
                                         {"stored", run.zero == 3 ? stored : ""},
                                         {"core", run.fused_attention ? "fused_core" : "core"},
                                         {"loss", run.eager_loss   ? "eager_loss"
                                                  : run.fused_loss ? "fused_loss"
                                                                   : "wide_loss"},
                                         {"uncompiled", run.eager_loss ? ", compiled: false" : ""},
                                         {"norm", run.written_norms ? "written_norm" : "fused_norm"},
                                         {"rotation", run.written_norms ? "written_rotation" : "fused_rotation"}});
  text = with_axes(text, words);
  if (!run.int8_weights.empty()) text += fmt::format("int8_weights: [{}]\n", run.int8_weights);
  if (!run.fp8.empty()) text += fmt::format("fp8: [{}]\n", run.fp8);
  if (run.is_inference()) {
    return text +
           fmt::format(
               "dtype: {}\nparallel: {{parallel_mode: semi_auto_parallel, level: 2, device_num: {}, mesh: {{{}}}}}\n",
               run.precision, run.replicas * run.data * run.context * run.tensor, mesh.empty() ? "data: 1" : mesh);
  }
  if (run.autocast) text += fmt::format("autocast: {}\n", run.precision);
  text += fmt::format("training: {{optimizer: {}, micro_batches: {}", run.optimizer, run.micro_batches);
  if (run.precision != "f32" && !run.autocast) text += fmt::format(", mixed_precision: {}", run.precision);
  if (run.narrow_gradients) text += fmt::format(", gradient_dtype: {}", run.precision);
  if (!run.recompute.empty()) text += fmt::format(", recompute: [{}]", run.recompute);
  if (run.narrow_states) text += fmt::format(", state_dtype: {}, master_copy: false", run.precision);
  text += fmt::format(
      "}}\nparallel: {{parallel_mode: {}, level: 2, device_num: {}, mesh: {{{}}}, gradient_fp32_sync: {}, "
      "enable_parallel_optimizer: {}",
      run.local_batch_norm ? "data_parallel, batch_norm: local" : "semi_auto_parallel",
      run.replicas * run.data * run.context * run.tensor, mesh.empty() ? "data: 1" : mesh, run.wide_gradients,
      run.zero == 1);
  if (run.bucket > 0) text += fmt::format(", comm_fusion: {{allreduce: {{mode: size, config: {}}}}}", run.bucket);
  if (run.gather_again) text += ", gather_again: true";
  if (run.scatters_once) text += ", gradient_accumulation_shard: false";
  text += "}\n";
  return text;
}

Plan plan_of(const PublishedRun& run) {
  const ModelOverrides overrides{run.dims, {}};
  auto model = std::make_shared<const Model>(read_model_text(model_text(run), run.name + ".yaml", overrides));
  const bool is_file = run.cluster.find('.') != std::string::npos;
  JobCluster job = job_cluster(
      *model,
      {.cluster = is_file ? kFolder + "clusters/" + run.cluster : run.cluster, .device_num = {}, .rank_table = {}});
  job.cluster.collectives.collective_matmul |= run.collective_matmul;
  PlanOptions options;
  options.level = Level::kSpeed;
  options.overlap = run.overlap;
  options.reorders_kernels = false;
  return ModelPlanner(model, job.cluster, options).plan(Level::kSpeed, "auto");
}

}  // namespace shardplan
