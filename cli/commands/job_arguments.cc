#include "cli/commands/job_arguments.h"

#include <cstdlib>

#include "base/error.h"
#include "base/parse_number.h"
#include "cli/interrupt.h"

namespace shardplan {
namespace {

constexpr int kMostPort = 65535;

/// Empty if the variable is unset or empty.
std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

int number_of(const std::string& text, const char* name, int least, int most) {
  const auto value = parse_number<int>(text);
  if (!value || *value < least || *value > most) {
    throw InputError(SourcePlace{}, "{} is '{}'; expected a whole number from {} to {}", name, text, least, most);
  }
  return *value;
}

int number_of_job(const std::optional<int>& given, const char* option, const char* name, int least, int most) {
  if (given && *given < least) throw InputError(SourcePlace{}, "{} {}: expected at least {}", option, *given, least);
  if (given) return *given;
  const std::optional<std::string> text = variable(name);
  if (!text) throw InputError(SourcePlace{}, "neither {} nor {} is given", name, option);
  return number_of(*text, name, least, most);
}

}  // namespace

OptionGroup job_options(JobArguments& arguments) {
  return {"The job",
          {option("--host", "ADDRESS", &arguments.host, "the scheduler's address")
               .with_default("MS_SCHED_HOST, else 127.0.0.1"),
           option("--port", "N", &arguments.port, "the scheduler's port; 0: the scheduler takes a free one",
                  from_to(0, kMostPort))
               .with_default("MS_SCHED_PORT"),
           option("--workers", "N", &arguments.workers, "number of workers", from_to(1, kMostWorkers))
               .with_default("MS_WORKER_NUM"),
           option("--timeout", "SECONDS", &arguments.timeout,
                  "how long to wait until all have connected, and for a sign of life afterwards", positive())}};
}

JobOptions job_of(const JobArguments& arguments, const std::string& role) {
  const std::string said = variable("MS_ROLE").value_or(role);
  if (said == "MS_SCHED" && role == "MS_WORKER") {
    throw InputError(SourcePlace{}, "MS_ROLE is MS_SCHED; use 'shardplan scheduler'");
  }
  if (said == "MS_WORKER" && role == "MS_SCHED") {
    throw InputError(SourcePlace{}, "MS_ROLE is MS_WORKER; use 'shardplan worker MODEL'");
  }
  if (said != role) throw InputError(SourcePlace{}, "MS_ROLE is '{}'; expected {}", said, role);
  JobOptions options;
  options.host = arguments.host ? *arguments.host : variable("MS_SCHED_HOST").value_or(options.host);
  options.port = number_of_job(arguments.port, "--port", "MS_SCHED_PORT", role == "MS_SCHED" ? 0 : 1, kMostPort);
  options.workers = number_of_job(arguments.workers, "--workers", "MS_WORKER_NUM", 1, kMostWorkers);
  options.timeout = arguments.timeout;
  options.stop = interrupt_token();
  return options;
}

std::optional<int> rank_of_environment() {
  const std::optional<std::string> text = variable("MS_NODE_ID");
  if (!text) return std::nullopt;
  return number_of(*text, "MS_NODE_ID", 0, kMostWorkers - 1);
}

}  // namespace shardplan
