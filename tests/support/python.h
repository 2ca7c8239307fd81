#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/write_files.h"
#include "tests/support/files.h"

namespace shardplan {

/// The system's python3 if there is one: others may be scripts that take ten times as long to find theirs.
constexpr const char* kPython = "PATH=/usr/bin:$PATH python3";

/// True if there is a python3; `run test` installs one.
inline bool has_python() { return std::system(fmt::format("{} -c pass >/dev/null 2>&1", kPython).c_str()) == 0; }

/// True if the user's python3 has jsonschema.
inline bool has_jsonschema() { return std::system("python3 -c 'import json, jsonschema' >/dev/null 2>&1") == 0; }

/// Runs `python3 SCRIPT ARGUMENTS` in a folder of its own that holds `files`; the folder at `path` is searched for
/// modules, and `environment` is set. True if it ends well; what it prints goes to the test's output.
inline bool python_runs(const std::string& script, const std::vector<NamedText>& files, const std::string& path,
                        const std::string& environment = "", const std::string& python = kPython) {
  const TemporaryFolder folder;
  write_files(folder.path(), files);
  const std::string command = fmt::format("cd {} && {} PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={}:. {} {}", folder.path(),
                                          environment, std::filesystem::absolute(path).string(), python, script);
  return std::system(command.c_str()) == 0;
}

/// True if a JSON document is as a JSON schema says; needs `has_jsonschema`.
inline bool meets_schema(const std::string& document, const std::string& schema) {
  return python_runs("check.py",
                     {{"check.py",
                       "import json, jsonschema\n"
                       "jsonschema.validate(json.load(open('document.json')), json.load(open('schema.json')))\n"},
                      {"document.json", document},
                      {"schema.json", schema}},
                     ".", "", "python3");
}

}  // namespace shardplan
