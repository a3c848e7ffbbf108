#include "model/parallel.h"

#include "ATen/Parallel.h"

namespace sfmamba {

void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  at::parallel_for(0, count, grain, body);
}

}  // namespace sfmamba
