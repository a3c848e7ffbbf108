#ifndef SFMAMBA_MODEL_WEIGHTS_KEY_RANDOM_H_
#define SFMAMBA_MODEL_WEIGHTS_KEY_RANDOM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace sfmamba::weights {

// Returns the seed for a tensor's random numbers. It is a hash (FNV-1a) of the
// tensor's key.
inline uint64_t KeySeed(absl::string_view key, uint64_t seed = 0) {
  uint64_t hash = 0xcbf29ce484222325 + seed;
  for (const char c : key) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

// Returns random number `i` of the sequence with seed `seed` (splitmix64). It
// is in [-1, 1) and a multiple of 2^-23.
inline float UniformAt(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  return static_cast<float>(z >> 40) / (1 << 23) - 1;
}

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_KEY_RANDOM_H_
