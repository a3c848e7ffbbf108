#include "tests/emulator/shared_shadow.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace sfmamba::simt {

void SharedShadow::Accesses::Add(const Thread& thread) {
  if (epoch != Epoch()) {
    epoch = Epoch();
    warp = thread.warp;
    other = -1;
    std::fill(times, times + kWarp, 0);
  }
  if (thread.warp == warp) {
    times[thread.lane] = thread.time;
  } else {
    other = thread.rank;
  }
}

int SharedShadow::Accesses::Unordered(const Thread& thread) const {
  if (epoch != Epoch()) return -1;
  for (int lane = 0; lane < kWarp; ++lane) {
    const bool ordered =
        thread.warp == warp &&
        (lane == thread.lane || times[lane] <= thread.seen[lane]);
    if (times[lane] != 0 && !ordered) return warp * kWarp + lane;
  }
  return thread.warp == warp ? other : -1;
}

SharedShadow::Element& SharedShadow::At(int i) {
  if (i < 0 || i >= elements_.size()) {
    Fail(absl::StrCat("touches element ", i, " of a shared array of ",
                      elements_.size()));
  }
  return elements_[i];
}

void SharedShadow::Check(const Accesses& accesses, int i, const char* now,
                         const char* before) const {
  const int other = accesses.Unordered(Running());
  if (other < 0) return;
  Fail(absl::StrCat(now, " element ", i, " of a shared array of ",
                    elements_.size(), " which ", NameOf(other), " ", before,
                    " with no barrier between: a race"));
}

void SharedShadow::Read(int i) {
  Element& element = At(i);
  Check(element.writes, i, "reads", "wrote");
  Check(element.atomics, i, "reads", "changed atomically");
  if (element.written < FirstEpochOfBlock()) {
    Fail(absl::StrCat("reads element ", i, " of a shared array of ",
                      elements_.size(), " which nobody has written"));
  }
  element.reads.Add(Running());
}

void SharedShadow::Write(int i) {
  Element& element = At(i);
  Check(element.reads, i, "writes", "read");
  Check(element.writes, i, "writes", "wrote");
  Check(element.atomics, i, "writes", "changed atomically");
  element.writes.Add(Running());
  element.written = Epoch();
}

void SharedShadow::Atomic(int i) {
  Element& element = At(i);
  Check(element.reads, i, "changes atomically", "read");
  Check(element.writes, i, "changes atomically", "wrote");
  if (element.written < FirstEpochOfBlock()) {
    Fail(absl::StrCat("changes element ", i, " of a shared array of ",
                      elements_.size(), " which nobody has written"));
  }
  element.atomics.Add(Running());
}

}  // namespace sfmamba::simt
