// A library to preload. It shifts the wall clock of its process. The
// environment variable CLOCK_JUMP names a file with the offset, an int64_t in
// nanoseconds. The offset may change at any time. Threads that wait for a time
// of the wall clock notice the change if they wait by a futex system call, as
// Abseil does. The steady clock is not affected.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kSlice =
    // A wait notices a jump of the clock after at most this delay.
    kSecond / 100;

using Syscall = long (*)(long number, ...);

Syscall RealSyscall() {
  static const Syscall real =
      reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
  return real;
}

// Returns the offset in nanoseconds, or zero if there is no file.
int64_t Offset() {
  static const std::atomic<int64_t>* const offset = [] {
    static const std::atomic<int64_t> none{0};
    const char* path = getenv("CLOCK_JUMP");
    const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return &none;
    void* const mapped =
        mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return mapped == MAP_FAILED
               ? &none
               : static_cast<const std::atomic<int64_t>*>(mapped);
  }();
  return offset->load();
}

int64_t Nanoseconds(const timespec& time) {
  return time.tv_sec * kSecond + time.tv_nsec;
}

timespec ToTimespec(int64_t nanoseconds) {
  return {nanoseconds / kSecond, nanoseconds % kSecond};
}

int64_t WallNow() {
  timespec now;
  RealSyscall()(SYS_clock_gettime, CLOCK_REALTIME, &now);
  return Nanoseconds(now) + Offset();
}

// Waits on a futex until the time `end` of the wall clock. Wakes up every
// kSlice to notice a jump of the clock.
long WaitUntil(long address, long operation, long value, int64_t end) {
  const long wait = FUTEX_WAIT | (operation & FUTEX_PRIVATE_FLAG);
  while (true) {
    const int64_t left = end - WallNow();
    if (left <= 0) {
      errno = ETIMEDOUT;
      return -1;
    }
    const timespec slice = ToTimespec(std::min(left, kSlice));
    const long result =
        RealSyscall()(SYS_futex, address, wait, value, &slice, 0L, 0L);
    if (result == 0 || errno != ETIMEDOUT) return result;
  }
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = RealSyscall()(SYS_clock_gettime, clock, time);
  if (result == 0 && clock == CLOCK_REALTIME) {
    *time = ToTimespec(Nanoseconds(*time) + Offset());
  }
  return result;
}

int gettimeofday(timeval* time, void*) noexcept {
  const int64_t now = WallNow();
  *time = {now / kSecond, now % kSecond / 1000};
  return 0;
}

time_t time(time_t* time) noexcept {
  const time_t now = WallNow() / kSecond;
  if (time != nullptr) *time = now;
  return now;
}

long syscall(long number, ...) noexcept {
  long a[6];
  va_list list;
  va_start(list, number);
  for (long& each : a) each = va_arg(list, long);
  va_end(list);
  const long until = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
  if (number == SYS_futex && (a[1] & ~FUTEX_PRIVATE_FLAG) == until &&
      a[3] != 0) {
    return WaitUntil(a[0], a[1], a[2],
                     Nanoseconds(*reinterpret_cast<const timespec*>(a[3])));
  }
  return RealSyscall()(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"
