#ifndef SFMAMBA_MODEL_OPS_PARALLEL_H_
#define SFMAMBA_MODEL_OPS_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace sfmamba::ops {

// Calls body(begin, end) for parts that partition [0, count), on libtorch's
// intra-op threads and the calling thread. A part has at least `grain`
// elements, so there is one call if count <= grain. Returns when all calls are
// done, and throws what a call threw. A ParallelFor within `body` runs
// serially, and so do libtorch's operators.
//
// at::parallel_for itself is a template that is parallel only in files compiled
// with OpenMP. This function's file is, against libtorch's OpenMP runtime.
void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

// Calls body(first, count) for parts of `size` elements (the last may be
// smaller), whatever the number of threads, in libtorch's inference mode.
void ParallelParts(int64_t count, int64_t size,
                   absl::FunctionRef<void(int64_t first, int64_t count)> body);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_PARALLEL_H_
