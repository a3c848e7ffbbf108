#include "server/rpc/port/read_pauses.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/steady_clock.h"
#include "grpc/grpc.h"
#include "grpc/support/alloc.h"
#include "server/host/peer_name.h"
#include "server/shares/client_shares.h"
#include "server/threads/thread_name.h"

namespace sfmamba::rpc {
namespace {

// Most unanswered calls of all connections of an address, as a multiple of one
// connection's. A connection of a banned address may have that part of its own.
constexpr int kAddressShare = 8;
// Most connections on one page of channelz.
constexpr int64_t kAllConnections = 1 << 20;
// Most numbers of connections kept. Beyond it, those of closed ones are
// dropped.
constexpr size_t kMostIds = 1 << 16;

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

// Frees the text that channelz returns.
std::string TakeJson(char* json) {
  const std::string text = json == nullptr ? "" : json;
  gpr_free(json);
  return text;
}

// The number in quotes behind `name` in channelz's JSON; 0 if there is none.
int64_t NumberAfter(absl::string_view json, absl::string_view name) {
  const size_t at = json.find(name);
  if (at == json.npos) return 0;
  json.remove_prefix(at + name.size());
  int64_t number = 0;
  return absl::SimpleAtoi(json.substr(0, json.find('"')), &number) ? number : 0;
}

// Calls fn(text behind `name`) for each occurrence in channelz's JSON.
template <typename Fn>
void ForEachBehind(absl::string_view json, absl::string_view name, Fn fn) {
  for (size_t at = json.find(name); at != json.npos; at = json.find(name)) {
    json.remove_prefix(at + name.size());
    fn(json);
  }
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
  if (reading != nullptr && reading->bytes >= reading->limit) {
    reading->bytes = kPaused;
    absl::MutexLock lock(&mu_);
    paused_.push_back(fd);
  }
  if (reading != nullptr && reading->bytes == kPaused) {
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
  const int64_t unanswered = CountUnanswered(fd, peer);
  // Connections of an address are bounded together, and sent away sooner while
  // it is banned.
  if (of_addresses_[server::ClientOf(peer)] >
      kAddressShare * reading.most_unanswered) {
    Ban(peer);
  }
  const int most =
      reading.most_unanswered / (IsBanned(peer) ? kAddressShare : 1);
  if (unanswered > most) {
    Ban(peer);
    // Resets the connection and drops what it has received: the next read
    // fails.
    const sockaddr nobody = {AF_UNSPEC, {}};
    connect(fd, &nobody, sizeof(nobody));
  } else if (unanswered <= most / 2) {
    reading.limit = std::min(2 * reading.limit, kMostBytes);
  }
  reading.bytes = 0;
  // Has epoll report what the socket has received, since Linux 4.18.
  const int bytes = 1;  // The default.
  setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

int64_t ReadPauses::CountUnanswered(int fd, const std::string& peer) {
  Known& known = known_[fd];
  const absl::Time now = base::SteadyNow();
  // A client may have come again by the address, port and descriptor that it
  // had before.
  if (readings_[fd].is_new.exchange(false)) known = {ChannelzIdOf(peer), now};
  const std::string counts = TakeJson(grpc_channelz_get_socket(known.id));
  const int64_t unanswered = NumberAfter(counts, "\"streamsStarted\":\"") -
                             NumberAfter(counts, "\"streamsSucceeded\":\"");
  if (now - second_ > absl::Seconds(1)) {
    second_ = now;
    of_addresses_.clear();
  }
  of_addresses_[server::ClientOf(peer)] += unanswered - known.last;
  known.last = unanswered;
  if (now - known.second > absl::Seconds(1)) {
    known.second = now;
    known.unanswered = unanswered;
  }
  return unanswered - known.unanswered;
}

int64_t ReadPauses::ChannelzIdOf(const std::string& peer) {
  ReadNewIds();
  auto found = ids_.find(peer);
  if (found == ids_.end() || ids_.size() > kMostIds) {
    // Connections are not listed quite in the order of their numbers.
    ids_.clear();
    next_ids_.clear();
    ReadNewIds();
    found = ids_.find(peer);
  }
  return found == ids_.end() ? 0 : found->second;
}

void ReadPauses::ReadNewIds() {
  const std::string servers = TakeJson(grpc_channelz_get_servers(0));
  ForEachBehind(servers, "\"serverId\":\"", [this](absl::string_view text) {
    const int64_t server = NumberAfter(text, "");
    int64_t& next = next_ids_[server];
    const std::string page = TakeJson(
        grpc_channelz_get_server_sockets(server, next, kAllConnections));
    ForEachBehind(page, "\"name\":\"chttp2 ", [&](absl::string_view entry) {
      const int64_t id = NumberAfter(entry, "\",\"socketId\":\"");
      ids_[entry.substr(0, entry.find('"'))] = id;
      next = std::max(next, id + 1);
    });
  });
}

}  // namespace sfmamba::rpc

extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  return sfmamba::rpc::ReadPauses::Get().Receive(fd, message, flags);
}
