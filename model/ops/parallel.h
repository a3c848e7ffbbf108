#ifndef SFMAMBA_MODEL_OPS_PARALLEL_H_
#define SFMAMBA_MODEL_OPS_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace sfmamba::ops {

// Calls body(begin, end) on parts of 0 .. count-1 that together are the whole,
// on libtorch's intra-op threads and the caller's; parts of `grain` at least,
// so one call if there is no more. Returns when all are done and throws what a
// body threw. Inside a body it runs serially, and so do libtorch's operators.
//
// at::parallel_for itself is a template and is parallel only in files built
// with OpenMP; this file is, against the OpenMP runtime that libtorch brings.
void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

// The same by parts of `size` (the last may be smaller) whatever the number of
// threads: body(first, how many), in libtorch's inference mode.
void ParallelParts(int64_t count, int64_t size,
                   absl::FunctionRef<void(int64_t first, int64_t count)> body);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_PARALLEL_H_
