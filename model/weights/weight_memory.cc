#include "model/weights/weight_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "ATen/ops/empty.h"
#include "ATen/ops/from_blob.h"

namespace sfmamba::weights {

at::Tensor EmptyWeights(int64_t count, at::ScalarType type) {
  const at::TensorOptions options(type);
  const int64_t bytes = count * c10::elementSize(type);
  // Smaller weights use small pages. In a huge page, they would leave more than
  // half of the page unused.
  if (bytes < kHugePage / 2) return at::empty({count}, options);
  const int64_t pages = (bytes + kHugePage - 1) / kHugePage;
  void* const memory = std::aligned_alloc(kHugePage, pages * kHugePage);
  if (memory == nullptr) throw std::bad_alloc();
  // If madvise() fails, the memory has small pages, which also work.
  (void)madvise(memory, pages * kHugePage, MADV_HUGEPAGE);
  return at::from_blob(
      memory, {count}, [](void* values) { std::free(values); }, options);
}

}  // namespace sfmamba::weights
