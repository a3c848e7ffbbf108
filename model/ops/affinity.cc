#include "model/ops/affinity.h"

#include <sched.h>

namespace sfmamba::ops {

std::vector<int> ThreadProcessors() {
  std::vector<int> processors;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

void BindThread(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) {
    if (processor >= 0 && processor < CPU_SETSIZE) CPU_SET(processor, &set);
  }
  sched_setaffinity(0, sizeof(set), &set);
}

void MoveThread(pid_t id, int processor) {
  cpu_set_t all, one;
  if (processor < 0 || processor >= CPU_SETSIZE) return;
  if (sched_getaffinity(id, sizeof(all), &all) != 0) return;
  // The thread may be bound to a group of CPUs that does not contain this one.
  if (!CPU_ISSET(processor, &all)) return;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  // The first call moves the thread to this CPU at once. The second call allows
  // Linux to move it again later.
  if (sched_setaffinity(id, sizeof(one), &one) != 0) return;
  sched_setaffinity(id, sizeof(all), &all);
}

}  // namespace sfmamba::ops
