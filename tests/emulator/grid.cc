#include "tests/emulator/grid.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "tests/emulator/fibre.h"

namespace sfmamba::simt {
namespace {

// The largest number of atomic operations of a grid. A kernel that exceeds this
// number is taken to be in an endless loop. For example, it may wait for a
// block that has not started, because blocks run one after another.
constexpr int64_t kMaxYields = 5000000;

constexpr char kSyncThreads[] = "__syncthreads";
constexpr char kSyncWarp[] = "__syncwarp";

std::string Triple(dim3 d) { return absl::StrCat(d.x, "x", d.y, "x", d.z); }

absl::Status CheckLimits(const std::string& name, dim3 blocks, dim3 threads) {
  const auto within = [](unsigned n, unsigned most) {
    return n >= 1 && n <= most;
  };
  if (within(blocks.x, 0x7fffffff) && within(blocks.y, 65535) &&
      within(blocks.z, 65535) && within(threads.x, 1024) &&
      within(threads.y, 1024) && within(threads.z, 64) &&
      uint64_t{threads.x} * threads.y * threads.z <= 1024) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(
      name, ": the launch of ", Triple(blocks), " blocks of ", Triple(threads),
      " threads failed: a GPU takes at most 2147483647x65535x65535 blocks of "
      "1024x1024x64 threads, 1024 in all, and none of 0"));
}

// One launch of a kernel.
class Grid {
 public:
  Grid(const std::string& name, dim3 blocks, dim3 threads, uint64_t seed,
       const std::function<void()>& kernel)
      : name_(name),
        blocks_(blocks),
        shape_(threads),
        seed_(seed),
        random_(seed),
        threads_(threads.x * threads.y * threads.z),
        waits_(threads_.size()),
        fibres_(threads_.size(), kernel) {}

  absl::Status Run();

  const Thread& running() const { return threads_[running_]; }
  uint64_t first_epoch() const { return first_epoch_; }
  const dim3& shape() const { return shape_; }

  [[noreturn]] void Fail(const std::string& message);
  void AwaitBlock(int line);
  uint64_t AwaitWarp(const char* operation, unsigned mask, uint64_t value,
                     int source, int line);
  void Yield();

  // Returns a mask of the lanes that exist in the running thread's warp.
  unsigned ExistingLanes() const {
    const int lanes = threads_.size() - running().warp * kWarp;
    return lanes >= kWarp ? ~0u : (1u << lanes) - 1;
  }

 private:
  struct Wait {
    const char* operation = nullptr;  // Null if the thread does not wait.
    unsigned mask = 0;
    int line = 0;
    uint64_t value = 0;
    int source = 0;  // If -1, the result is a ballot.
    uint64_t result = 0;
  };

  void RunBlock(dim3 index);
  void Schedule();
  void ReleaseWarp(int first, const Wait& wait, unsigned lanes);
  void JoinTimes(int first, unsigned lanes);
  std::string WhoWaits() const;

  const std::string name_;
  const dim3 blocks_;
  const dim3 shape_;  // The number of threads per block.
  const uint64_t seed_;
  std::mt19937_64 random_;
  std::vector<Thread> threads_;
  std::vector<Wait> waits_;    // What each thread waits for.
  std::vector<int> runnable_;  // Threads that do not wait and have not ended.
  Fibres fibres_;
  int running_ = 0;
  int at_barrier_ = 0;     // Threads at __syncthreads.
  int barrier_first_ = 0;  // The first thread that came there.
  int64_t yields_ = 0;
  uint64_t first_epoch_ = 0;
  bool failed_ = false;
  std::string error_;
};

ABSL_CONST_INIT absl::Mutex grid_mutex(absl::kConstInit);
uint64_t next_seed ABSL_GUARDED_BY(grid_mutex) = 1;

// The running grid, and the counter that Epoch() returns. Only the thread that
// holds grid_mutex writes them. Device code reads threadIdx and blockIdx from
// the running thread of `grid`.
Grid* grid = nullptr;
uint64_t epoch = 0;

Grid& Current() {
  ABSL_RAW_CHECK(grid != nullptr, "device code outside of a launch");
  return *grid;
}

absl::Status Grid::Run() {
  std::vector<uint64_t> order(uint64_t{blocks_.x} * blocks_.y * blocks_.z);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random_);
  for (const uint64_t i : order) {
    const dim3 index(i % blocks_.x, i / blocks_.x % blocks_.y,
                     i / blocks_.x / blocks_.y);
    RunBlock(index);
    if (failed_) {
      return absl::InternalError(absl::StrFormat(
          "%s: block (%d,%d,%d) of %s blocks of %s threads: %s [seed %d]",
          name_, index.x, index.y, index.z, Triple(blocks_), Triple(shape_),
          error_, seed_));
    }
  }
  return absl::OkStatus();
}

void Grid::RunBlock(dim3 index) {
  first_epoch_ = ++epoch;
  at_barrier_ = 0;
  runnable_.resize(threads_.size());
  std::iota(runnable_.begin(), runnable_.end(), 0);
  for (int i = 0; i < threads_.size(); ++i) {
    threads_[i] = {};
    threads_[i].index =
        dim3(i % shape_.x, i / shape_.x % shape_.y, i / shape_.x / shape_.y);
    threads_[i].block = index;
    threads_[i].block_size = shape_;
    threads_[i].grid_size = blocks_;
    threads_[i].rank = i;
    threads_[i].lane = i % kWarp;
    threads_[i].warp = i / kWarp;
    threads_[i].time = 1;
    waits_[i] = {};
  }
  fibres_.Start();
  Schedule();
}

void Grid::Schedule() {
  int left = threads_.size();
  while (!runnable_.empty()) {
    std::swap(runnable_[random_() % runnable_.size()], runnable_.back());
    running_ = runnable_.back();
    runnable_.pop_back();
    fibres_.Resume(running_);
    if (failed_) return;
    if (fibres_.ended(running_)) --left;
  }
  if (left == 0) return;
  failed_ = true;
  error_ = absl::StrCat("some threads wait for others in vain: ", WhoWaits());
}

std::string Grid::WhoWaits() const {
  // Maps a description of what threads do to the number of these threads and
  // the first of them.
  std::map<std::string, std::pair<int, int>> groups;
  for (int i = 0; i < threads_.size(); ++i) {
    const Wait& wait = waits_[i];
    std::string what = "ended";
    if (wait.operation != nullptr) {
      what = absl::StrFormat("at %s of line %d", wait.operation, wait.line);
      if (wait.operation != kSyncThreads) {
        absl::StrAppendFormat(&what, ", mask %#x", wait.mask);
      }
    }
    auto& [count, first] = groups.emplace(what, std::pair(0, i)).first->second;
    ++count;
  }
  std::string text;
  for (const auto& [what, group] : groups) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", group.first, " ", what,
                    ", ", NameOf(group.second),
                    group.first > 1 ? " first" : "");
  }
  return text;
}

void Grid::Fail(const std::string& message) {
  failed_ = true;
  error_ = absl::StrCat(NameOf(running_), " ", message);
  fibres_.Suspend();
  std::abort();  // A failed grid never continues.
}

void Grid::Yield() {
  if (++yields_ > kMaxYields) {
    Fail(absl::StrCat("makes atomic operation number ", yields_,
                      " of the grid: an endless loop"));
  }
  runnable_.push_back(running_);
  fibres_.Suspend();
}

void Grid::AwaitBlock(int line) {
  if (at_barrier_ == 0) barrier_first_ = running_;
  waits_[running_] = {kSyncThreads, 0, line};
  if (waits_[barrier_first_].line != line) {
    Fail(absl::StrCat("reaches the __syncthreads of line ", line, " while ",
                      NameOf(barrier_first_), " waits at that of line ",
                      waits_[barrier_first_].line));
  }
  if (++at_barrier_ < threads_.size()) return fibres_.Suspend();
  at_barrier_ = 0;
  ++epoch;
  for (int i = 0; i < threads_.size(); ++i) {
    waits_[i].operation = nullptr;
    if (i != running_) runnable_.push_back(i);
  }
}

uint64_t Grid::AwaitWarp(const char* operation, unsigned mask, uint64_t value,
                         int source, int line) {
  const Thread& self = running();
  if (((mask >> self.lane) & 1) == 0) {
    Fail(absl::StrFormat("is not in the mask %#x of its %s in line %d", mask,
                         operation, line));
  }
  Wait& wait = waits_[self.rank];
  wait = {operation, mask, line, value, source};
  const int first = self.warp * kWarp;
  const unsigned lanes = mask & ExistingLanes();
  for (int lane = 0; lane < kWarp; ++lane) {
    if (((lanes >> lane) & 1) == 0) continue;
    const Wait& other = waits_[first + lane];
    if (other.operation != operation || other.mask != mask ||
        other.line != line) {
      fibres_.Suspend();
      return wait.result;
    }
  }
  ReleaseWarp(first, wait, lanes);
  return wait.result;
}

void Grid::ReleaseWarp(int first, const Wait& wait, unsigned lanes) {
  unsigned ballot = 0;
  for (int lane = 0; lane < kWarp; ++lane) {
    if (((lanes >> lane) & 1) != 0 && waits_[first + lane].value != 0) {
      ballot |= 1u << lane;
    }
  }
  if (wait.operation == kSyncWarp) JoinTimes(first, lanes);
  for (int lane = 0; lane < kWarp; ++lane) {
    if (((lanes >> lane) & 1) == 0) continue;
    Wait& each = waits_[first + lane];
    each.result = each.source < 0 ? ballot : waits_[first + each.source].value;
    each.operation = nullptr;
    if (first + lane != running_) runnable_.push_back(first + lane);
  }
}

void Grid::JoinTimes(int first, unsigned lanes) {
  uint32_t seen[kWarp] = {};
  const auto each = [&](auto&& visit) {
    for (int lane = 0; lane < kWarp; ++lane) {
      if (((lanes >> lane) & 1) != 0) visit(threads_[first + lane]);
    }
  };
  each([&](const Thread& thread) {
    for (int i = 0; i < kWarp; ++i) seen[i] = std::max(seen[i], thread.seen[i]);
    seen[thread.lane] = std::max(seen[thread.lane], thread.time);
  });
  each([&](Thread& thread) {
    std::copy(seen, seen + kWarp, thread.seen);
    ++thread.time;
  });
}

}  // namespace

void SetSeed(uint64_t seed) {
  absl::MutexLock lock(&grid_mutex);
  next_seed = seed;
}

absl::Status RunGrid(const std::string& name, dim3 blocks, dim3 threads,
                     const std::function<void()>& kernel) {
  const absl::Status status = CheckLimits(name, blocks, threads);
  if (!status.ok()) return status;
  absl::MutexLock lock(&grid_mutex);
  Grid launched(name, blocks, threads, next_seed++, kernel);
  grid = &launched;
  const absl::Status result = launched.Run();
  grid = nullptr;
  return result;
}

const Thread& Running() { return Current().running(); }
uint64_t Epoch() { return epoch; }
uint64_t FirstEpochOfBlock() { return Current().first_epoch(); }
void Fail(const std::string& message) { Current().Fail(message); }
void SyncThreads(int line) { Current().AwaitBlock(line); }
void Yield() { Current().Yield(); }

std::string NameOf(int rank) {
  const dim3 shape = Current().shape();
  if (shape.y == 1 && shape.z == 1) return absl::StrCat("thread ", rank);
  return absl::StrFormat("thread (%d,%d,%d)", rank % shape.x,
                         rank / shape.x % shape.y, rank / shape.x / shape.y);
}

uint64_t Exchange(const char* operation, unsigned mask, uint64_t value,
                  int source, int line) {
  const unsigned lanes = mask & Current().ExistingLanes();
  if (source < 0 || source >= kWarp || ((lanes >> source) & 1) == 0) {
    Fail(absl::StrFormat(
        "reads lane %d by %s in line %d, which is not one of the lanes %#x",
        source, operation, line, lanes));
  }
  return Current().AwaitWarp(operation, mask, value, source, line);
}

unsigned Ballot(const char* operation, unsigned mask, bool on, int line) {
  return Current().AwaitWarp(operation, mask, on, /*source=*/-1, line);
}

void SyncWarp(unsigned mask, int line) {
  Current().AwaitWarp(kSyncWarp, mask, 0, /*source=*/-1, line);
}

}  // namespace sfmamba::simt
