#include <memory>

#include "base/write_files.h"
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "costmodel/calibration/calibrate.h"
#include "report/calibration_report.h"

namespace shardplan {
namespace {

struct CalibrateArguments {
  std::string cluster;
  std::string measurements;
  std::string out;  // a file; empty: none
};

int run(const CalibrateArguments& arguments) {
  const Cluster cluster = read_cluster(arguments.cluster);
  say_notices(cluster.notices);
  const Calibration calibration = calibrate(cluster, read_measurements(arguments.measurements, cluster));
  if (!arguments.out.empty()) write_file(arguments.out, calibration.cluster.text);
  print(calibration_report(calibration));
  return kDone;
}

}  // namespace

Command calibrate_command() {
  const auto arguments = std::make_shared<CalibrateArguments>();
  Command command;
  command.name = "calibrate";
  command.topic = "Look up";
  command.summary = "Fit a cluster's constants to measured times, and report the remaining differences";
  command.examples = {
      {"dgx-a100 configs/measurements/dgx-a100.yaml", "fit kernel start, efficiencies and links"},
      {"dgx-a100 configs/measurements/dgx-a100.yaml --out mine.yaml",
       "also write the cluster file, for --cluster mine.yaml"},
  };
  command.options = {{"",
                      {argument("CLUSTER", &arguments->cluster, "a preset, with xN for N nodes, or a cluster file")
                           .completed_by(Completion::kCluster),
                       argument("MEASUREMENTS", &arguments->measurements,
                                "times of operators and collectives (YAML); docs/clusters.md")
                           .completed_by(Completion::kFile)}},
                     {"Output",
                      {option("--out", "FILE", &arguments->out, "write the fitted cluster into this file")
                           .completed_by(Completion::kFile)
                           .writing()}}};
  command.action = [arguments] { return run(*arguments); };
  return command;
}

}  // namespace shardplan
