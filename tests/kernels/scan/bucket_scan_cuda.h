#ifndef SFMAMBA_TESTS_KERNELS_SCAN_BUCKET_SCAN_CUDA_H_
#define SFMAMBA_TESTS_KERNELS_SCAN_BUCKET_SCAN_CUDA_H_

#include "absl/status/status.h"
#include "kernels/cuda/cuda_stream.h"

namespace sfmamba::kernels {

// The arguments of BucketScanCuda(), a selective scan as in SF-Mamba's paper.
// It exists only for comparison with the project's kernels. Each channel of
// each row is scanned by one block of threads, in channel-major order.
// BucketOf() chooses the number of threads.
//
// A row has `sequences` sequences of `length` tokens. The paper calls this
// number of sequences B2. With one sequence per row, this is the scan from
// which the paper starts. With several, this is the paper's folded scan. The
// formulas are in kernels/scan/selective_scan.h. All pointers are device
// pointers, and all tensors are dense. Source: SF-Mamba (arXiv 2603.16423),
// 3.3.
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

// The number of threads that scan a channel of a row, and the number of
// consecutive tokens (`items`) that each thread scans at a time.
struct ScanBucket {
  int threads, items;
};

// Returns threads x items for rows of `tokens` tokens: 32x4 for up to 128, 32x8
// for up to 256, 32x16 for up to 512, and 64x16 for up to 1024. For longer
// rows, returns 128x16. The threads then scan several spans of 2048 tokens, one
// after another.
ScanBucket BucketOf(int tokens);

// Enqueues the scan on `stream` and returns. Returns INTERNAL if the launch is
// refused. T is float, BFloat16 or Float16.
template <typename T>
absl::Status BucketScanCuda(const BucketScanArgs<T>& args, CudaStream stream);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_SCAN_BUCKET_SCAN_CUDA_H_
