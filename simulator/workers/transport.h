#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardplan {

/// What one process sends another: parts of bytes.
using MessageParts = std::vector<std::string>;

/// A process's end of the messages of a job. It listens at an address, writes to peers by their addresses, and sees
/// when the connection to one is lost. Messages of one sender arrive in the order sent, each whole.
///
/// What listens accepts only those who know its key, so that bytes of strangers never become messages. Scheduler
/// keys are all the same: a worker knows only the port. Every worker makes its own, which is part of its address. A
/// message larger than `most_bytes` is refused before memory is taken for it, and its connection closed.
///
/// The only file that knows ZeroMQ is transport.cc: a pull socket that listens (CURVE server), and for each peer a push
/// socket whose monitor reports its connection. Used from one thread.
class Transport {
 public:
  enum class Key { kOfSchedulers, kOwn };
  struct Options {
    std::string host;     // a name or an address of this machine
    int port = 0;         // 0 takes a free one
    double silence = 60;  // a peer that gives no sign of life for this long is lost
    Key key = Key::kOwn;
    std::int64_t most_bytes = 1 << 20;  // of a message's part that is received
  };
  /// Throws InputError: no such address, or it is in use.
  explicit Transport(const Options& options);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// How others reach it: "tcp://127.0.0.1:41234 KEY".
  std::string address() const;
  /// Another peer to write to, whether it is there yet or not; peers are counted from 0. Throws InputError: no address.
  std::size_t connect(const std::string& address);
  std::size_t connect_to_scheduler(const std::string& host, int port);
  /// True if something listens at the peer's address that does not speak as we do.
  bool is_stranger(std::size_t peer) const;
  void send(std::size_t peer, const MessageParts& message);

  struct Event {
    std::optional<std::size_t> lost;  // that peer's connection, which was there; else:
    MessageParts message;             // not empty
  };
  /// What came; messages before losses. Nothing if `seconds` pass first, or sooner.
  std::optional<Event> wait(double seconds);

 private:
  struct Sockets;
  std::unique_ptr<Sockets> sockets_;
};

/// "127.0.0.1:41234" from an address, as it is shown.
std::string shown_address(const std::string& address);

}  // namespace shardplan
