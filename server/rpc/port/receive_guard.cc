#include "server/rpc/port/receive_guard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/shares/client_shares.h"

namespace sfmamba::rpc {
namespace {

// What a message of `bytes` takes on the wire at most: HTTP/2's frames and
// headers, and TLS.
int64_t OnTheWire(int64_t bytes) { return bytes + bytes / 64 + 1024; }

// Returns how many of `bytes` in reception came of the `reset` calls if each of
// them and of the `open` ones has as many.
int64_t OfReset(int64_t bytes, int64_t open, int64_t reset) {
  if (bytes <= 0 || reset <= 0) return 0;
  return static_cast<int64_t>(static_cast<double>(bytes) * reset /
                              (open + reset));
}

}  // namespace

void ReceiveGuard::HandedOver(const std::string& peer, int64_t bytes) {
  absl::MutexLock lock(&mu_);
  handed_over_[peer] += OnTheWire(bytes);
}

void ReceiveGuard::CallCame(const std::string& peer) {
  absl::MutexLock lock(&mu_);
  ++calls_[peer];
}

void ReceiveGuard::CallGone(const std::string& peer) {
  absl::MutexLock lock(&mu_);
  if (--calls_[peer] == 0) calls_.erase(peer);
}

int ReceiveGuard::CallsOf(const std::string& peer) const {
  absl::MutexLock lock(&mu_);
  const auto found = calls_.find(peer);
  return found == calls_.end() ? 0 : found->second;
}

std::vector<std::string> ReceiveGuard::Check(
    const std::function<std::vector<Traffic>()>& measure, absl::Time now) {
  // In this order, so that no message counts twice.
  const int64_t held = options_.held();
  Update(measure(), now);
  std::vector<std::string> to_end =
      ChooseToEnd(options_.most_bytes - held, now);
  absl::MutexLock lock(&mu_);
  peak_.now = held_ + leaving_;
  return to_end;
}

void ReceiveGuard::Update(const std::vector<Traffic>& traffic, absl::Time now) {
  absl::flat_hash_map<std::string, int64_t> handed_over;
  {
    absl::MutexLock lock(&mu_);
    handed_over.swap(handed_over_);
  }
  const absl::Duration since =
      checked_ == absl::InfinitePast() ? absl::ZeroDuration() : now - checked_;
  const double left = std::exp(-absl::FDivDuration(since, kFading));
  leaving_ *= std::exp(-absl::FDivDuration(since, kLeaving));
  checked_ = now;
  held_ = 0;
  for (auto& connection : connections_) connection.second.open = false;
  for (const Traffic& measured : traffic) {
    Connection& connection = connections_[measured.peer];
    // Another connection of the same name.
    if (measured.received < connection.received) connection = Connection();
    const auto found = handed_over.find(measured.peer);
    const int64_t handed = found == handed_over.end() ? 0 : found->second;
    const auto before = static_cast<int64_t>(connection.bytes * left);
    // What was handed over in excess of what came must come next: later than
    // that it is no credit.
    connection.bytes = std::max(
        before + measured.received - connection.received - handed, -handed);
    connection.bytes -= OfReset(connection.bytes, measured.calls,
                                measured.failed - connection.failed);
    connection.failed = measured.failed;
    connection.received = measured.received;
    connection.calls = measured.calls;
    connection.open = true;
    UpdateWait(measured, now, &connection);
    held_ += connection.held();
  }
  absl::erase_if(connections_, [this](const auto& c) {
    if (!c.second.open) leaving_ += c.second.calls * kCallBytes;
    return !c.second.open;
  });
  absl::MutexLock lock(&mu_);
  peak_.most = std::max(peak_.most, held_);
}

server::MemoryBudget::Peak ReceiveGuard::TakePeak() {
  absl::MutexLock lock(&mu_);
  return {peak_.now, std::exchange(peak_.most, peak_.now)};
}

void ReceiveGuard::UpdateWait(const Traffic& measured, absl::Time now,
                              Connection* connection) {
  const int64_t came = measured.received - connection->received_then;
  if (measured.waiting <= 0) {
    connection->waits_since = absl::InfiniteFuture();
  } else if (connection->waits_since == absl::InfiniteFuture() ||
             came >= kLeastProgress * measured.waiting) {
    connection->waits_since = now;
    connection->received_then = measured.received;
  }
}

std::vector<std::string> ReceiveGuard::ChooseToEnd(int64_t most,
                                                   absl::Time now) {
  std::vector<std::string> chosen;
  absl::flat_hash_map<absl::string_view, int64_t> by_address;
  std::vector<std::pair<absl::string_view, int64_t>> large;
  for (const auto& [peer, connection] : connections_) {
    if (now - connection.waits_since >= kMostWait) {
      chosen.push_back(peer);
      held_ -= connection.held();
    } else if (connection.held() >= kLittle) {
      by_address[server::ClientOf(peer)] += connection.held();
      large.emplace_back(peer, connection.held());
    }
  }
  while (held_ > most && !large.empty()) {
    const auto worst = std::max_element(
        large.begin(), large.end(), [&](const auto& a, const auto& b) {
          return std::make_pair(by_address[server::ClientOf(a.first)],
                                a.second) <
                 std::make_pair(by_address[server::ClientOf(b.first)],
                                b.second);
        });
    held_ -= worst->second;
    by_address[server::ClientOf(worst->first)] -= worst->second;
    chosen.emplace_back(worst->first);
    large.erase(worst);
  }
  for (const std::string& peer : chosen) {
    leaving_ += connections_[peer].calls * kCallBytes;
    connections_.erase(peer);
  }
  return chosen;
}

}  // namespace sfmamba::rpc
