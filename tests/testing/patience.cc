#include "tests/testing/patience.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sfmamba {

TimeLimit::TimeLimit(std::string what, absl::Duration limit)
    : watch_([this, what = std::move(what), limit] {
        if (came_.WaitForNotificationWithTimeout(limit)) return;
        const std::string message =
            absl::StrCat("Waited ", absl::FormatDuration(limit),
                         " in vain for ", what, "\n");
        std::fputs(message.c_str(), stderr);
        std::abort();
      }) {}

TimeLimit::~TimeLimit() {
  came_.Notify();
  watch_.join();
}

void WaitFor(const absl::Notification& notification, std::string what,
             absl::Duration limit) {
  if (notification.HasBeenNotified()) return;
  const TimeLimit guard(std::move(what), limit);
  notification.WaitForNotification();
}

void WaitFor(absl::BlockingCounter& counter, std::string what,
             absl::Duration limit) {
  const TimeLimit guard(std::move(what), limit);
  counter.Wait();
}

void Join(std::thread& thread, std::string what, absl::Duration limit) {
  const TimeLimit guard(std::move(what), limit);
  thread.join();
}

void WaitUntil(absl::FunctionRef<bool()> condition, std::string what,
               absl::Duration limit) {
  const TimeLimit guard(std::move(what), limit);
  while (!condition()) std::this_thread::yield();
}

}  // namespace sfmamba
