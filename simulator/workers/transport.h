#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardplan {

/// A message between processes: a list of byte strings.
using MessageParts = std::vector<std::string>;

/// A process's end of the messages of a job. It listens at an address, writes to peers by their addresses, and notices
/// lost connections. Messages of one sender arrive whole and in the order sent.
///
/// A listener accepts only peers that know its key, so that strangers' bytes never become messages. All scheduler keys
/// are equal, since a worker knows only the port. Every worker makes its own key, which is part of its address. A
/// message larger than `most_bytes` is refused before memory is allocated for it, and its connection closed.
///
/// Only transport.cc uses ZeroMQ: a pull socket that listens (CURVE server), and for each peer a push socket whose
/// monitor reports its connection. Used from one thread.
class Transport {
 public:
  enum class Key { kOfSchedulers, kOwn };
  struct Options {
    std::string host;     // a name or an address of this machine
    int port = 0;         // 0 takes a free one
    double silence = 60;  // seconds without a sign of life after which a peer is lost
    Key key = Key::kOwn;
    std::int64_t most_bytes = 1 << 20;  // limit for a part of a received message
  };
  /// Throws InputError if there is no such address or it is in use.
  explicit Transport(const Options& options);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// The address for peers: "tcp://127.0.0.1:41234 KEY".
  std::string address() const;
  /// Adds a peer to write to, which need not exist yet; peers are counted from 0. Throws InputError: no address.
  std::size_t connect(const std::string& address);
  std::size_t connect_to_scheduler(const std::string& host, int port);
  /// True if something at the peer's address listens but does not speak this protocol.
  bool is_stranger(std::size_t peer) const;
  void send(std::size_t peer, const MessageParts& message);

  struct Event {
    std::optional<std::size_t> lost;  // the peer whose established connection was lost; else:
    MessageParts message;             // not empty
  };
  /// The next event; messages before losses. Nothing after `seconds`, or earlier.
  std::optional<Event> wait(double seconds);

 private:
  struct Sockets;
  std::unique_ptr<Sockets> sockets_;
};

/// "127.0.0.1:41234" from an address, for messages.
std::string shown_address(const std::string& address);

}  // namespace shardplan
