#include "model/ops/parallel.h"

#include <omp.h>

#include <algorithm>
#include <map>
#include <memory>

#include "ATen/Parallel.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "c10/core/InferenceMode.h"
#include "model/ops/affinity.h"
#include "model/ops/compute_pool.h"

// Limits the number of threads that MKL uses in the calling thread. If
// `threads` is 0, MKL uses OpenMP's number. Returns the previous limit.
// libtorch exports this function, but has no header for it.
extern "C" int MKL_Set_Num_Threads_Local(int threads);

namespace sfmamba::ops {
namespace {

// The result of LoopThreads() in this thread. 0 means the number that libtorch
// uses.
thread_local int thread_loop_threads = 0;
// The pool that computes this thread's loops. Null means the pool of the
// process.
thread_local ComputePool* thread_pool = nullptr;

// While an object exists, loops and operators that its thread calls use no
// other thread. ParallelFor() makes an object for each part of a loop that a
// thread computes.
class SerialPart : public SerialOperators {
 public:
  SerialPart() : SerialOperators(1) {}
};

// Returns the pool of the process, which all threads share.
ComputePool& ProcessPool() {
  static ComputePool pool;
  return pool;
}

// The pools of groups of processors. They exist until the process ends.
class GroupPools {
 public:
  ComputePool& Get(const std::vector<int>& processors)
      ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    std::unique_ptr<ComputePool>& pool = pools_[processors];
    if (pool == nullptr) pool = std::make_unique<ComputePool>(processors);
    return *pool;
  }

 private:
  absl::Mutex mu_;
  std::map<std::vector<int>, std::unique_ptr<ComputePool>> pools_
      ABSL_GUARDED_BY(mu_);
};

ComputePool& PoolOf(const std::vector<int>& processors) {
  static GroupPools pools;
  return pools.Get(processors);
}

// Returns the pool that computes the calling thread's loops.
ComputePool& LoopPool() {
  return thread_pool != nullptr ? *thread_pool : ProcessPool();
}

}  // namespace

int LoopThreads() {
  return thread_loop_threads > 0 ? thread_loop_threads : at::get_num_threads();
}

// Here and below, at::get_num_threads() is called so that libtorch sets up the
// thread's limits now. Otherwise libtorch would do this later and overwrite the
// changes.
SerialOperators::SerialOperators(int loop_threads)
    : loop_threads_(thread_loop_threads),
      operator_threads_(at::get_num_threads()) {
  thread_loop_threads = loop_threads;
  if (operator_threads_ > 1) {
    omp_set_num_threads(1);
    mkl_threads_ = MKL_Set_Num_Threads_Local(1);
  }
}

SerialOperators::~SerialOperators() {
  thread_loop_threads = loop_threads_;
  if (operator_threads_ > 1) {
    omp_set_num_threads(operator_threads_);
    MKL_Set_Num_Threads_Local(mkl_threads_);
  }
}

void ComputeAlone() {
  at::get_num_threads();
  thread_loop_threads = 1;
  omp_set_num_threads(1);
  MKL_Set_Num_Threads_Local(1);
}

// libtorch's threads are started by this thread, so they run on the same CPUs.
OnProcessorGroup::OnProcessorGroup(const model::ProcessorGroup& group)
    : processors_(ThreadProcessors()),
      operator_threads_(at::get_num_threads()),
      pool_(thread_pool) {
  BindThread(group.processors);
  thread_pool = &PoolOf(group.processors);
  omp_set_num_threads(group.threads);
  mkl_threads_ = MKL_Set_Num_Threads_Local(group.threads);
}

OnProcessorGroup::~OnProcessorGroup() {
  MKL_Set_Num_Threads_Local(mkl_threads_);
  omp_set_num_threads(operator_threads_);
  thread_pool = pool_;
  BindThread(processors_);
}

bool LoopsHaveManyParts() { return LoopPool().IsDisturbed(); }

void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  const int threads = LoopThreads();
  if (threads == 1 || count < 2 * grain) {
    if (count > 0) body(0, count);
    return;
  }
  LoopPool().Run(threads, count, grain, [&](int64_t begin, int64_t end) {
    const SerialPart guard;
    body(begin, end);
  });
}

void ParallelParts(int64_t count, int64_t size,
                   absl::FunctionRef<void(int64_t first, int64_t count)> body) {
  const int64_t parts = (count + size - 1) / size;
  ParallelFor(parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
    const c10::InferenceMode guard;  // The mode is set for each thread.
    for (int64_t first = begin * size; first < std::min(end * size, count);
         first += size) {
      body(first, std::min(size, count - first));
    }
  });
}

}  // namespace sfmamba::ops
