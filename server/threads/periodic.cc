#include "server/threads/periodic.h"

#include <utility>

#include "base/steady_clock.h"
#include "server/threads/thread_name.h"

namespace sfmamba::server {

Periodic::Periodic(std::string name, absl::Duration period,
                   std::function<void()> fn)
    : fn_(std::move(fn)), thread_([this, name = std::move(name), period] {
        NameThisThread(name);
        Run(period);
      }) {}

Periodic::~Periodic() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  wake_.Signal();
  thread_.join();
}

void Periodic::Run(absl::Duration period) {
  absl::MutexLock lock(&mu_);
  while (true) {
    const absl::Time next = base::SteadyNow() + period;
    for (absl::Time now = base::SteadyNow(); !stopping_ && now < next;
         now = base::SteadyNow()) {
      wake_.WaitWithTimeout(&mu_, next - now);
    }
    if (stopping_) return;
    mu_.Unlock();
    fn_();
    mu_.Lock();
  }
}

}  // namespace sfmamba::server
