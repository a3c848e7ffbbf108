// Rows of packed tensors in device code: for .cu files.
#ifndef SFMAMBA_KERNELS_CUDA_DEVICE_ROWS_H_
#define SFMAMBA_KERNELS_CUDA_DEVICE_ROWS_H_

#include <cstdint>

#include "kernels/base/packed_sequences.h"
#include "simt/simt.h"

namespace sfmamba::kernels {

// Values of type T that the widest memory access moves.
template <typename T>
constexpr int kWidestVector = 16 / sizeof(T);

// Blocks of a launch over as many tokens as the device's offsets say, which
// the host does not know: threads go round until these are done.
constexpr int kRaggedBlocks = 1024;

// Whether rows of `channels` values, `stride` apart, can be accessed by V
// values at a time: by one instruction up to 16 bytes, by several beyond.
template <int V, typename T>
bool InVectors(const T* data, int64_t stride, int64_t channels) {
  constexpr size_t kBytes = V < kWidestVector<T> ? V * sizeof(T) : 16;
  return channels % V == 0 && stride % V == 0 &&
         reinterpret_cast<uintptr_t>(data) % kBytes == 0;
}

// V values, a power of two, from where InVectors<V> holds.
template <int V, typename T>
__device__ __forceinline__ void LoadFloats(const T* from, float (&to)[V]) {
  constexpr int kPiece = V < kWidestVector<T> ? V : kWidestVector<T>;
#pragma unroll
  for (int i = 0; i < V; i += kPiece) {
    const simt::Vector<T, kPiece> piece = simt::Load<kPiece>(from + i);
#pragma unroll
    for (int j = 0; j < kPiece; ++j) to[i + j] = simt::ToFloat(piece[j]);
  }
}

template <int V, typename T>
__device__ __forceinline__ void StoreFloats(T* to, const float (&from)[V]) {
  constexpr int kPiece = V < kWidestVector<T> ? V : kWidestVector<T>;
#pragma unroll
  for (int i = 0; i < V; i += kPiece) {
    simt::Vector<T, kPiece> piece;
#pragma unroll
    for (int j = 0; j < kPiece; ++j) {
      piece[j] = simt::FromFloat<T>(from[i + j]);
    }
    simt::Store(to + i, piece);
  }
}

// The sequence that token `i` belongs to, one of `sequences`' tokens.
__device__ __forceinline__ int SequenceOf(const PackedSequences& sequences,
                                          int i) {
  if (sequences.offsets == nullptr) {
    return (i - static_cast<int>(sequences.first)) / sequences.length;
  }
  // The last one that begins at or before i: others there are empty.
  int low = 0, high = sequences.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (sequences.offsets[middle] <= i) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_CUDA_DEVICE_ROWS_H_
