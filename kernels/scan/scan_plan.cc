#include "kernels/scan/scan_plan.h"

#include <algorithm>
#include <initializer_list>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace sfmamba::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kMostChunks = 1024;
constexpr int kItems[] = {2, 4, 7, 8, 13, 16};

// The minimum number of tokens in a chunk. Shorter chunks would spend most of
// their time filling the pipeline.
constexpr int kShortestChunk = 32;

// The overhead of kChunk in cycles. kChunk launches three kernels, whereas
// kLane launches one. The overhead is the cost of the two additional launches
// and of the loop that passes the states from chunk to chunk.
constexpr int64_t kChunkOverhead = 6000;

// A variant of the lane kernel. `cycles` is how many cycles of a scheduler a
// warp needs for a token. This is the number of instructions, as compiled for
// sm_90, or 8 times the number of special functions, whichever is larger. No
// variant has two channels per thread. On an H200, such variants were never
// faster than the same variants with one channel per thread, and up to 1.7
// times slower.
struct Variant {
  int lanes, cycles;
};

// Used for CrossScanCuda(), whose channels have one state each.
constexpr Variant kOneState[] = {{1, 50}};
// There is no variant with 8 lanes for 8 states, because it is slower on an
// H200. Each lane would compute only one state per token and would then wait
// for values of the other lanes.
constexpr Variant kEightStates[] = {{1, 84}, {2, 52}, {4, 33}};
constexpr Variant kSixteenStates[] = {{1, 144}, {2, 74}, {4, 44}, {8, 30}};

absl::Span<const Variant> Variants(int states) {
  if (states == 1) return kOneState;
  if (states <= 8) return kEightStates;
  return kSixteenStates;
}

// kFold is used if there are at most kFoldedScans scans (sequences times
// channels) per multiprocessor. It reads the tokens concurrently, whereas kLane
// reads them in order. On an H200, 1 to 8 sequences of 198 tokens and 160 to
// 256 channels take 6.8 to 8.9 us with kFold and 9.6 to 12.6 us with kLane. For
// 51 tokens, both take the same time.
constexpr int kFoldedScans = 16;
constexpr int kLeastFolded = 128, kMostFolded = 512;  // In tokens.

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns the cycles of a scan of `groups` sequences (or chunks) of `length`
// tokens each, which run concurrently.
int64_t Cycles(const Variant& variant, int multiprocessors, int64_t groups,
               int64_t length, int channels) {
  const int64_t warps =
      groups * CeilDivide(int64_t{channels} * variant.lanes, kWarp);
  const int64_t schedulers = int64_t{4} * multiprocessors;
  const int64_t walk = length * variant.cycles;
  // If there is only one warp per scheduler, no other warp can run while this
  // warp waits for its own results. The scan then takes 30 % more cycles.
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
  if (states == 8 && length >= kLeastFolded && length <= kMostFolded &&
      int64_t{sequences} * channels <= kFoldedScans * multiprocessors) {
    best.kernel = ScanPlan::kFold;
    return best;
  }
  // If a channel has one state, chaining more than 256 chunks takes more time
  // than it saves.
  const int most_chunks = states == 1 ? 256 : kMostChunks;
  for (const Variant& variant : Variants(states)) {
    ScanPlan plan;
    plan.lanes = variant.lanes;
    consider(plan,
             Cycles(variant, multiprocessors, sequences, length, channels));
    plan.kernel = ScanPlan::kChunk;
    for (int chunks = 2; chunks * kShortestChunk <= length; chunks *= 2) {
      if (chunks > most_chunks) break;
      plan.chunks = chunks;
      consider(plan, kChunkOverhead + 2 * Cycles(variant, multiprocessors,
                                                 int64_t{sequences} * chunks,
                                                 CeilDivide(length, chunks),
                                                 channels));
    }
  }
  return best;
}

int64_t ScanScratchBytes(const ScanPlan& plan, int sequences, int channels,
                         int states) {
  if (plan.kernel != ScanPlan::kChunk) return 0;
  // For each channel, each chunk but the last stores its states and its sum of
  // s (see scan_math.h).
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
