#include "tests/testing/allocations.h"

#include <errno.h>
#include <malloc.h>

#include <algorithm>
#include <cstddef>

// These are glibc's own functions. At the end of this file, malloc(), free()
// and related functions are replaced by functions that call these.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* block);
}

namespace sfmamba {
namespace {

// `live` is the number of bytes that this thread holds now, and `peak` is the
// maximum of `live`. Both need no initialization at run time, so malloc() may
// use them at any time.
thread_local int64_t live = 0;
thread_local int64_t peak = 0;

void* Added(void* block) {
  if (block != nullptr) live += malloc_usable_size(block);
  peak = std::max(peak, live);
  return block;
}

void Removed(void* block) {
  if (block != nullptr) live -= malloc_usable_size(block);
}

}  // namespace

int64_t PeakOfHeap(const std::function<void()>& fn) {
  live = 0;
  peak = 0;
  fn();
  return peak;
}

}  // namespace sfmamba

extern "C" {

void* malloc(size_t size) { return sfmamba::Added(__libc_malloc(size)); }

void* calloc(size_t count, size_t size) {
  return sfmamba::Added(__libc_calloc(count, size));
}

void* realloc(void* old, size_t size) {
  sfmamba::Removed(old);
  void* const block = __libc_realloc(old, size);
  return sfmamba::Added(block == nullptr && size > 0 ? old : block);
}

void* memalign(size_t alignment, size_t size) {
  return sfmamba::Added(__libc_memalign(alignment, size));
}

void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}

int posix_memalign(void** block, size_t alignment, size_t size) {
  *block = memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}

void free(void* block) {
  sfmamba::Removed(block);
  __libc_free(block);
}

}  // extern "C"
