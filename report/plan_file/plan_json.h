#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/plan.h"

namespace shardplan {

/// The result of a proof by execution, as stored in plan.json.
struct ProofRecord {
  struct Check {
    std::string dtype;  // "f64", "f32"
    int steps = 0;
    std::string compared;  // "loss, 148 parameters"
    double largest_difference = 0;
    double allowed = 0;
    bool equal = false;
  };
  bool equal = false;
  std::uint64_t seed = 0;
  std::map<std::string, std::int64_t> dims;  // as shrunk
  std::vector<Check> checks;
};

/// plan.json: the complete plan in SI units, without clock or host, so equal input gives equal bytes. Its form is
/// `plan_schema`. `read_plan_file` (report/plan_file/plan_file.h) reads it back.
std::string plan_json(const Plan& plan, const ProofRecord* proof = nullptr);

/// The JSON Schema of plan.json.
std::string plan_schema();

/// "shardplan.plan/1"
std::string_view plan_schema_name();

}  // namespace shardplan
