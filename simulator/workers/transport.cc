#include "simulator/workers/transport.h"

#include <fmt/format.h>
#include <netdb.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

// ZeroMQ provides what is hard with sockets: whole messages, reconnection, encryption. Monitors of the sending sockets
// report losses, which is why every peer has its own socket; the receiving socket only listens. Waiting is one poll
// over all of them.

namespace shardplan {
namespace {

constexpr int kMillisecondsToFlush = 500;        // for unsent messages when a process ends
constexpr int kMillisecondsBetweenSigns = 1000;  // of life
constexpr int kMillisecondsToShakeHands = 10000;
constexpr std::int64_t kBytesOfEnvelope = 1 << 10;  // upper bound of what encryption adds to a part
constexpr std::size_t kMostParts = 1 << 16;

/// The scheduler's key keeps out other protocols; it is no secret from anybody who has this program.
constexpr std::array<std::uint8_t, 32> kSchedulerKey{"shardplan scheduler, protocol 1"};

/// Of a key as text, including the final zero.
constexpr std::size_t kSizeOfKey = 41;
struct KeyPair {
  char open[kSizeOfKey] = {};
  char secret[kSizeOfKey] = {};
};

int in_milliseconds(double seconds) { return static_cast<int>(std::clamp(seconds * 1000, 0.0, 1e9)); }

/// For ZeroMQ calls that fail only because of a bug here, or if the machine is out of resources.
void require_zmq(bool succeeded, const char* what) {
  if (!succeeded) throw InputError(SourcePlace{}, "{}: {}", what, zmq_strerror(zmq_errno()));
}

void set_option(void* socket, int option, int value) {
  require_zmq(zmq_setsockopt(socket, option, &value, sizeof value) == 0, "a socket");
}

void set_option(void* socket, int option, const std::string& value) {
  require_zmq(zmq_setsockopt(socket, option, value.c_str(), value.size() + 1) == 0, "a socket's key");
}

KeyPair scheduler_keys() {
  KeyPair pair;
  require_zmq(zmq_z85_encode(pair.secret, kSchedulerKey.data(), kSchedulerKey.size()) != nullptr, "a key");
  require_zmq(zmq_curve_public(pair.open, pair.secret) == 0, "a key");
  return pair;
}

KeyPair own_keys() {
  KeyPair pair;
  require_zmq(zmq_curve_keypair(pair.open, pair.secret) == 0, "a key");
  return pair;
}

/// ZeroMQ listens at numeric addresses only, and does not report names that cannot be resolved.
std::string numeric_address(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) throw InputError(SourcePlace{}, "'{}' is not an address: {}", host, gai_strerror(error));
  const addrinfo* first = found;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family == AF_INET && first->ai_family != AF_INET) first = each;
  }
  char number[NI_MAXHOST] = {};
  const int failed = getnameinfo(first->ai_addr, first->ai_addrlen, number, sizeof number, nullptr, 0, NI_NUMERICHOST);
  const bool is_six = first->ai_family == AF_INET6;
  freeaddrinfo(found);
  if (failed != 0) throw InputError(SourcePlace{}, "'{}' is not an address: {}", host, gai_strerror(failed));
  return is_six ? fmt::format("[{}]", number) : number;
}

}  // namespace

std::string shown_address(const std::string& address) {
  const std::size_t begin = address.starts_with("tcp://") ? 6 : 0;
  return address.substr(begin, address.find(' ') - begin);
}

struct Transport::Sockets {
  struct Peer {
    std::string address;
    void* socket = nullptr;
    void* monitor = nullptr;
    bool is_connected = false;  // and has completed the handshake
    bool is_stranger = false;
  };

  void* context = nullptr;
  void* listener = nullptr;
  std::string address;
  KeyPair keys;
  int silence = 0;  // milliseconds
  int names_given = 0;
  std::vector<Peer> peers;

  ~Sockets() {
    while (!peers.empty()) drop_last_peer();
    if (listener != nullptr) zmq_close(listener);
    if (context != nullptr) zmq_ctx_term(context);
  }

  void drop_last_peer() {
    const Peer& peer = peers.back();
    if (peer.socket != nullptr) zmq_socket_monitor(peer.socket, nullptr, 0);
    if (peer.monitor != nullptr) zmq_close(peer.monitor);
    if (peer.socket != nullptr) zmq_close(peer.socket);
    peers.pop_back();
  }

  void* make(int type, const std::string& where) {
    void* socket = zmq_socket(context, type);
    require_zmq(socket != nullptr, "a socket");
    set_option(socket, ZMQ_LINGER, kMillisecondsToFlush);
    if (where.find('[') != std::string::npos) set_option(socket, ZMQ_IPV6, 1);
    set_option(socket, ZMQ_HANDSHAKE_IVL, kMillisecondsToShakeHands);
    set_option(socket, ZMQ_HEARTBEAT_IVL, kMillisecondsBetweenSigns);
    set_option(socket, ZMQ_HEARTBEAT_TIMEOUT, std::max(silence, 2 * kMillisecondsBetweenSigns));
    return socket;
  }

  void open_last_peer(const std::string& where, const std::string& key) {
    Peer& peer = peers.back();
    peer.socket = make(ZMQ_PUSH, where);
    set_option(peer.socket, ZMQ_SNDTIMEO, silence);
    set_option(peer.socket, ZMQ_CURVE_SERVERKEY, key);
    set_option(peer.socket, ZMQ_CURVE_PUBLICKEY, keys.open);
    set_option(peer.socket, ZMQ_CURVE_SECRETKEY, keys.secret);
    // The name is visible in this process's context only.
    const std::string events = fmt::format("inproc://peer{}", names_given++);
    const int watched = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                        ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_DISCONNECTED;
    require_zmq(zmq_socket_monitor(peer.socket, events.c_str(), watched) == 0, "a socket's monitor");
    peer.monitor = zmq_socket(context, ZMQ_PAIR);
    require_zmq(peer.monitor != nullptr && zmq_connect(peer.monitor, events.c_str()) == 0, "a socket's monitor");
    if (zmq_connect(peer.socket, where.c_str()) != 0) {
      throw InputError(SourcePlace{}, "cannot reach {}: {}", shown_address(where), zmq_strerror(zmq_errno()));
    }
  }

  static MessageParts received(void* socket) {
    MessageParts parts;
    int has_more = 1;
    while (has_more != 0) {
      zmq_msg_t part;
      zmq_msg_init(&part);
      if (zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close(&part);
        return {};
      }
      if (parts.size() < kMostParts) {
        parts.emplace_back(static_cast<const char*>(zmq_msg_data(&part)), zmq_msg_size(&part));
      }
      has_more = zmq_msg_more(&part);
      zmq_msg_close(&part);
    }
    return parts;
  }

  /// Handles one event of a peer's connection; its number is the first two bytes of a monitor's message. True if an
  /// established connection was lost.
  static bool loses(Peer& peer) {
    const MessageParts parts = received(peer.monitor);
    std::uint16_t event = 0;
    if (parts.empty() || parts[0].size() < sizeof event) return false;
    std::memcpy(&event, parts[0].data(), sizeof event);
    if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
      peer.is_connected = true;
      peer.is_stranger = false;
      return false;
    }
    peer.is_stranger = !peer.is_connected;
    return peer.is_connected && event == ZMQ_EVENT_DISCONNECTED;
  }
};

Transport::Transport(const Options& options) : sockets_(std::make_unique<Sockets>()) {
  Sockets& all = *sockets_;
  all.silence = in_milliseconds(options.silence);
  all.keys = options.key == Key::kOfSchedulers ? scheduler_keys() : own_keys();
  all.context = zmq_ctx_new();
  require_zmq(all.context != nullptr, "messages between processes");
  const std::string port = options.port == 0 ? "*" : std::to_string(options.port);
  const std::string where = fmt::format("tcp://{}:{}", numeric_address(options.host), port);
  all.listener = all.make(ZMQ_PULL, where);
  set_option(all.listener, ZMQ_CURVE_SERVER, 1);
  set_option(all.listener, ZMQ_CURVE_SECRETKEY, all.keys.secret);
  const std::int64_t most = options.most_bytes + kBytesOfEnvelope;
  require_zmq(zmq_setsockopt(all.listener, ZMQ_MAXMSGSIZE, &most, sizeof most) == 0, "a socket");
  if (zmq_bind(all.listener, where.c_str()) != 0) {
    throw InputError(SourcePlace{}, "cannot listen at {}:{}: {}", options.host, options.port,
                     zmq_strerror(zmq_errno()));
  }
  char address[256] = {};
  std::size_t size = sizeof address;
  require_zmq(zmq_getsockopt(all.listener, ZMQ_LAST_ENDPOINT, address, &size) == 0, "a socket's address");
  all.address = address;
}

Transport::~Transport() = default;

std::string Transport::address() const { return fmt::format("{} {}", sockets_->address, sockets_->keys.open); }

std::size_t Transport::connect_to_scheduler(const std::string& host, int port) {
  return connect(fmt::format("tcp://{}:{} {}", numeric_address(host), port, scheduler_keys().open));
}

std::size_t Transport::connect(const std::string& address) {
  Sockets& all = *sockets_;
  const std::size_t space = address.find(' ');
  if (!address.starts_with("tcp://") || space == std::string::npos || address.size() - space != kSizeOfKey) {
    throw InputError(SourcePlace{}, "'{}' is not an address", address);
  }
  all.peers.emplace_back().address = address;
  try {
    all.open_last_peer(address.substr(0, space), address.substr(space + 1));
  } catch (const InputError&) {
    all.drop_last_peer();
    throw;
  }
  return all.peers.size() - 1;
}

bool Transport::is_stranger(std::size_t peer) const { return sockets_->peers.at(peer).is_stranger; }

void Transport::send(std::size_t peer, const MessageParts& message) {
  const Sockets::Peer& to = sockets_->peers.at(peer);
  for (std::size_t i = 0; i < message.size(); ++i) {
    const int more = i + 1 < message.size() ? ZMQ_SNDMORE : 0;
    int sent = -1;
    do {
      sent = zmq_send(to.socket, message[i].data(), message[i].size(), more);
    } while (sent < 0 && zmq_errno() == EINTR);
    if (sent < 0) {
      throw InputError(SourcePlace{}, "nothing can be sent to {}: {}", shown_address(to.address),
                       zmq_strerror(zmq_errno()));
    }
  }
}

std::optional<Transport::Event> Transport::wait(double seconds) {
  Sockets& all = *sockets_;
  std::vector<zmq_pollitem_t> items{zmq_pollitem_t{all.listener, 0, ZMQ_POLLIN, 0}};
  for (const Sockets::Peer& peer : all.peers) items.push_back({peer.monitor, 0, ZMQ_POLLIN, 0});
  const int ready = zmq_poll(items.data(), static_cast<int>(items.size()), in_milliseconds(seconds));
  if (ready <= 0) return std::nullopt;  // timeout, or interrupted by a signal
  if ((items[0].revents & ZMQ_POLLIN) != 0) {
    MessageParts message = Sockets::received(all.listener);
    if (!message.empty()) return Event{std::nullopt, std::move(message)};
  }
  for (std::size_t peer = 0; peer < all.peers.size(); ++peer) {
    if ((items[peer + 1].revents & ZMQ_POLLIN) == 0) continue;
    if (Sockets::loses(all.peers[peer])) return Event{peer, {}};
  }
  return std::nullopt;
}

}  // namespace shardplan
