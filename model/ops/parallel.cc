#include "model/ops/parallel.h"

#include <algorithm>

#include "ATen/Parallel.h"
#include "c10/core/InferenceMode.h"

namespace sfmamba::ops {

void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  at::parallel_for(0, count, grain, body);
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
