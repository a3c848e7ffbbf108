#include "server/base/periodic.h"

#include <utility>

#include "server/base/thread_name.h"

namespace sfmamba::server {

Periodic::Periodic(std::string name, absl::Duration period,
                   std::function<void()> fn)
    : thread_([this, name = std::move(name), period, fn = std::move(fn)] {
        NameThisThread(name);
        while (!stopping_.WaitForNotificationWithTimeout(period)) fn();
      }) {}

Periodic::~Periodic() {
  stopping_.Notify();
  thread_.join();
}

}  // namespace sfmamba::server
