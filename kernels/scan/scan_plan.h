#ifndef SFMAMBA_KERNELS_SCAN_SCAN_PLAN_H_
#define SFMAMBA_KERNELS_SCAN_SCAN_PLAN_H_

#include <cstdint>

#include "absl/status/status.h"

namespace sfmamba::kernels {

// How the CUDA selective scan divides its work. Every plan that CheckScanPlan
// accepts gives a valid result. A field that the plan's kernel does not read is
// ignored.
struct ScanPlan {
  // kLane: `lanes` threads per channel visit the tokens in order. A
  //   sequence's output bits depend on this sequence alone.
  // kFold: sequences are concatenated into rows (SF-Mamba's batch folding), and
  //   the tokens of each row are scanned in parallel.
  // kChunk: each sequence is cut into `chunks` pieces that are scanned
  //   concurrently, which suits few long sequences.
  enum Kernel { kLane, kFold, kChunk };

  Kernel kernel = kLane;

  // kLane, kChunk: threads per block, a multiple of 32 from 128 to 256. If 0,
  // the kernel chooses the number.
  int threads = 0;

  // kLane, kChunk: threads per channel; 1, 2, 4 or 8.
  int lanes = 1;

  // kLane with lanes = 1: channels per thread, 1 or 2.
  int channels_per_thread = 1;

  // kLane, kFold: the number of rows among which the sequences are distributed.
  // It is called B1 in the SF-Mamba paper (arXiv 2603.16423, 3.3). The numbers
  // of sequences of any two rows differ by at most one. If 0, each row has one
  // sequence.
  int rows = 0;

  // kFold: consecutive tokens per thread, which is 2, 4, 7, 8, 13 or 16. If 0,
  // the kernel uses FoldItems() of the longest row, or 8 if sequences.offsets
  // is set.
  int items = 0;

  // kChunk: pieces per sequence, 1 to 1024.
  int chunks = 0;
};

// Returns INVALID_ARGUMENT if a field of the plan is invalid. The message
// contains the field, its value and the allowed values.
absl::Status CheckScanPlan(const ScanPlan& plan);

// Returns the plan that is expected to be fastest. For a few sequences of
// moderate length, this is kFold with one sequence per row. Otherwise, a model
// predicts the time of each kLane and kChunk plan. It multiplies the cycles
// that a warp needs for a sequence by the number of warps that a scheduler runs
// one after another. If `states` is 1, the plan is for CrossScanCuda(), and
// `sequences` is the number of maps times the four directions. All arguments
// must be positive. `length` is the length of the longest sequence.
ScanPlan DefaultScanPlan(int multiprocessors, int sequences, int length,
                         int channels, int states);

// Returns how many bytes of device memory a scan with `plan` needs as scratch
// memory. Returns 0 unless plan.kernel is kChunk.
int64_t ScanScratchBytes(const ScanPlan& plan, int sequences, int channels,
                         int states);

// Returns the tokens per thread that a kFold plan with items = 0 uses for rows
// of `tokens` tokens. This is the smallest allowed number with which 32 threads
// have all tokens of a row, or 16 if no number is large enough.
int FoldItems(int64_t tokens);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SCAN_SCAN_PLAN_H_
