#ifndef SFMAMBA_KERNELS_BASE_FLOAT16_H_
#define SFMAMBA_KERNELS_BASE_FLOAT16_H_

#include <cstdint>
#include <cstring>

namespace sfmamba::kernels {

// An IEEE half-precision number. Arithmetic is done in float. c10::Half has the
// same layout (one uint16_t), so pointers may be cast from one type to the
// other.
struct Float16 {
  uint16_t bits;

  Float16() = default;

  // Rounds to nearest, ties to even. Values that round to more than 65504
  // become infinite. A NaN stays a NaN.
  explicit Float16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, sizeof(word));
    const uint32_t sign = (word >> 16) & 0x8000;
    word &= 0x7fffffff;
    if (word > 0x7f800000) {
      bits = static_cast<uint16_t>(sign | 0x7e00);
    } else if (word >= 0x477ff000) {  // Rounds to 65536 or more.
      bits = static_cast<uint16_t>(sign | 0x7c00);
    } else if (word < 0x38800000) {  // Below 2^-14 the result is subnormal.
      float magnitude;
      std::memcpy(&magnitude, &word, sizeof(magnitude));
      // The last bit of 0.5f is 2^-24. So the addition rounds to a multiple of
      // 2^-24, as the subnormal result requires.
      magnitude += 0.5f;
      std::memcpy(&word, &magnitude, sizeof(word));
      bits = static_cast<uint16_t>(sign | (word - 0x3f000000));
    } else {
      // Rounds, and changes the exponent's bias from 127 to 15.
      word += 0xc8000fff + ((word >> 13) & 1);
      bits = static_cast<uint16_t>(sign | (word >> 13));
    }
  }

  explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    const uint32_t rest = bits & 0x7fff;
    uint32_t word;
    if (rest >= 0x7c00) {
      word = 0x7f800000 | ((rest & 0x3ff) << 13);
    } else if (rest >= 0x400) {
      word = (rest << 13) + 0x38000000;
    } else {
      const float magnitude = static_cast<float>(rest) * 0x1p-24f;
      std::memcpy(&word, &magnitude, sizeof(word));
    }
    word |= sign;
    float value;
    std::memcpy(&value, &word, sizeof(value));
    return value;
  }
};

static_assert(sizeof(Float16) == 2, "must match c10::Half");

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_BASE_FLOAT16_H_
