#ifndef SFMAMBA_KERNELS_SCAN_PLAN_H_
#define SFMAMBA_KERNELS_SCAN_PLAN_H_

namespace sfmamba {

// How the CUDA selective scan spreads its work. Every plan gives a valid
// result; a field that its kernel does not read is 0.
struct ScanPlan {
  // kLane: `lanes` threads a channel, in sequence over the tokens; the bits of
  //   a sequence depend on nothing but itself.
  // kFold: a block scan over folded rows (SF-Mamba's batch folding).
  // kChunk: each sequence in `chunks` pieces, for few long ones.
  enum Kernel { kLane, kFold, kChunk };

  Kernel kernel = kLane;
  int threads = 0;  // Of a block; 0: the kernel's own choice.
  int lanes = 1;    // kLane, kChunk: 1, 2, 4 or 8 threads a channel.
  int channels_per_thread = 1;  // kLane with one lane: 1 or 2.
  int rows = 0;   // B1: rows that the sequences are shared out over; 0: one row
                  // a sequence. kLane, kFold.
  int items = 0;  // kFold: tokens a thread.
  int chunks = 0;  // kChunk: pieces of a sequence.
};

}  // namespace sfmamba

#endif  // SFMAMBA_KERNELS_SCAN_PLAN_H_
