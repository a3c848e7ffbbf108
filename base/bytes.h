#ifndef SFMAMBA_BASE_BYTES_H_
#define SFMAMBA_BASE_BYTES_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace sfmamba::base {

// BigEndian() and LittleEndian() return the unsigned integer of `size` bytes (1
// to 4) at `offset`. The integer must lie inside `bytes`.
inline uint32_t BigEndian(absl::string_view bytes, size_t offset, int size) {
  uint32_t value = 0;
  for (int i = 0; i < size; ++i) {
    value = value << 8 | static_cast<uint8_t>(bytes[offset + i]);
  }
  return value;
}

inline uint32_t LittleEndian(absl::string_view bytes, size_t offset, int size) {
  uint32_t value = 0;
  for (int i = size - 1; i >= 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[offset + i]);
  }
  return value;
}

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_BYTES_H_
