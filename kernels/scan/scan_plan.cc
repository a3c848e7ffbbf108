#include "kernels/scan/scan_plan.h"

#include <algorithm>
#include <initializer_list>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sfmamba::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kMostChunks = 1024;
constexpr int kItems[] = {2, 4, 7, 8, 13, 16};

// The fewest tokens in a chunk. Shorter chunks spend their time on filling the
// pipeline.
constexpr int kShortestChunk = 32;

// The cycles of kChunk's two additional launches, including the chain over the
// chunks.
constexpr int64_t kChunkOverhead = 6000;

// A variant of the lane kernel and the scheduler cycles that a warp needs for a
// token. These are the number of instructions issued, as compiled for sm_90, or
// 8 times the number of special functions, whichever is larger. Two channels a
// thread are not among them: on an H200 they never gained and lost up to 1.7
// times.
struct Variant {
  int lanes;
  int cycles8, cycles16;  // For 8 and for 16 states.
};

constexpr Variant kVariants[] = {
    {1, 84, 144}, {2, 52, 74}, {4, 33, 44}, {8, 25, 30}};
// More lanes than this are slower on an H200: each waits for the others.
constexpr int kMostLanes8 = 4;  // With 8 states.

// Up to kFoldedScans scans a multiprocessor take less time by kFold, which
// reads the tokens concurrently, than by lanes, which walk them. On an H200, 1
// to 8 sequences of 198 tokens and 160 to 256 channels: 6.8 to 8.9 us in place
// of 9.6 to 12.6. With 51 tokens both take as long.
constexpr int kFoldedScans = 16;
constexpr int kLeastFolded = 128, kMostFolded = 512;  // Tokens.

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns the cycles of a scan of `groups` sequences (or chunks) of `length`
// tokens each, which run concurrently.
int64_t Cycles(const Variant& variant, int multiprocessors, int64_t groups,
               int64_t length, int channels, int states) {
  const int64_t warps =
      groups * CeilDivide(int64_t{channels} * variant.lanes, kWarp);
  const int64_t schedulers = int64_t{4} * multiprocessors;
  const int cycles = states <= 8 ? variant.cycles8 : variant.cycles16;
  const int64_t walk = length * cycles;
  // A warp that has a scheduler to itself must wait for its own results.
  if (warps <= schedulers) return walk * 13 / 10;
  return walk * CeilDivide(warps, schedulers);
}

absl::Status CheckField(const char* field, int got,
                        std::initializer_list<int> expected) {
  if (absl::c_linear_search(expected, got)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("scan plan: ", field, ": got ", got, ", expected ",
                   absl::StrJoin(expected, " or ")));
}

absl::Status CheckRange(const char* field, int got, int least, int most) {
  if (got >= least && got <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "scan plan: ", field, ": got ", got, ", expected ", least, " to ", most));
}

absl::Status CheckLanes(const ScanPlan& plan) {
  absl::Status status = CheckField("lanes", plan.lanes, {1, 2, 4, 8});
  if (!status.ok()) return status;
  return CheckField("threads", plan.threads, {0, 128, 160, 192, 224, 256});
}

}  // namespace

absl::Status CheckScanPlan(const ScanPlan& plan) {
  absl::Status status;
  switch (plan.kernel) {
    case ScanPlan::kLane:
      status = CheckLanes(plan);
      if (!status.ok()) return status;
      status = plan.lanes == 1
                   ? CheckField("channels_per_thread", plan.channels_per_thread,
                                {1, 2})
                   : CheckField("channels_per_thread, with several lanes",
                                plan.channels_per_thread, {1});
      if (!status.ok()) return status;
      return CheckRange("rows", plan.rows, 0, 1 << 30);
    case ScanPlan::kFold:
      status = CheckField("items", plan.items, {0, 2, 4, 7, 8, 13, 16});
      if (!status.ok()) return status;
      return CheckRange("rows", plan.rows, 0, 1 << 30);
    case ScanPlan::kChunk:
      status = CheckLanes(plan);
      if (!status.ok()) return status;
      return CheckRange("chunks", plan.chunks, 1, kMostChunks);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("scan plan: kernel: got ", plan.kernel, ", expected ",
                   ScanPlan::kLane, " to ", ScanPlan::kChunk));
}

ScanPlan DefaultScanPlan(int multiprocessors, int sequences, int length,
                         int channels, int states) {
  ScanPlan best;
  int64_t fewest = 0;
  const auto consider = [&](const ScanPlan& plan, int64_t cycles) {
    if (fewest != 0 && cycles >= fewest) return;
    fewest = cycles;
    best = plan;
  };
  if (states <= 8 && length >= kLeastFolded && length <= kMostFolded &&
      int64_t{sequences} * channels <= kFoldedScans * multiprocessors) {
    best.kernel = ScanPlan::kFold;
    return best;
  }
  for (const Variant& variant : kVariants) {
    if (states <= 8 && variant.lanes > kMostLanes8) continue;
    ScanPlan plan;
    plan.lanes = variant.lanes;
    consider(plan, Cycles(variant, multiprocessors, sequences, length, channels,
                          states));
    plan.kernel = ScanPlan::kChunk;
    for (int chunks = 2; chunks * kShortestChunk <= length; chunks *= 2) {
      if (chunks > kMostChunks) break;
      plan.chunks = chunks;
      consider(plan, kChunkOverhead + 2 * Cycles(variant, multiprocessors,
                                                 int64_t{sequences} * chunks,
                                                 CeilDivide(length, chunks),
                                                 channels, states));
    }
  }
  return best;
}

int64_t ScanScratchBytes(const ScanPlan& plan, int sequences, int channels,
                         int states) {
  if (plan.kernel != ScanPlan::kChunk) return 0;
  // Each chunk but the last stores its states and its sum of time steps.
  return int64_t{sequences} * (plan.chunks - 1) * (states + 1) * channels *
         static_cast<int64_t>(sizeof(float));
}

int FoldItems(int64_t tokens) {
  for (const int items : kItems) {
    if (tokens <= kWarp * items) return items;
  }
  return kItems[std::size(kItems) - 1];
}

}  // namespace sfmamba::kernels
