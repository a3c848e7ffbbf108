#include "server/rpc/load_reports.h"

#include <cstdint>
#include <cstring>
#include <utility>

namespace sfmamba::rpc {
namespace {

// Field numbers of OrcaLoadReport.
constexpr int kRpsFractional = 6;
constexpr int kEps = 7;
constexpr int kApplicationUtilization = 9;

// Appends a field of type double. Appends nothing if the value is 0, because 0
// is the default.
void AppendDouble(int field, double value, std::string* message) {
  if (value == 0) return;
  constexpr int kFixed64 = 1;
  uint64_t bits;
  static_assert(sizeof bits == sizeof value);
  std::memcpy(&bits, &value, sizeof bits);
  message->push_back(static_cast<char>(field << 3 | kFixed64));
  for (int i = 0; i < 8; ++i) {
    message->push_back(static_cast<char>(bits >> 8 * i));
  }
}

// Returns true if the server or its load caused the error.
bool IsOwnFault(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string SerializeLoadReport(const observability::Load& load) {
  std::string message;
  AppendDouble(kRpsFractional, load.answers_per_second, &message);
  AppendDouble(kEps, load.errors_per_second, &message);
  AppendDouble(kApplicationUtilization, load.utilization, &message);
  return message;
}

LoadReports::LoadReports(std::function<absl::Duration()> backlog,
                         std::function<absl::Time()> clock)
    : backlog_(std::move(backlog)),
      clock_(std::move(clock)),
      meter_(kTargetBacklog) {}

std::string LoadReports::CallEnded(const absl::Status& status) {
  const bool counts = status.ok() || IsOwnFault(status.code());
  const absl::Time now = clock_();
  absl::MutexLock lock(&mu_);
  if (now - asked_ >= kPeriod) {
    asked_ = now;
    last_backlog_ = backlog_();
  }
  if (counts) {
    last_ = SerializeLoadReport(
        meter_.RequestEnded(status.ok(), last_backlog_, now));
  }
  return last_;
}

}  // namespace sfmamba::rpc
