// Tells ThreadSanitizer which memory accesses are ordered by Abseil's locks.
// The system's Abseil is built without ThreadSanitizer. Its locks would
// therefore be invisible, and accesses that they guard would be reported as
// races. The functions in this file replace the functions of Abseil's shared
// library and call them.

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace absl {
inline namespace debian3 {
namespace {

// Returns the function of the shared library. `name` is its linker name.
template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// While an object exists, the thread is acquiring the lock. Meanwhile
// ThreadSanitizer ignores the thread's memory accesses. This is necessary,
// because Abseil evaluates conditions inside its locking functions, also
// conditions of other threads. The thread then holds the lock, but
// ThreadSanitizer does not know this yet.
class Locking {
 public:
  explicit Locking(void* mutex, unsigned flags = 0)
      : mutex_(mutex), flags_(flags) {
    __tsan_mutex_pre_lock(mutex_, flags_);
  }
  ~Locking() { __tsan_mutex_post_lock(mutex_, flags_, 0); }
  void Failed() { flags_ |= __tsan_mutex_try_lock_failed; }

 private:
  void* const mutex_;
  unsigned flags_;
};

// While an object exists, the thread is releasing the lock. ThreadSanitizer
// ignores the thread's memory accesses, as for Locking.
class Unlocking {
 public:
  explicit Unlocking(void* mutex, unsigned flags = 0)
      : mutex_(mutex), flags_(flags) {
    __tsan_mutex_pre_unlock(mutex_, flags_);
  }
  ~Unlocking() { __tsan_mutex_post_unlock(mutex_, flags_); }

 private:
  void* const mutex_;
  const unsigned flags_;
};

// Calls `wait`, which releases a held lock and acquires it again.
template <typename Wait>
auto Waiting(void* mutex, const Wait& wait) {
  const auto result = [&] {
    const Unlocking unlocking(mutex);
    return wait();
  }();
  const Locking locking(mutex);
  return result;
}

}  // namespace

// ---- Mutex ----

void Mutex::Lock() {
  static auto* const real = Real<void(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  const Locking locking(this);
  real(this);
}

void Mutex::Unlock() {
  static auto* const real =
      Real<void(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  const Unlocking unlocking(this);
  real(this);
}

bool Mutex::TryLock() {
  static auto* const real =
      Real<bool(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  Locking locking(this, __tsan_mutex_try_lock);
  const bool locked = real(this);
  if (!locked) locking.Failed();
  return locked;
}

void Mutex::ReaderLock() {
  static auto* const real =
      Real<void(Mutex*)>("_ZN4absl7debian35Mutex10ReaderLockEv");
  const Locking locking(this, __tsan_mutex_read_lock);
  real(this);
}

void Mutex::ReaderUnlock() {
  static auto* const real =
      Real<void(Mutex*)>("_ZN4absl7debian35Mutex12ReaderUnlockEv");
  const Unlocking unlocking(this, __tsan_mutex_read_lock);
  real(this);
}

void Mutex::LockWhen(const Condition& condition) {
  static auto* const real = Real<void(Mutex*, const Condition&)>(
      "_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE");
  const Locking locking(this);
  real(this, condition);
}

// The lock is acquired even if the condition did not become true.
bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_"
      "8DurationE");
  const Locking locking(this);
  return real(this, condition, timeout);
}

void Mutex::Await(const Condition& condition) {
  static auto* const real = Real<void(Mutex*, const Condition&)>(
      "_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE");
  Waiting(this, [&] {
    real(this, condition);
    return true;
  });
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static auto* const real = Real<bool(Mutex*, const Condition&, Duration)>(
      "_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_"
      "8DurationE");
  return Waiting(this, [&] { return real(this, condition, timeout); });
}

// ---- CondVar ----

void CondVar::Wait(Mutex* mutex) {
  static auto* const real = Real<void(CondVar*, Mutex*)>(
      "_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  Waiting(mutex, [&] {
    real(this, mutex);
    return true;
  });
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static auto* const real = Real<bool(CondVar*, Mutex*, Duration)>(
      "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  return Waiting(mutex, [&] { return real(this, mutex, timeout); });
}

// ---- Classes that use the locks above, but not in all their methods ----

// HasBeenNotified() is inline and takes no lock. It only loads the atomic
// member that follows the mutex. So Notify() must also announce this member to
// ThreadSanitizer.
void Notification::Notify() {
  static auto* const real =
      Real<void(Notification*)>("_ZN4absl7debian312Notification6NotifyEv");
  __tsan_release(this);
  __tsan_release(reinterpret_cast<char*>(this) + sizeof(Mutex));
  real(this);
}

void Notification::WaitForNotification() const {
  static auto* const real = Real<void(const Notification*)>(
      "_ZNK4absl7debian312Notification19WaitForNotificationEv");
  real(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const real = Real<bool(const Notification*, Duration)>(
      "_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_"
      "8DurationE");
  const bool notified = real(this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

bool BlockingCounter::DecrementCount() {
  static auto* const real = Real<bool(BlockingCounter*)>(
      "_ZN4absl7debian315BlockingCounter14DecrementCountEv");
  __tsan_release(this);
  return real(this);
}

void BlockingCounter::Wait() {
  static auto* const real =
      Real<void(BlockingCounter*)>("_ZN4absl7debian315BlockingCounter4WaitEv");
  real(this);
  __tsan_acquire(this);
}

bool Barrier::Block() {
  static auto* const real =
      Real<bool(Barrier*)>("_ZN4absl7debian37Barrier5BlockEv");
  __tsan_release(this);
  const bool last = real(this);
  __tsan_acquire(this);
  return last;
}

}  // namespace debian3
}  // namespace absl
