#include "server/rpc/port/read_pauses.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/steady_clock.h"
#include "server/host/peer_name.h"
#include "server/shares/client_shares.h"
#include "server/threads/thread_name.h"

namespace sfmamba::rpc {
namespace {

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

}  // namespace

ReadPauses& ReadPauses::Get() {
  static auto* const pauses = new ReadPauses;
  return *pauses;
}

ReadPauses::ReadPauses() : thread_([this] { Loop(); }) {}

void ReadPauses::Begin(int fd, int most_unanswered) {
  if (fd >= kMostDescriptors) return;
  readings_[fd].bytes = 0;
  readings_[fd].most_unanswered = most_unanswered;
  readings_[fd].is_new = true;
  readings_[fd].limit = kFirstBytes;
}

ssize_t ReadPauses::Receive(int fd, msghdr* message, int flags) {
  Reading* const reading =
      fd >= 0 && fd < kMostDescriptors && readings_[fd].limit > 0
          ? &readings_[fd]
          : nullptr;
  if (reading != nullptr && reading->bytes == kPaused) {
    errno = EAGAIN;
    return -1;
  }
  if (reading != nullptr && reading->bytes >= reading->limit) {
    reading->bytes = kPaused;
    absl::MutexLock lock(&mu_);
    paused_.push_back(fd);
    // Also if the pause has ended by now: this thread is to leave.
    errno = EAGAIN;
    return -1;
  }
  const ssize_t size = syscall(SYS_recvmsg, fd, message, flags);
  if (reading == nullptr || size <= 0) return size;
  if (BytesLeft(message) == 0) {
    reading->bytes = 0;
  } else {
    reading->bytes += size;
  }
  return size;
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

void ReadPauses::Loop() {
  server::NameThisThread("read-pauses");
  const auto any = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return !paused_.empty();
  };
  while (true) {
    std::vector<int> paused;
    {
      absl::MutexLock lock(&mu_, absl::Condition(&any));
      paused.swap(paused_);
    }
    for (const int fd : paused) EndPause(fd);
  }
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
    Ban(peer);
    // Resets the connection and drops what it has received: the next read
    // fails.
    const sockaddr nobody = {AF_UNSPEC, {}};
    connect(fd, &nobody, sizeof(nobody));
    ++ended_;
  } else if (!seconds.connection.Exceeds(most_of_one / 2)) {
    reading.limit = std::min(2 * reading.limit, kMostBytes);
  }
  reading.bytes = 0;
  // Has epoll report what the socket has received, since Linux 4.18.
  const int bytes = 1;  // The default.
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

CallFloods::Seconds ReadPauses::Count(int fd, const std::string& peer) {
  const absl::Time now = base::SteadyNow();
  // A client may have come again by the address, port and descriptor that it
  // had before.
  if (readings_[fd].is_new.exchange(false)) {
    ids_[fd] = channelz_.IdOf(peer);
    floods_.Begin(fd, now);
  }
  return floods_.Count(fd, server::ClientOf(peer), Channelz::CallsOf(ids_[fd]),
                       now);
}

}  // namespace sfmamba::rpc

extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return sfmamba::rpc::ReadPauses::Get().Receive(fd, message, flags);
}
