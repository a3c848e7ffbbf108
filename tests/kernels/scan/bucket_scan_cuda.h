#ifndef SFMAMBA_TESTS_KERNELS_SCAN_BUCKET_SCAN_CUDA_H_
#define SFMAMBA_TESTS_KERNELS_SCAN_BUCKET_SCAN_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// The arguments of the selective scan in the form that SF-Mamba's authors
// found, and in the form to which they changed it, for comparison. Each channel
// of each row is a block scan in channel-major order. The number of threads is
// one of some powers of two.
//
// A row has `sequences` sequences of `length` tokens. The paper calls their
// number B2. The unfolded scan has one sequence per row. The formulas are those
// of kernels/scan/selective_scan.h. All pointers are device pointers, and all
// tensors are dense. Source: SF-Mamba (arXiv 2603.16423), 3.3.
template <typename T>
struct BucketScanArgs {
  int rows;  // B1 in the paper.
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

// The number of threads that scan a row, and the tokens of each at a time.
struct ScanBucket {
  int threads, items;
};

// Returns 32x4 for up to 128 tokens, 32x8 for up to 256, 32x16 for up to 512,
// and 64x16 for up to 1024. Scans of longer rows use 128x16 repeatedly.
ScanBucket BucketOf(int tokens);

// Enqueues the scan on `stream` and returns. Returns INTERNAL if the launch is
// refused. T is float, BFloat16 or Float16.
template <typename T>
absl::Status BucketScanCuda(const BucketScanArgs<T>& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_SCAN_BUCKET_SCAN_CUDA_H_
