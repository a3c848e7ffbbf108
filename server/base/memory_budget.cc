#include "server/base/memory_budget.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/reasons.h"

namespace sfmamba::server {

const char* MemoryUseName(MemoryUse use) {
  switch (use) {
    case MemoryUse::kMessage:
      return "message";
    case MemoryUse::kDecode:
      return "decode";
    case MemoryUse::kInput:
      return "input";
    case MemoryUse::kAnswer:
      return "answer";
  }
  return "";
}

MemoryHold::MemoryHold(MemoryHold&& other) noexcept
    : budget_(std::exchange(other.budget_, nullptr)),
      use_(other.use_),
      bytes_(std::exchange(other.bytes_, 0)) {}

MemoryHold& MemoryHold::operator=(MemoryHold&& other) noexcept {
  if (this != &other) {
    Release();
    budget_ = std::exchange(other.budget_, nullptr);
    use_ = other.use_;
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

MemoryHold MemoryHold::Split(int64_t bytes) {
  assert(bytes <= bytes_);
  bytes_ -= bytes;
  return MemoryHold(budget_, use_, bytes);
}

absl::Status MemoryHold::Resize(int64_t bytes) {
  if (bytes == bytes_) return absl::OkStatus();
  assert(budget_ != nullptr);
  if (bytes < bytes_) {
    budget_->Subtract(use_, bytes_ - bytes);
  } else {
    const absl::Status status = budget_->Add(use_, bytes - bytes_);
    if (!status.ok()) return status;
  }
  bytes_ = bytes;
  return absl::OkStatus();
}

void MemoryHold::Release() {
  if (bytes_ > 0) budget_->Subtract(use_, bytes_);
  budget_ = nullptr;
  bytes_ = 0;
}

MemoryBudget::MemoryBudget(int64_t bytes, int64_t decode_bytes,
                           absl::Duration retry_after)
    : bytes_(bytes),
      decode_bytes_(decode_bytes > 0 ? decode_bytes : bytes / 8 * 3),
      request_bytes_(bytes - transport_bytes() - decode_bytes_),
      retry_after_(retry_after) {}

absl::StatusOr<MemoryHold> MemoryBudget::Take(MemoryUse use, int64_t bytes) {
  const absl::Status status = Add(use, bytes);
  if (!status.ok()) return status;
  return MemoryHold(this, use, bytes);
}

int64_t MemoryBudget::held(MemoryUse use) const {
  absl::MutexLock lock(&mu_);
  return held_[static_cast<int>(use)];
}

MemoryBudget::Peak MemoryBudget::TakePeak() {
  absl::MutexLock lock(&mu_);
  const Peak peak = all_;
  all_.most = all_.now;
  return peak;
}

absl::Status MemoryBudget::Add(MemoryUse use, int64_t bytes) {
  const int index = static_cast<int>(use);
  absl::MutexLock lock(&mu_);
  if (use != MemoryUse::kDecode) {
    const int64_t most =
        bytes <= kSmallHold ? request_bytes_ : most_of_request();
    const int64_t taken =
        all_.now - held_[static_cast<int>(MemoryUse::kDecode)];
    // Written so that no sum can overflow.
    int64_t room = most - taken;
    if (use == MemoryUse::kMessage) {
      const int64_t for_small = bytes <= kSmallHold ? most_of_message() / 8 : 0;
      room = std::min(room, most_of_message() + for_small - held_[index]);
    }
    if (bytes > room) {
      return QueueFull(
          "memory",
          absl::StrCat("requests hold ", taken, " of at most ", most,
                       " bytes of memory; there is room for ",
                       std::max<int64_t>(room, 0), ", not for ", bytes),
          retry_after_);
    }
  }
  held_[index] += bytes;
  all_.now += bytes;
  all_.most = std::max(all_.most, all_.now);
  return absl::OkStatus();
}

void MemoryBudget::Subtract(MemoryUse use, int64_t bytes) {
  absl::MutexLock lock(&mu_);
  held_[static_cast<int>(use)] -= bytes;
  all_.now -= bytes;
}

}  // namespace sfmamba::server
