// The protocol of a job, with scheduler and workers as threads of this process (in tests/cli/worker_test.cc they are
// processes).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "simulator/workers/scheduler.h"
#include "simulator/workers/worker_link.h"

namespace shardplan {
namespace {

/// A scheduler in its own thread; `end` is empty or the error with which it ends.
struct SchedulerThread {
  explicit SchedulerThread(int workers) {
    JobOptions options;
    options.workers = workers;
    options.timeout = 20;
    std::promise<int> port;
    std::future<int> known = port.get_future();
    end = std::async(std::launch::async, [options, port = std::make_shared<std::promise<int>>(std::move(port))] {
      bool is_first = true;
      try {
        run_scheduler(options, [&](const std::string& text) {
          const std::string before = "scheduler at 127.0.0.1:";
          if (is_first) port->set_value(std::stoi(text.substr(before.size())));
          is_first = false;
        });
      } catch (const InputError& error) {
        return std::string(error.what());
      }
      return std::string();
    });
    job = options;
    job.port = known.get();
  }

  JobOptions job;
  std::future<std::string> end;
};

WorkerIdentity identity(std::optional<int> rank) { return {rank, "127.0.0.1", "one program", 1 << 20}; }

/// Worker 0 sends a buffer to worker 1, which sends it back doubled, `rounds` times; returns worker 0's final buffer.
double ping_pong(const JobOptions& job, int rounds) {
  std::thread one([&] {
    WorkerLink link(job, identity(1));
    for (int i = 0; i < rounds; ++i) {
      DeviceBuffers buffers = link.receive(0, 5);
      for (double& number : buffers.front().edit()) number *= 2;
      link.send(0, 6, buffers);
    }
    link.finish();
  });
  WorkerLink link(job, identity(0));
  DeviceBuffers buffers{std::vector<double>(1000, 1.0), {}};
  for (int i = 0; i < rounds; ++i) {
    link.send(1, 5, buffers);
    buffers = link.receive(1, 6);
  }
  link.finish();
  one.join();
  EXPECT_EQ(buffers.size(), 2u);
  return buffers.front()[999];
}

TEST(WorkersTest, BuffersArriveAsTheyWereSent) {
  SchedulerThread scheduler(2);
  EXPECT_EQ(ping_pong(scheduler.job, 10), 1024);
  EXPECT_EQ(scheduler.end.get(), "");
}

/// Messages from a stranger that speaks the protocol's transport, and says what no worker says.
TEST(WorkersTest, MessagesWithoutSenseChangeNothing) {
  SchedulerThread scheduler(2);
  const auto send_nonsense = [&] {
    Transport stranger({.host = "127.0.0.1"});
    const std::size_t there = stranger.connect_to_scheduler(scheduler.job.host, scheduler.job.port);
    const std::string key(40, 'x');
    const std::vector<MessageParts> messages{
        {""},
        {"hello"},
        {"hello", "", "2", "", ""},
        {"hello", "", "2", "tcp://127.0.0.1:1", "one program"},
        {"hello", "", "2", "tcp://127.0.0.1:1 short", "one program"},
        {"hello", "", "2", "tcp://nowhere.invalid:x " + key, "one program"},
        {"hello", "zero", "2", stranger.address(), "one program"},
        {"hello", "0", "99999999999999", stranger.address(), "one program"},
        {"hello", "0", "2", "ipc:///tmp/here " + key, "one program"},
        {"ready", "7"},
        {"done", "-1"},
        {"done", "0"},
        {"failed", "99999999999", "why"},
        MessageParts(100000, "part"),
        {std::string(100, '\0'), std::string(1000, '\xff')},
    };
    for (const MessageParts& message : messages) stranger.send(there, message);
    Random random(7);
    const std::vector<std::string> words{"hello", "welcome", "here", "ready", "taken", "done", "bye", "stop", "", "0"};
    for (int i = 0; i < 1000; ++i) {
      MessageParts message;
      const std::uint64_t parts = 1 + random.below(4);
      for (std::uint64_t k = 0; k < parts; ++k) message.push_back(words[random.below(words.size())]);
      stranger.send(there, message);
    }
    stranger.send(there, {std::string((1 << 20) + (1 << 16), 'x')});  // too large: the connection is closed
    for (int i = 0; i < 20; ++i) {
      const auto event = stranger.wait(0.5);
      if (event && event->lost) return;
    }
    ADD_FAILURE() << "a message of any size is taken";
  };
  send_nonsense();
  EXPECT_EQ(ping_pong(scheduler.job, 3), 8);
  EXPECT_EQ(scheduler.end.get(), "");
}

TEST(WorkersTest, AWorkerThatFailsTellsWhy) {
  SchedulerThread scheduler(2);
  std::thread one([&] {
    WorkerLink link(scheduler.job, identity(1));
    link.fail("it has had enough");
  });
  try {
    WorkerLink link(scheduler.job, identity(0));
    link.receive(1, 3);
    ADD_FAILURE() << "nothing was sent";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()), "error: worker 1: it has had enough");
  }
  one.join();
  EXPECT_EQ(scheduler.end.get(), "error: worker 1: it has had enough");
}

TEST(WorkersTest, AnotherInstructionIsAnError) {
  SchedulerThread scheduler(2);
  std::thread one([&] {
    WorkerLink link(scheduler.job, identity(1));
    EXPECT_THROW(link.send(0, 4, {{1.0}}), InputError);
  });
  WorkerLink link(scheduler.job, identity(0));
  try {
    link.receive(1, 3);
    ADD_FAILURE() << "another instruction's data were taken";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()), "error: worker 1 sends what instruction 4 makes; expected 3");
    link.fail(error.what());
  }
  one.join();
  EXPECT_EQ(scheduler.end.get(), "error: worker 0: worker 1 sends what instruction 4 makes; expected 3");
}

}  // namespace
}  // namespace shardplan
