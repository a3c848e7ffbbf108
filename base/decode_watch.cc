#include "base/decode_watch.h"

#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sfmamba::base {

absl::Duration ThreadCpuTime() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

DecodeWatch::DecodeWatch(absl::Duration limit, Clock clock, Wanted wanted)
    : limit_(limit),
      clock_(std::move(clock)),
      wanted_(std::move(wanted)),
      start_(clock_()) {}

bool DecodeWatch::Expired() const {
  if (wanted_ != nullptr && !wanted_()) return true;
  return limit_ != absl::InfiniteDuration() && clock_() - start_ > limit_;
}

absl::Status DecodeWatch::status() const {
  if (wanted_ != nullptr && !wanted_()) {
    return absl::CancelledError("the picture is no longer wanted");
  }
  return absl::DeadlineExceededError(
      absl::StrCat("decoding took longer than the ",
                   absl::FormatDuration(limit_), " that a picture has"));
}

}  // namespace sfmamba::base
