#ifndef SFMAMBA_TESTS_KERNELS_SCAN_BUCKET_SCAN_CUDA_H_
#define SFMAMBA_TESTS_KERNELS_SCAN_BUCKET_SCAN_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// The selective scan as SF-Mamba's authors found it and as they changed it, to
// compare ours with: a block scan for each channel of each row, channel-major,
// whose threads come in buckets of powers of two.
//
// A row holds `sequences` sequences of `length` tokens, B2 of the paper; one a
// row is the unfolded scan. The formulas are those of
// kernels/scan/selective_scan.h. All pointers are device pointers, all tensors
// dense. Source: SF-Mamba (arXiv 2603.16423), 3.3.
template <typename T>
struct BucketScanArgs {
  int rows;  // B1
  int sequences, length;
  int channels;
  int states;  // At most 16.
  const T* u;  // [rows, channels, tokens]
  const T* dt;
  const T* B;  // [rows, states, tokens]
  const T* C;
  T* y;            // [rows, channels, tokens], written
  const float* A;  // [states, channels], negative
  const float* D;  // [channels]
  const float* bias;
};

// How many threads scan a row, and how many tokens each at a time.
struct ScanBucket {
  int threads, items;
};

// 32x4 up to 128 tokens, 32x8 to 256, 32x16 to 512, 64x16 to 1024, above it
// 128x16 again and again.
ScanBucket BucketOf(int tokens);

// Enqueues on `stream` and returns; INTERNAL if the launch is refused. T is
// float, BFloat16 or Float16.
template <typename T>
absl::Status BucketScanCuda(const BucketScanArgs<T>& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_SCAN_BUCKET_SCAN_CUDA_H_
