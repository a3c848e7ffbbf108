#ifndef SFMAMBA_KERNELS_BASE_BFLOAT16_H_
#define SFMAMBA_KERNELS_BASE_BFLOAT16_H_

#include <cstdint>
#include <cstring>

namespace sfmamba::kernels {

// A bf16 number: the upper 16 bits of a float. Arithmetic is done in float.
// c10::BFloat16 has the same layout (one uint16_t), so pointers may be cast
// from one type to the other.
//
// The members are always inlined for the reason given in packed_sequences.h:
// files for different instruction sets include this header.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;

  // Rounds to nearest, ties to even. A NaN stays a NaN.
  __attribute__((always_inline)) explicit BFloat16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, sizeof(word));
    if ((word & 0x7fffffff) > 0x7f800000) {
      bits = static_cast<uint16_t>((word >> 16) | 0x40);
    } else {
      bits = static_cast<uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
    }
  }

  __attribute__((always_inline)) explicit operator float() const {
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &word, sizeof(value));
    return value;
  }
};

static_assert(sizeof(BFloat16) == 2, "must match c10::BFloat16");

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_BASE_BFLOAT16_H_
