#ifndef SFMAMBA_KERNELS_SCAN_SCAN_PLAN_H_
#define SFMAMBA_KERNELS_SCAN_SCAN_PLAN_H_

#include <cstdint>

#include "absl/status/status.h"

namespace sfmamba::kernels {

// How the CUDA selective scan spreads its work. Every plan that CheckScanPlan
// accepts gives a valid result; a field that its kernel does not read is
// ignored.
struct ScanPlan {
  // kLane: `lanes` threads a channel, in sequence over the tokens; the bits of
  //   a sequence depend on nothing but itself.
  // kFold: a block scan over folded rows (SF-Mamba's batch folding).
  // kChunk: each sequence in `chunks` pieces, for few long ones.
  enum Kernel { kLane, kFold, kChunk };

  Kernel kernel = kLane;
  int threads = 0;  // kLane, kChunk: of a block, 128 to 256; 0: the kernel's
                    // own choice.
  int lanes = 1;    // kLane, kChunk: 1, 2, 4 or 8 threads a channel.
  int channels_per_thread = 1;  // kLane with one lane: 1 or 2.
  int rows = 0;   // kLane, kFold: B1, the rows that the sequences are shared
                  // out over, evenly but for one; 0: one row a sequence.
  int items = 0;  // kFold: tokens a thread, 2, 4, 7, 8, 13 or 16; 0: the fewest
                  // with which 32 threads span a row.
  int chunks = 0;  // kChunk: pieces of a sequence, 1 to 1024.
};

// INVALID_ARGUMENT naming the field, what it is and what it may be.
absl::Status CheckScanPlan(const ScanPlan& plan);

// The plan that the issue model of the lane kernel expects to be fastest, of
// kLane and kChunk: cycles a token and warp, times waves of warps over the
// schedulers. A pure function; `multiprocessors` of the device, the rest of the
// scan, all positive. `length` is that of the longest sequence.
ScanPlan DefaultScanPlan(int multiprocessors, int sequences, int length,
                         int channels, int states);

// Device memory, in bytes, that a scan by `plan` needs as scratch; 0 unless
// kChunk.
int64_t ScanScratchBytes(const ScanPlan& plan, int sequences, int channels,
                         int states);

// kFold: what items = 0 stands for with rows of `tokens`.
int FoldItems(int64_t tokens);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SCAN_PLAN_H_
