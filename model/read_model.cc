#include "model/read_model.h"

#include <utility>

#include "base/yaml.h"
#include "model/yaml_model_source.h"

namespace shardplan {

std::shared_ptr<const ModelSource> model_source(std::string text, std::string file) {
  return YamlModelSource::parse(std::move(text), std::move(file));
}

Model read_model(const std::string& path, const ModelOverrides& overrides) {
  return read_model_text(read_text_file(path), path, overrides);
}

Model read_model_text(const std::string& text, const std::string& file, const ModelOverrides& overrides) {
  return model_source(text, file)->at(overrides);
}

}  // namespace shardplan
