#ifndef SFMAMBA_MODEL_OPS_PARALLEL_H_
#define SFMAMBA_MODEL_OPS_PARALLEL_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "model/processor_group.h"

namespace sfmamba::ops {

// Returns the number of threads that a loop of the calling thread may use.
// Within a part of a loop, this is 1. Outside of loops, it is libtorch's number
// of intra-op threads.
int LoopThreads();

// Returns whether loops of the calling thread are now divided into more parts
// than they have threads. This is the case while other processes use the CPUs.
bool LoopsHaveManyParts();

// While an object exists, operators of libtorch, oneDNN and MKL that its thread
// calls use only one thread. Loops use as many threads as before. Models that
// do most of their work in loops use this class. Without it, libtorch's threads
// would spin after each operator and take time from the ComputePool.
class SerialOperators {
 public:
  SerialOperators() : SerialOperators(LoopThreads()) {}
  ~SerialOperators();
  SerialOperators(const SerialOperators&) = delete;
  SerialOperators& operator=(const SerialOperators&) = delete;

 protected:
  explicit SerialOperators(int loop_threads);

 private:
  // The previous numbers of threads of loops, of libtorch and of MKL.
  const int loop_threads_;
  const int operator_threads_;
  int mkl_threads_ = 0;
};

// From now on, the calling thread's loops and operators use no other thread.
void ComputeAlone();

class ComputePool;

// While an object exists, its thread runs only on the group's CPUs. The
// thread's loops and libtorch's operators also run there, with at most the
// group's number of threads. Groups with the same CPUs share a ComputePool.
// Memory that these threads write first lies on their NUMA node, which is
// Linux's default.
//
// Must be destroyed by the thread that made it. If a thread has several
// objects, it must destroy the last one first. If Linux refuses to bind the
// thread, the work is only slower.
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

// Calls body(begin, end) for parts that partition [0, count). A part has at
// least `grain` elements, so there is only one call if count < 2 * grain.
// Returns when all calls are done. If a call throws, this throws the same
// exception.
//
// At most LoopThreads() threads make the calls, including the calling one. The
// other threads belong to the ComputePool of the thread's OnProcessorGroup. If
// there is none, they belong to the process's pool, which all other threads and
// all models share. If there are several calls, a ParallelFor within `body`
// runs serially, and so do libtorch's operators.
//
// The parts depend on the threads and on chance, so results must not depend on
// the parts.
void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

// Calls body(first, count) for parts of `size` elements, in libtorch's
// inference mode. The last part may be smaller. The parts do not depend on the
// number of threads.
void ParallelParts(int64_t count, int64_t size,
                   absl::FunctionRef<void(int64_t first, int64_t count)> body);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_PARALLEL_H_
