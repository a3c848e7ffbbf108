#ifndef SFMAMBA_KERNELS_SCAN_SCAN_PLAN_H_
#define SFMAMBA_KERNELS_SCAN_SCAN_PLAN_H_

#include <cstdint>

#include "absl/status/status.h"

namespace sfmamba::kernels {

// How the CUDA selective scan divides its work. Every plan that CheckScanPlan
// accepts gives a valid result. A field that the plan's kernel does not read is
// ignored.
struct ScanPlan {
  // kLane: `lanes` threads per channel walk over the tokens in order. A
  //   sequence's output bits depend on that sequence alone.
  // kFold: each row of folded sequences is scanned in parallel (SF-Mamba's
  //   batch folding).
  // kChunk: each sequence is cut into `chunks` pieces that are scanned
  //   concurrently, which suits few long sequences.
  enum Kernel { kLane, kFold, kChunk };

  Kernel kernel = kLane;

  // kLane, kChunk: threads per block, a multiple of 32 from 128 to 256; 0 lets
  // the kernel choose.
  int threads = 0;

  // kLane, kChunk: threads per channel; 1, 2, 4 or 8.
  int lanes = 1;

  // kLane with one lane: 1 or 2.
  int channels_per_thread = 1;

  // kLane, kFold: the paper's B1, the number of rows that the sequences are
  // distributed over. Rows differ by at most one sequence. 0 gives each
  // sequence its own row.
  int rows = 0;

  // kFold: consecutive tokens per thread; 2, 4, 7, 8, 13 or 16. 0 takes the
  // fewest with which 32 threads span a row, at most 16, or 8 where
  // sequences.offsets is set.
  int items = 0;

  // kChunk: pieces per sequence, 1 to 1024.
  int chunks = 0;
};

// INVALID_ARGUMENT that names the field, its value and the values allowed.
absl::Status CheckScanPlan(const ScanPlan& plan);

// Returns the plan that is expected to be fastest: kFold without folding for a
// few sequences of moderate length, else the kLane or kChunk plan of a model of
// the lane kernel's instruction issue. The model multiplies the cycles per
// token and warp by the waves of warps over the schedulers. With one state, the
// plan is for CrossScanCuda and `sequences` counts the walks of all directions.
// All arguments are positive; `length` is that of the longest sequence. A pure
// function.
ScanPlan DefaultScanPlan(int multiprocessors, int sequences, int length,
                         int channels, int states);

// Returns the bytes of device memory that a scan by `plan` needs as scratch: 0
// unless the plan is kChunk.
int64_t ScanScratchBytes(const ScanPlan& plan, int sequences, int channels,
                         int states);

// Returns the items that a kFold plan with items = 0 uses for rows of `tokens`
// tokens: the fewest with which 32 threads span a row, at most 16.
int FoldItems(int64_t tokens);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SCAN_PLAN_H_
