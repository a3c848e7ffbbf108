#ifndef SFMAMBA_KERNELS_BASE_PACKED_SEQUENCES_H_
#define SFMAMBA_KERNELS_BASE_PACKED_SEQUENCES_H_

#include <cstdint>

#include "absl/base/attributes.h"

namespace sfmamba::kernels {

// The boundaries of the sequences in a packed tensor [tokens, ...]: sequence k
// consists of tokens begin(k) .. end(k) - 1. Folded batches, windows and ragged
// batches are all described this way, so kernels need no notion of them.
//
// The members are always inlined because files built for different instruction
// sets include this header: the linker would keep only one of their copies, and
// it might need instructions that the processor lacks. They are constexpr so
// that nvcc lets device code call them.
struct PackedSequences {
  int count;   // The number of sequences.
  int length;  // Tokens in each sequence; ignored if offsets is set.
  // [count + 1], ascending, in tokens from the tensor's first row; not owned.
  const int32_t* offsets = nullptr;
  int64_t first = 0;  // The first token; ignored if offsets is set.

  ABSL_ATTRIBUTE_ALWAYS_INLINE constexpr int64_t begin(int k) const {
    return offsets != nullptr ? int64_t{offsets[k]}
                              : first + int64_t{length} * k;
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE constexpr int64_t end(int k) const {
    return begin(k + 1);
  }

  // Returns sequences [from, to) of the same tensor, to divide work.
  ABSL_ATTRIBUTE_ALWAYS_INLINE PackedSequences Slice(int from, int to) const {
    if (offsets != nullptr) return {to - from, length, offsets + from};
    return {to - from, length, nullptr, begin(from)};
  }
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_BASE_PACKED_SEQUENCES_H_
