#include "server/shares/memory_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"

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

MemoryBudget::Part MemoryBudget::Part::Split(int64_t some_bytes) {
  bytes -= some_bytes;
  return {use, some_bytes};
}

MemoryBudget::MemoryBudget(int64_t bytes, int64_t decode_bytes)
    : bytes_(bytes), request_bytes_(bytes - transport_bytes() - decode_bytes) {}

absl::StatusOr<MemoryHold> MemoryBudget::Take(MemoryUse use, int64_t bytes) {
  const absl::Status status = Add(use, bytes);
  if (!status.ok()) return status;
  return MemoryHold(this, {use, bytes});
}

absl::Status MemoryBudget::Resize(int64_t bytes, Part* part) {
  if (bytes <= part->bytes) {
    GiveBack(part->Split(part->bytes - bytes));
    return absl::OkStatus();
  }
  const absl::Status status = Add(part->use, bytes - part->bytes);
  if (status.ok()) part->bytes = bytes;
  return status;
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
    // Subtracts instead of adding, because a sum could overflow.
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
          kRetryAfter);
    }
  }
  held_[index] += bytes;
  all_.now += bytes;
  all_.most = std::max(all_.most, all_.now);
  return absl::OkStatus();
}

void MemoryBudget::GiveBack(const Part& part) {
  absl::MutexLock lock(&mu_);
  held_[static_cast<int>(part.use)] -= part.bytes;
  all_.now -= part.bytes;
}

}  // namespace sfmamba::server
