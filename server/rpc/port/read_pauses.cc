#include "server/rpc/port/read_pauses.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/steady_clock.h"
#include "server/host/peer_name.h"
#include "server/shares/client_shares.h"

namespace sfmamba::rpc {
namespace {

// With fewer calls that wait for their messages a connection is not ended.
constexpr int kFewWaiting = 16;

// The bytes that are left in the socket, for gRPC asks for them (TCP_INQ); -1
// if they are not known.
int BytesLeft(msghdr* message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr;
       part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level == SOL_TCP && part->cmsg_type == TCP_CM_INQ) {
      return *reinterpret_cast<int*>(CMSG_DATA(part));
    }
  }
  return -1;
}

// Has `watch` take the first `size` bytes of what was received.
bool TakeReceived(const msghdr& message, size_t size, int64_t most,
                  FrameWatch& watch) {
  for (size_t i = 0; i < message.msg_iovlen; ++i) {
    const iovec& part = message.msg_iov[i];
    const size_t taken = std::min(size, part.iov_len);
    if (!watch.Take({static_cast<const char*>(part.iov_base), taken}, most)) {
      return false;
    }
    size -= taken;
  }
  return true;
}

// The watch of what a server reads through TLS, made at its first call.
FrameWatch& WatchOf(SSL* ssl) {
  static const int index = SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* watch, CRYPTO_EX_DATA*, int, long, void*) {
        delete static_cast<FrameWatch*>(watch);
      });
  auto* watch = static_cast<FrameWatch*>(SSL_get_ex_data(ssl, index));
  if (watch == nullptr) {
    // Nothing bounds the calls that a client begins and gRPC refuses.
    watch = new FrameWatch(/*counts_calls=*/false);
    SSL_set_ex_data(ssl, index, watch);
  }
  return *watch;
}

}  // namespace

ReadPauses& ReadPauses::Get() {
  static auto* const pauses = new ReadPauses;
  return *pauses;
}

void ReadPauses::Begin(int fd, int most_unanswered) {
  if (fd >= kMostDescriptors) return;
  // By the exchange it sees what the last connection's thread has written.
  readings_[fd].bytes.exchange(0);
  readings_[fd].received = 0;
  readings_[fd].most_unanswered = most_unanswered;
  readings_[fd].is_new = true;
  readings_[fd].was_reset = false;
  UpdateWaiting(&readings_[fd], 0);
  readings_[fd].frames = FrameWatch();
  readings_[fd].peer = server::PeerName(fd);
  readings_[fd].limit = kFirstBytes;
}

ssize_t ReadPauses::Receive(int fd, msghdr* message, int flags) {
  Reading* const reading =
      fd >= 0 && fd < kMostDescriptors && readings_[fd].limit > 0
          ? &readings_[fd]
          : nullptr;
  // A reset leaves nothing to read, so no event would follow the pause's end.
  const bool pauses = reading != nullptr && !reading->was_reset;
  if (pauses && reading->bytes == kPaused) {
    errno = EAGAIN;
    return -1;
  }
  if (pauses && reading->bytes >= reading->limit) {
    reading->bytes = kPaused;
    worker_.Push([this, fd](bool /*stopped*/) { EndPause(fd); });
    // Also if the pause has ended by now: this thread is to leave.
    errno = EAGAIN;
    return -1;
  }
  const ssize_t size = syscall(SYS_recvmsg, fd, message, flags);
  if (reading == nullptr) return size;
  if (size <= 0) {
    const int error = errno;
    const bool ended = size == 0 || (error != EAGAIN && error != EINTR);
    if (ended) {
      UpdateWaiting(reading, 0);
      reading->bytes = 0;
    }
    errno = error;
    return size;
  }
  if (!TakeReceived(*message, size, most_headers_, reading->frames) ||
      !UpdateWaiting(reading, reading->frames.waiting())) {
    UpdateWaiting(reading, 0);
    reading->bytes = 0;
    const std::string peer = server::PeerName(fd);
    if (peer != reading->peer) {
      // Another socket has the descriptor now, such as one of a client of ours.
      reading->limit = 0;
      return size;
    }
    End(fd, peer);
    errno = ECONNRESET;
    return -1;
  }
  reading->received += size;
  if (BytesLeft(message) == 0) {
    reading->bytes = 0;
  } else {
    reading->bytes += size;
  }
  return size;
}

void ReadPauses::Reset(int fd) {
  // First, for the reset may have gRPC read at once.
  if (fd < kMostDescriptors) readings_[fd].was_reset = true;
  const sockaddr nobody = {AF_UNSPEC, {}};
  connect(fd, &nobody, sizeof(nobody));
}

void ReadPauses::Ban(const std::string& peer) {
  const absl::Time now = base::SteadyNow();
  absl::MutexLock lock(&mu_);
  absl::erase_if(bans_, [&](const auto& ban) { return ban.second < now; });
  bans_[server::ClientOf(peer)] = now + kBan;
}

bool ReadPauses::IsBanned(const std::string& peer) {
  absl::MutexLock lock(&mu_);
  const auto found = bans_.find(server::ClientOf(peer));
  return found != bans_.end() && base::SteadyNow() < found->second;
}

void ReadPauses::EndPause(int fd) {
  Reading& reading = readings_[fd];
  const std::string peer = server::PeerName(fd);
  const CallFloods::Seconds seconds = Count(fd, peer);
  const int most = reading.most_unanswered;
  // Connections of an address are bounded together, and sent away sooner while
  // it is banned.
  if (seconds.address.Exceeds(CallFloods::kAddressShare * most)) Ban(peer);
  const int most_of_one =
      most / (IsBanned(peer) ? CallFloods::kAddressShare : 1);
  if (seconds.connection.Exceeds(most_of_one)) {
    End(fd, peer);
  } else if (!seconds.connection.Exceeds(most_of_one / 2)) {
    reading.limit = std::min(2 * reading.limit, kMostBytes);
  }
  reading.bytes = 0;
  // Has epoll report what the socket has received, since Linux 4.18.
  const int bytes = 1;  // The default.
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

bool ReadPauses::UpdateWaiting(Reading* reading, int waiting) {
  if (waiting == reading->waiting) return true;
  absl::MutexLock lock(&mu_);
  const int more = waiting - std::exchange(reading->waiting, waiting);
  const auto of_address =
      waiting_of_addresses_.try_emplace(server::ClientOf(reading->peer), 0);
  const int all = of_address.first->second += more;
  if (all == 0) waiting_of_addresses_.erase(of_address.first);
  // A connection with few may be another client's.
  return more < 0 || all <= most_waiting_ || waiting < kFewWaiting;
}

void ReadPauses::End(int fd, const std::string& peer) {
  Ban(peer);
  Reset(fd);
  ++ended_;
}

CallFloods::Seconds ReadPauses::Count(int fd, const std::string& peer) {
  const absl::Time now = base::SteadyNow();
  // A client may have come again by the address, port and descriptor that it
  // had before.
  if (readings_[fd].is_new.exchange(false)) {
    ids_[fd] = channelz_.IdOf(peer);
    floods_.Begin(fd, now);
  }
  return floods_.Count(fd, server::ClientOf(peer),
                       {Channelz::CallsOf(ids_[fd]), readings_[fd].received},
                       now);
}

}  // namespace sfmamba::rpc

extern "C" int SSL_read(SSL* ssl, void* bytes, int size) {
  size_t read = 0;
  if (SSL_read_ex(ssl, bytes, std::max(size, 0), &read) <= 0) return -1;
  if (SSL_is_server(ssl) &&
      !sfmamba::rpc::WatchOf(ssl).Take(
          {static_cast<const char*>(bytes), read},
          sfmamba::rpc::ReadPauses::Get().most_headers())) {
    ERR_raise(ERR_LIB_SSL, SSL_R_EXCESSIVE_MESSAGE_SIZE);
    return -1;
  }
  return static_cast<int>(read);
}

extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return sfmamba::rpc::ReadPauses::Get().Receive(fd, message, flags);
}
