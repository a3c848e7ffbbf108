// Access to rows of packed tensors in device code. Only .cu files include this
// header.
#ifndef SFMAMBA_KERNELS_CUDA_DEVICE_ROWS_H_
#define SFMAMBA_KERNELS_CUDA_DEVICE_ROWS_H_

#include <cstdint>

#include "kernels/base/packed_sequences.h"
#include "simt/simt.h"

namespace sfmamba::kernels {

// The number of values of type T that one instruction can load or store.
template <typename T>
constexpr int kWidestVector = 16 / sizeof(T);

// The number of blocks in a launch if the host does not know the number of
// tokens, because the offsets are in device memory. Each thread loops until all
// tokens are done.
constexpr int kRaggedBlocks = 1024;

// Returns true if rows of `channels` values, `stride` apart, can be loaded and
// stored V values at a time. One instruction accesses up to 16 bytes. For more
// bytes several instructions are used.
template <int V, typename T>
bool InVectors(const T* data, int64_t stride, int64_t channels) {
  constexpr size_t kBytes = V < kWidestVector<T> ? V * sizeof(T) : 16;
  return channels % V == 0 && stride % V == 0 &&
         reinterpret_cast<uintptr_t>(data) % kBytes == 0;
}

// Loads V values from a row and converts them to float. V is a power of two.
// InVectors<V> must be true for the rows.
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

// Returns the index of the sequence that contains token `i`. One sequence must
// contain it.
__device__ __forceinline__ int SequenceOf(const PackedSequences& sequences,
                                          int i) {
  if (sequences.offsets == nullptr) {
    return (i - static_cast<int>(sequences.first)) / sequences.length;
  }
  // Finds the last sequence that begins at or before token i. Any other
  // sequence that begins at the same token is empty.
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
