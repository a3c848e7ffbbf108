#ifndef SFMAMBA_MODEL_OPS_PARALLEL_H_
#define SFMAMBA_MODEL_OPS_PARALLEL_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "model/processor_group.h"

namespace sfmamba::ops {

// The number of threads that a loop of the calling thread may have: 1 within a
// part of a loop, otherwise libtorch's number of intra-op threads.
int LoopThreads();

// Whether a loop of the calling thread has more parts than threads at present,
// because other processes use the processors.
bool LoopsHaveManyParts();

// While it exists, libtorch's operators, oneDNN's and MKL's among them, use one
// thread if they are called from the thread that made it; loops use as many as
// before. libtorch's threads spin after an operator and so take time from the
// ComputePool, which is why a model that has loops for most of its work lets
// the rest be serial.
class SerialOperators {
 public:
  SerialOperators() : SerialOperators(LoopThreads()) {}
  ~SerialOperators();
  SerialOperators(const SerialOperators&) = delete;
  SerialOperators& operator=(const SerialOperators&) = delete;

 protected:
  explicit SerialOperators(int loop_threads);

 private:
  const int loop_threads_;      // Before, as in LoopThreads().
  const int operator_threads_;  // Before, of libtorch.
  int mkl_threads_ = 0;         // Before, of MKL.
};

// From now on the calling thread's loops and operators have one thread.
void ComputeAlone();

class ComputePool;

// While it exists, the thread that made it, its loops and libtorch's operators
// run on the group's processors only, with at most the group's threads. Groups
// of the same processors share a ComputePool. What the threads allocate and
// write first lies in the memory of their NUMA node, as is the kernel's
// default.
//
// Must be destroyed by the thread that made it, before any that it made later.
// If the kernel refuses, that costs speed only.
class OnProcessorGroup {
 public:
  explicit OnProcessorGroup(const model::ProcessorGroup& group);
  ~OnProcessorGroup();
  OnProcessorGroup(const OnProcessorGroup&) = delete;
  OnProcessorGroup& operator=(const OnProcessorGroup&) = delete;

 private:
  // The settings to restore.
  const std::vector<int> processors_;
  const int operator_threads_;
  ComputePool* const pool_;
  int mkl_threads_ = 0;
};

// Calls body(begin, end) for parts that partition [0, count), on the
// ComputePool of the thread's OnProcessorGroup, otherwise on the process's,
// which all other threads and all models share: at most LoopThreads() threads,
// the calling one among them. A part has at least `grain` elements, so there is
// one call if count < 2 * grain. Returns when all calls are done, and throws
// what a call threw. If there are several calls, a ParallelFor
// within `body` runs serially, and so do libtorch's operators.
//
// Which parts there are depends on the threads and on chance, so results must
// not depend on them.
void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

// Calls body(first, count) for parts of `size` elements (the last may be
// smaller), whatever the number of threads, in libtorch's inference mode.
void ParallelParts(int64_t count, int64_t size,
                   absl::FunctionRef<void(int64_t first, int64_t count)> body);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_PARALLEL_H_
