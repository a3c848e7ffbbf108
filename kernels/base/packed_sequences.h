#ifndef SFMAMBA_KERNELS_BASE_PACKED_SEQUENCES_H_
#define SFMAMBA_KERNELS_BASE_PACKED_SEQUENCES_H_

#include <cstdint>

#include "absl/base/attributes.h"

namespace sfmamba::kernels {

// The boundaries of the sequences in a packed tensor [tokens, ...]. Sequence k
// consists of tokens begin(k) .. end(k) - 1. The sequences may be concatenated
// images of a batch (SF-Mamba's batch folding), windows of images, or sequences
// of different lengths. Kernels do not distinguish these cases.
//
// Files built for different instruction sets include this header, so the
// members are always inlined. Otherwise the linker would keep only one copy of
// a member, which might need instructions that the CPU lacks. The members are
// constexpr so that device code can call them with nvcc.
struct PackedSequences {
  int count;   // The number of sequences.
  int length;  // Tokens in each sequence; ignored if offsets is set.
  // The first token of each sequence, and the end of the last: [count + 1],
  // ascending. Tokens are counted from the first row of the tensor. Not owned.
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
