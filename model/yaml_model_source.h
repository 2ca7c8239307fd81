#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/model_source.h"
#include "model/syntax/model_syntax.h"

namespace shardplan {

/// A model file in the YAML model language (docs/model-language.md). The text is parsed once; asking at other sizes
/// starts from what was parsed.
class YamlModelSource : public ModelSource, public std::enable_shared_from_this<YamlModelSource> {
 public:
  /// Throws InputError if the text is no YAML document.
  static std::shared_ptr<const YamlModelSource> parse(std::string text, std::string file);

  Model at(const ModelOverrides& overrides) const override;
  const std::string& file() const override { return file_; }
  const std::string& text() const override { return text_; }

 private:
  YamlModelSource() = default;
  /// The model at these dims, or at those of the file where there are none.
  Model read(const ModelOverrides& overrides, const std::map<std::string, std::int64_t>* sizes) const;

  std::string text_;
  std::string file_;
  ModelSyntax syntax_;
  std::vector<Diagnostic> faults_;  // what the syntax check found
};

}  // namespace shardplan
