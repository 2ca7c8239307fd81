// Workers as real processes, which find each other through a scheduler at a port chosen by the kernel.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "tests/cli/background_process.h"

namespace shardplan {
namespace {

using Clock = std::chrono::steady_clock;

const std::string kTwo = "worker tests/cli/two_workers.yaml ";
const std::string kEndless = " --steps 100000";

/// A scheduler that is waiting for workers.
class RunningScheduler {
 public:
  explicit RunningScheduler(int workers, const std::string& options = "")
      : workers_(workers), process_(fmt::format("scheduler --port 0 --workers {} {}", workers, options)) {
    EXPECT_TRUE(process_.waits_for("workers\n")) << process_.err();
    const std::string text = process_.err();
    const std::string before = "scheduler at 127.0.0.1:";
    const std::size_t at = text.find(before);
    if (at != std::string::npos) port_ = std::stoi(text.substr(at + before.size()));
  }

  int port() const { return port_; }
  BackgroundProcess& process() { return process_; }
  /// The command line of a worker of this job.
  std::string job() const { return fmt::format(" --port {} --workers {} ", port_, workers_); }
  void wait_for_workers() {
    EXPECT_TRUE(process_.waits_for(fmt::format("{} of {} workers are here", workers_, workers_))) << process_.err();
  }

 private:
  int workers_;
  BackgroundProcess process_;
  int port_ = 0;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The numbers in a table's rows: step, one device, workers, difference.
std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> row;
    for (std::string word; words >> word;) row.push_back(word);
    if (row.size() == 4 && line.starts_with("  ") && row[0].find_first_not_of("0123456789") == std::string::npos) {
      rows.push_back(row);
    }
  }
  return rows;
}

/// Runs a job of `model`; returns what worker 0 printed. All others print nothing.
std::string output_of_job(const std::string& model, int workers, const std::string& options) {
  RunningScheduler scheduler(workers);
  std::vector<std::unique_ptr<BackgroundProcess>> processes;
  for (int rank = 0; rank < workers; ++rank) {
    processes.push_back(std::make_unique<BackgroundProcess>(
        fmt::format("worker {} {} --rank {} {}", model, scheduler.job(), rank, options)));
  }
  std::string output;
  for (int rank = 0; rank < workers; ++rank) {
    const ProgramRun run = processes[static_cast<std::size_t>(rank)]->wait();
    EXPECT_EQ(run.exit_code, 0) << "worker " << rank << ": " << run.err;
    if (rank == 0) output = run.out;
    if (rank > 0) {
      EXPECT_EQ(run.out, "") << "worker " << rank;
    }
  }
  const ProgramRun bringing = scheduler.process().wait();
  EXPECT_EQ(bringing.exit_code, 0) << bringing.err;
  return output;
}

TEST(WorkerTest, LenetTrainsAndInfersOverFiveProcessesAsOnOneDevice) {
  const auto rows = rows_of(output_of_job("configs/lenet-place.yaml", 5, "--steps 3 --batches 2 --dim B=4"));
  ASSERT_EQ(rows.size(), 5u);  // three steps, two batches
  for (const std::vector<std::string>& row : rows) {
    EXPECT_EQ(row[1], row[2]);
    EXPECT_EQ(row[3], "0");
  }
  EXPECT_NE(rows[0][1], rows[2][1]);
  EXPECT_NE(rows[3][1], rows[4][1]);
  // The same numbers as with devices in one process.
  const ProgramRun together = run_program("simulate configs/lenet-place.yaml --steps 3 --full-size --dim B=4");
  const auto expected = rows_of(together.out);
  ASSERT_EQ(expected.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(rows[i], expected[i]);
}

TEST(WorkerTest, WorkersOfSeveralDevicesRunMicroBatches) {
  const std::string model = "tests/cli/two_groups.yaml";
  const auto rows = rows_of(output_of_job(model, 2, "--steps 3 --batches 1"));
  ASSERT_EQ(rows.size(), 4u);
  for (const std::vector<std::string>& row : rows) EXPECT_NEAR(std::stod(row[3]), 0, 1e-12);
  const auto expected = rows_of(run_program("simulate " + model + " --steps 3 --full-size").out);
  ASSERT_EQ(expected.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(rows[i], expected[i]);
}

/// The block of commands in docs/mindspore.md, with another port.
TEST(WorkerTest, TheDocumentsCommandsRunAJob) {
  const std::string text = content_of("docs/mindspore.md");
  const std::size_t begin = text.find("    export MS_WORKER_NUM=5");
  ASSERT_NE(begin, std::string::npos);
  const std::string block = text.substr(begin, text.find("\n\n", begin) - begin);
  const auto replaced = [](std::string line, const std::string& from, const std::string& to) {
    for (std::size_t at = line.find(from); at != std::string::npos; at = line.find(from, at + to.size())) {
      line.replace(at, from.size(), to);
    }
    return line;
  };
  ASSERT_TRUE(contains(block, "MS_ROLE=MS_SCHED ./run scheduler &\n"));
  BackgroundProcess scheduler("scheduler", "MS_ROLE=MS_SCHED MS_WORKER_NUM=5 MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=0");
  ASSERT_TRUE(scheduler.waits_for("workers\n"));
  const std::string said = scheduler.err();
  const std::string port = std::to_string(std::stoi(said.substr(said.find("127.0.0.1:") + 10)));
  std::string script = replaced(block, "MS_ROLE=MS_SCHED ./run scheduler &\n", "");
  script = replaced(replaced(script, "8118", port), "./run", SHARDPLAN_BINARY);
  const ProjectFolder folder;
  std::ofstream(folder.path() + "/script") << script << "\nwait\n";
  const std::string command = fmt::format("sh {}/script >{}/out 2>&1", folder.path(), folder.path());
  const int status = std::system(command.c_str());
  const std::string printed = content_of(folder.path() + "/out");
  EXPECT_EQ(status, 0) << printed;
  EXPECT_EQ(scheduler.wait().exit_code, 0);
  EXPECT_EQ(rows_of(printed).size(), 4u) << printed;
}

TEST(WorkerTest, RanksThatNobodyAsksForAreGivenInOrder) {
  RunningScheduler scheduler(2);
  BackgroundProcess first(kTwo + scheduler.job() + "--steps 1");
  BackgroundProcess second(kTwo + scheduler.job() + "--steps 1", "MS_NODE_ID=0");
  const ProgramRun a = first.wait();
  const ProgramRun b = second.wait();
  EXPECT_EQ(a.exit_code, 0) << a.err;
  EXPECT_EQ(b.exit_code, 0) << b.err;
  EXPECT_EQ(a.out, "");
  EXPECT_EQ(rows_of(b.out).size(), 2u);  // it is worker 0
  EXPECT_EQ(scheduler.process().wait().exit_code, 0);
}

TEST(WorkerTest, AMissingWorkerEndsTheOthersWithinTheTimeLimit) {
  const Clock::time_point begin = Clock::now();
  RunningScheduler scheduler(2, "--timeout 2");
  BackgroundProcess worker(kTwo + scheduler.job() + "--rank 1 --timeout 60");
  const ProgramRun alone = worker.wait();
  const ProgramRun bringing = scheduler.process().wait();
  const std::string why = "error: 1 of 2 workers came within 2 seconds; worker 0 is missing\n";
  EXPECT_EQ(bringing.exit_code, 3);
  EXPECT_TRUE(contains(bringing.err, why)) << bringing.err;
  EXPECT_EQ(alone.exit_code, 3);
  EXPECT_EQ(alone.err, why);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(40));
}

TEST(WorkerTest, AMissingSchedulerIsNamed) {
  int port = 0;
  {
    RunningScheduler ended(2);
    port = ended.port();
    ended.process().send_signal(SIGINT);
    EXPECT_EQ(ended.process().wait().exit_code, 130);
  }
  const ProgramRun run = run_program(kTwo + fmt::format("--port {} --workers 2 --timeout 0.5", port));
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.err, fmt::format("error: waited 0.5 seconds for the scheduler at 127.0.0.1:{} and 2 workers\n", port));
}

/// Which process gets a signal in the middle of training, and how all of them end.
struct SignalCase {
  std::string name;
  std::string whom;  // "scheduler", "worker"
  int signal = 0;
  int exit_code = 0;  // of the one that gets it
  std::string why;    // printed by the others
};

class SignalTest : public testing::TestWithParam<SignalCase> {};

TEST_P(SignalTest, EndsAll) {
  const SignalCase& test = GetParam();
  RunningScheduler scheduler(2, "--timeout 3");
  BackgroundProcess zero(kTwo + scheduler.job() + "--rank 0 --timeout 3" + kEndless);
  BackgroundProcess one(kTwo + scheduler.job() + "--rank 1 --timeout 3" + kEndless);
  scheduler.wait_for_workers();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  BackgroundProcess& hit = test.whom == "worker" ? one : scheduler.process();
  BackgroundProcess& other = test.whom == "worker" ? scheduler.process() : one;
  const Clock::time_point begin = Clock::now();
  hit.send_signal(test.signal);
  for (BackgroundProcess* process : {&zero, &other}) {
    const ProgramRun run = process->wait();
    EXPECT_EQ(run.exit_code, 3) << run.err;
    EXPECT_TRUE(contains(run.err, "error: " + test.why + "\n")) << run.err;
    EXPECT_EQ(run.out, "");
  }
  if (test.signal == SIGSTOP) hit.send_signal(SIGCONT);
  EXPECT_EQ(hit.wait().exit_code, test.exit_code);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(60));
}

const SignalCase kSignals[] = {
    {"killed_worker", "worker", SIGKILL, 137, "worker 1 is gone"},
    {"stopped_worker", "worker", SIGSTOP, 3, "worker 1 is gone"},
    {"interrupted_worker", "worker", SIGINT, 130, "worker 1: it was interrupted"},
    {"terminated_worker", "worker", SIGTERM, 130, "worker 1: it was interrupted"},
    {"killed_scheduler", "scheduler", SIGKILL, 137, "the scheduler is gone"},
    {"interrupted_scheduler", "scheduler", SIGINT, 130, "the scheduler was interrupted"},
};
INSTANTIATE_TEST_SUITE_P(All, SignalTest, testing::ValuesIn(kSignals),
                         [](const auto& param) { return param.param.name; });

/// Killed or stopped at any time, even before the workers have found each other.
TEST(WorkerTest, AFaultAtAnyMomentEndsAllWithOneError) {
  const char* text = std::getenv("SHARDPLAN_TRIALS");
  const int trials = text == nullptr ? 3 : std::atoi(text);
  for (int trial = 0; trial < trials; ++trial) {
    Random random(static_cast<std::uint64_t>(trial));
    RunningScheduler scheduler(2, "--timeout 2");
    BackgroundProcess workers[] = {BackgroundProcess(kTwo + scheduler.job() + "--rank 0 --timeout 2" + kEndless),
                                   BackgroundProcess(kTwo + scheduler.job() + "--rank 1 --timeout 2" + kEndless)};
    const std::size_t victim = random.below(3);
    BackgroundProcess& hit = victim < 2 ? workers[victim] : scheduler.process();
    const int signal = random.below(3) == 0 ? SIGSTOP : SIGKILL;
    const std::uint64_t delay = random.below(random.below(2) == 0 ? 100 : 1000);
    SCOPED_TRACE(fmt::format("trial {}: signal {} to process {} after {} ms", trial, signal, victim, delay));
    std::this_thread::sleep_for(std::chrono::milliseconds(delay));
    const Clock::time_point begin = Clock::now();
    hit.send_signal(signal);
    for (BackgroundProcess* process : {&workers[0], &workers[1], &scheduler.process()}) {
      if (process == &hit) continue;
      const ProgramRun run = process->wait();
      EXPECT_EQ(run.exit_code, 3) << run.err;
      const std::size_t error = run.err.find("error: ");
      EXPECT_NE(error, std::string::npos) << run.err;
      EXPECT_EQ(run.err.find("error: ", error + 1), std::string::npos) << run.err;
      EXPECT_EQ(run.out, "");
    }
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(40));
    if (signal == SIGSTOP) hit.send_signal(SIGCONT);
    EXPECT_EQ(hit.wait().exit_code, signal == SIGSTOP ? 3 : 137);
  }
}

/// A scheduler restarted at the port of one that was killed waits for its own workers.
TEST(WorkerTest, ASchedulerThatBeginsAgainDoesNotTakeTheOldWorkers) {
  RunningScheduler scheduler(2, "--timeout 3");
  BackgroundProcess zero(kTwo + scheduler.job() + "--rank 0 --timeout 3" + kEndless);
  BackgroundProcess one(kTwo + scheduler.job() + "--rank 1 --timeout 3" + kEndless);
  scheduler.wait_for_workers();
  scheduler.process().send_signal(SIGKILL);
  EXPECT_EQ(scheduler.process().wait().exit_code, 137);
  const ProgramRun again =
      run_program(fmt::format("scheduler --workers 2 --port {} --timeout 3", scheduler.port()), ".", 60);
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_TRUE(contains(again.err, "error: 0 of 2 workers came within 3 seconds")) << again.err;
  for (BackgroundProcess* worker : {&zero, &one}) {
    const ProgramRun run = worker->wait();
    EXPECT_EQ(run.exit_code, 3);
    EXPECT_TRUE(contains(run.err, "error: the scheduler is gone\n")) << run.err;
  }
}

TEST(WorkerTest, OtherProgramsRanksAndNumbersAreRefused) {
  const auto refused = [](int workers, const std::string& first, const std::string& second) {
    RunningScheduler scheduler(workers);
    const std::string job = fmt::format("--port {} --workers 2 ", scheduler.port());
    BackgroundProcess a(kTwo + job + first);
    // Only one worker is started beside a worker of a third job: a second one might happen to take that worker's place.
    std::optional<BackgroundProcess> b;
    if (workers == 2) b.emplace(kTwo + job + second);
    const ProgramRun one = a.wait();
    EXPECT_EQ(one.exit_code, 3) << one.err;
    if (b) {
      EXPECT_EQ(b->wait().exit_code, 3);
    }
    const ProgramRun bringing = scheduler.process().wait();
    EXPECT_EQ(bringing.exit_code, 3);
    EXPECT_TRUE(contains(bringing.err, one.err)) << one.err;
    return one.err;
  };
  EXPECT_EQ(refused(2, "--rank 0", "--rank 0"), "error: a worker asks for rank 0, which another one has\n");
  for (const char* other : {"--steps 2", "--seed 1", "--batches 3", "--dim B=4"}) {
    EXPECT_TRUE(contains(refused(2, "--rank 0 ", std::string("--rank 1 ") + other), " does not match ")) << other;
  }
  EXPECT_TRUE(contains(refused(3, "--timeout 5", ""), "comes for a job of 2 workers; this one has 3"));
}

TEST(WorkerTest, WhoComesTooLateIsRefusedAlone) {
  RunningScheduler scheduler(2);
  BackgroundProcess zero(kTwo + scheduler.job() + "--rank 0" + kEndless);
  BackgroundProcess one(kTwo + scheduler.job() + "--rank 1" + kEndless);
  scheduler.wait_for_workers();
  const ProgramRun late = run_program(kTwo + scheduler.job());
  EXPECT_EQ(late.exit_code, 3);
  EXPECT_EQ(late.err, "error: all 2 workers are here already\n");
  EXPECT_FALSE(contains(scheduler.process().err(), "error"));
}

TEST(WorkerTest, APortInUseIsAnError) {
  RunningScheduler scheduler(2);
  const ProgramRun second = run_program(fmt::format("scheduler --workers 2 --port {}", scheduler.port()));
  EXPECT_EQ(second.exit_code, 3);
  EXPECT_EQ(second.err,
            fmt::format("error: cannot listen at 127.0.0.1:{}: Address already in use\n", scheduler.port()));
}

/// Sends bytes to a port of this machine until all are sent or the other side closes the connection.
void attack(int port, const std::string& bytes, int times) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ASSERT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const timeval patience{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  for (int i = 0; i<times&& ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL)> 0; ++i) {
  }
  ::close(socket);
}

/// A process's peak memory so far, in megabytes.
double peak_megabytes(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

TEST(WorkerTest, BytesOfStrangersChangeNothing) {
  RunningScheduler scheduler(2);
  BackgroundProcess zero(kTwo + scheduler.job() + "--rank 0 --steps 2");
  const double before = peak_megabytes(scheduler.process().id());
  // ZMTP 3.0 (rfc.zeromq.org/spec/23): signature, version, mechanism, as-server, filler; then frames of any size.
  std::string greeting = std::string("\xff\0\0\0\0\0\0\0\0\x7f\x03\0", 12) + "NULL";
  greeting.resize(64);
  const std::string ready("\x04\x19\x05READY\x0bSocket-Type\0\0\0\x04PUSH", 27);
  const std::string endless_frame = std::string("\x02\x7f\xff\xff\xff\xff\xff\xff\xff", 9) + std::string(1 << 20, 'x');
  std::string noise(1 << 16, '\0');
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * i * 31 + 7 * i);
  const int port = scheduler.port();
  attack(port, "GET / HTTP/1.1\r\nHost: here\r\n\r\n", 1);
  attack(port, noise, 1000);
  attack(port, greeting + ready + endless_frame, 1);
  attack(port, greeting + endless_frame, 1);
  attack(port, greeting.replace(12, 5, "CURVE") + endless_frame, 200);
  attack(port, std::string(1 << 20, '\xff'), 200);
  EXPECT_LT(peak_megabytes(scheduler.process().id()), before + 50);
  BackgroundProcess one(kTwo + scheduler.job() + "--rank 1 --steps 2");
  const ProgramRun run = zero.wait();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(one.wait().exit_code, 0);
  EXPECT_EQ(scheduler.process().wait().exit_code, 0);
}

TEST(WorkerTest, TheEnvironmentNamesTheJob) {
  const auto with = [](const std::string& variables, const std::string& arguments) {
    const ProgramRun run = BackgroundProcess(arguments, variables).wait();
    EXPECT_EQ(run.exit_code, 3) << variables;
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  const std::string two = "MS_WORKER_NUM=2 MS_SCHED_PORT=1";
  EXPECT_EQ(with("MS_ROLE=MS_SCHED " + two, kTwo), "error: MS_ROLE is MS_SCHED; use 'shardplan scheduler'\n");
  EXPECT_EQ(with("MS_ROLE=MS_WORKER " + two, "scheduler"),
            "error: MS_ROLE is MS_WORKER; use 'shardplan worker MODEL'\n");
  EXPECT_EQ(with("MS_ROLE=MS_PSERVER " + two, kTwo), "error: MS_ROLE is 'MS_PSERVER'; expected MS_WORKER\n");
  EXPECT_EQ(with("MS_WORKER_NUM=2", kTwo), "error: neither MS_SCHED_PORT nor --port is given\n");
  EXPECT_EQ(with("MS_SCHED_PORT=1", kTwo), "error: neither MS_WORKER_NUM nor --workers is given\n");
  EXPECT_TRUE(contains(with("MS_WORKER_NUM=two MS_SCHED_PORT=1", kTwo), "MS_WORKER_NUM is 'two'; expected a whole"));
  EXPECT_TRUE(contains(with("MS_WORKER_NUM=2 MS_SCHED_PORT=0", kTwo), "MS_SCHED_PORT is '0'; expected a whole"));
  EXPECT_TRUE(contains(with("MS_WORKER_NUM=3 MS_SCHED_PORT=1", kTwo), "the plan is for 2 workers, but MS_WORKER_NUM"));
  EXPECT_TRUE(contains(with(two + " MS_NODE_ID=here", kTwo), "MS_NODE_ID is 'here'; expected a whole number"));
  EXPECT_TRUE(contains(with(two + " MS_NODE_ID=2", kTwo), "rank 2: the workers are 0 to 1"));
  EXPECT_TRUE(
      contains(with(two + " MS_SCHED_HOST=192.0.2.1", kTwo), "--address must be an address at which others reach"));
  EXPECT_TRUE(contains(with(two, "worker configs/mlp.yaml"), "no operator has a place"));
}

}  // namespace
}  // namespace shardplan
