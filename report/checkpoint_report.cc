#include "report/checkpoint_report.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "base/units.h"
#include "report/text/text_table.h"

namespace shardplan {
namespace {

constexpr std::size_t kMostRanks = 16;  // shown in text

std::string devices_text(const CheckpointForm& form) {
  if (form.is_integrated) return "integrated, one file";
  const std::int64_t ranks = form.mesh.num_devices();
  if (form.is_per_device) return fmt::format("written per device, {} rank{}", ranks, ranks == 1 ? "" : "s");
  return fmt::format("{} rank{}{}", ranks, ranks == 1 ? "" : "s",
                     form.mesh.axes().empty() ? "" : ", mesh " + form.mesh.to_string());
}

std::string subject_text(const std::string& path, const CheckpointForm& form) {
  const std::string of = form.model.empty() ? "" : fmt::format(", step {} of {}", form.step, form.model);
  return fmt::format("{}{}, {}, {} tensors\n", path, of, devices_text(form), form.tensors.size());
}

Json json_of(const CheckpointForm& form) {
  Json json;
  json["model"] = form.model;
  json["step"] = form.step;
  json["seed"] = form.seed;
  json["integrated"] = form.is_integrated;
  json["mesh"] = form.is_per_device ? Json() : Json(form.mesh.to_string());
  if (form.is_per_device) json["ranks"] = form.mesh.num_devices();
  json["tensors"] = Json::array();
  for (const CheckpointTensor& tensor : form.tensors) {
    Json of = {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}};
    if (form.is_per_device) {
      of["pieces"] = Json::array();
      for (const auto& [rank, piece] : tensor.pieces) {
        of["pieces"].push_back({{"rank", rank}, {"begin", piece.begin()}, {"shape", piece.shape()}});
      }
    } else {
      of["layout"] = to_string(tensor.layout, form.mesh);
    }
    json["tensors"].push_back(std::move(of));
  }
  return json;
}

}  // namespace

std::string verification_text(const Checkpoint& checkpoint, const Checkpoint::Verification& verification) {
  std::string text = subject_text(checkpoint.path(), checkpoint.form());
  text += fmt::format("whole: {}, {}", counted(verification.files, "file"), format_bytes(verification.bytes));
  if (verification.copies > 0) {
    text +=
        fmt::format("; {} equal", verification.copies == 1 ? "1 copy" : fmt::format("{} copies", verification.copies));
  }
  return text + "\n";
}

std::string verification_json(const Checkpoint& checkpoint, const Checkpoint::Verification& verification) {
  Json json;
  json["schema"] = "shardplan.checkpoint/1";
  json["path"] = checkpoint.path();
  json["checkpoint"] = json_of(checkpoint.form());
  json["whole"] = true;
  json["files"] = verification.files;
  json["bytes"] = verification.bytes;
  json["equal_copies"] = verification.copies;
  return json_document(json);
}

std::string transformation_text(const Checkpoint& from, const CheckpointForm& to, const std::vector<RankReads>& reads,
                                const std::string& written) {
  std::string text = subject_text(from.path(), from.form());
  text +=
      fmt::format("-> {}{}, {} tensors\n", written.empty() ? "" : written + ", ", devices_text(to), to.tensors.size());
  for (std::size_t i = 0; i < std::min(reads.size(), kMostRanks); ++i) {
    const std::string sources =
        from.form().is_integrated
            ? "the file"
            : fmt::format("rank{} {}", reads[i].sources.size() == 1 ? "" : "s", fmt::join(reads[i].sources, ", "));
    text += fmt::format("  {:8} {} {} from {}\n", to.is_integrated ? "all" : fmt::format("rank {}", reads[i].rank),
                        written.empty() ? "would read" : "read", format_bytes(reads[i].bytes), sources);
  }
  if (reads.size() > kMostRanks) text += fmt::format("  and {} more ranks\n", reads.size() - kMostRanks);
  return text;
}

std::string transformation_json(const Checkpoint& from, const CheckpointForm& to, const std::vector<RankReads>& reads,
                                const std::string& written) {
  Json json;
  json["schema"] = "shardplan.checkpoint/1";
  json["path"] = from.path();
  json["written"] = written.empty() ? Json() : Json(written);
  json["checkpoint"] = json_of(to);
  json["reads"] = Json::array();
  for (const RankReads& of : reads) {
    json["reads"].push_back({{"rank", of.rank}, {"sources", of.sources}, {"bytes", of.bytes}});
  }
  return json_document(json);
}

}  // namespace shardplan
