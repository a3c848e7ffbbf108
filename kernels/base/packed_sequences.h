#ifndef SFMAMBA_KERNELS_BASE_PACKED_SEQUENCES_H_
#define SFMAMBA_KERNELS_BASE_PACKED_SEQUENCES_H_

#include <cstdint>

#include "absl/base/attributes.h"

namespace sfmamba::kernels {

// Where the sequences of a packed tensor [tokens, ...] lie: sequence k is
// tokens begin(k) .. end(k)-1. Folding, windows and ragged batches are all such
// a list, so no kernel knows a batch, a row or a period.
//
// The members are always inlined because files built for different instruction
// sets include this header: a shared copy would be one of them at random. They
// are constexpr so that nvcc lets device code call them.
struct PackedSequences {
  int count;   // Sequences.
  int length;  // Tokens of each sequence; unused with offsets.
  // [count + 1], ascending, in tokens from the tensor's first row; not owned.
  const int32_t* offsets = nullptr;
  int64_t first = 0;  // Where sequence 0 begins; unused with offsets.

  ABSL_ATTRIBUTE_ALWAYS_INLINE constexpr int64_t begin(int k) const {
    return offsets != nullptr ? int64_t{offsets[k]}
                              : first + int64_t{length} * k;
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE constexpr int64_t end(int k) const {
    return begin(k + 1);
  }

  // Sequences [from, to) of the same tensor: how work is shared out.
  ABSL_ATTRIBUTE_ALWAYS_INLINE PackedSequences Slice(int from, int to) const {
    if (offsets != nullptr) return {to - from, length, offsets + from};
    return {to - from, length, nullptr, begin(from)};
  }
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_BASE_PACKED_SEQUENCES_H_
