#include "simt/simt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace sfmamba {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr unsigned kAll = 0xffffffffu;

// Runs `kernel` as one block.
template <typename... Parameters, typename... Args>
absl::Status RunBlock(int threads, void (*kernel)(Parameters...),
                      Args... args) {
  return simt::Launch("the_kernel", kernel, dim3(1), dim3(threads), nullptr,
                      args...);
}

// Expects that the launch failed. Returns its message.
std::string Error(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  return std::string(status.message());
}

__global__ void WritePosition(int* out) {
  const int block =
      blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const int thread =
      threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = block * 1000 + thread;
}

TEST(SimtTest, RunsEachThreadOfEachBlockOnce) {
  std::vector<int> out(24 * 30, -1);
  ASSERT_TRUE(simt::Launch("positions", WritePosition, dim3(2, 3, 4),
                           dim3(5, 3, 2), nullptr, out.data())
                  .ok());
  for (int i = 0; i < out.size(); ++i) {
    EXPECT_EQ(out[i], i / 30 * 1000 + i % 30);
  }
}

TEST(SimtTest, AnEmptyGridIsNothingToDo) {
  EXPECT_TRUE(simt::Launch("positions", WritePosition, dim3(0), dim3(1),
                           nullptr, nullptr)
                  .ok());
}

TEST(SimtTest, RefusesWhatExceedsTheHardware) {
  for (const dim3 threads :
       {dim3(1025), dim3(1, 1, 65), dim3(32, 33), dim3(0)}) {
    EXPECT_THAT(Error(simt::Launch("positions", WritePosition, dim3(1), threads,
                                   nullptr, nullptr)),
                HasSubstr("positions: the launch of 1x1x1 blocks"));
  }
  EXPECT_THAT(Error(simt::Launch("positions", WritePosition, dim3(1, 65536),
                                 dim3(1), nullptr, nullptr)),
              HasSubstr("1x65536x1"));
}

__global__ void NoteOrder(int* next, int* order) {
  order[(*next)++] = blockIdx.x * blockDim.x + threadIdx.x;
}

std::vector<int> OrderOf(uint64_t seed) {
  int next = 0;
  std::vector<int> order(4 * 32);
  simt::SetSeed(seed);
  EXPECT_TRUE(simt::Launch("order", NoteOrder, dim3(4), dim3(32), nullptr,
                           &next, order.data())
                  .ok());
  return order;
}

TEST(SimtTest, TheOrderIsRandomAndFollowsFromTheSeed) {
  std::vector<int> straight(4 * 32);
  std::iota(straight.begin(), straight.end(), 0);
  const std::vector<int> order = OrderOf(7);
  EXPECT_NE(order, straight);
  EXPECT_NE(order, OrderOf(8));
  EXPECT_EQ(order, OrderOf(7));
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, straight);
}

// Sums the block's values by halving. Does so twice in the same memory.
__global__ void SumBlock(const int* in, int* out) {
  __shared__ simt::Shared<int, 128> tile;
  for (int round = 0; round < 2; ++round) {
    tile[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
    __syncthreads();
  }
}

TEST(SimtTest, ThreadsMeetAtBarriers) {
  std::vector<int> in(3 * 128);
  std::iota(in.begin(), in.end(), 1);
  std::vector<int> out(3);
  for (int seed = 1; seed <= 20; ++seed) {
    simt::SetSeed(seed);
    ASSERT_TRUE(simt::Launch("sum", SumBlock, dim3(3), dim3(128), nullptr,
                             in.data(), out.data())
                    .ok());
    EXPECT_THAT(out, ElementsAre(8256, 24640, 41024));
  }
}

__global__ void ShuffleAll(float* out) {
  const float x = threadIdx.x;
  out[threadIdx.x] = __shfl_sync(kAll, x, 3);
  out[64 + threadIdx.x] = __shfl_up_sync(kAll, x, 1);
  out[128 + threadIdx.x] = __shfl_down_sync(kAll, x, 2, 8);
  out[192 + threadIdx.x] = __shfl_xor_sync(kAll, x, 16);
  out[256 + threadIdx.x] = __shfl_sync(kAll, x, threadIdx.x + 1, 4);
}

TEST(SimtTest, ShufflesFollowTheirDefinition) {
  std::vector<float> out(5 * 64);
  ASSERT_TRUE(RunBlock(64, ShuffleAll, out.data()).ok());
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(out[i], i / 32 * 32 + 3);
    EXPECT_EQ(out[64 + i], i % 32 == 0 ? i : i - 1);
    EXPECT_EQ(out[128 + i], i % 8 < 6 ? i + 2 : i);
    EXPECT_EQ(out[192 + i], i ^ 16);
    EXPECT_EQ(out[256 + i], i / 4 * 4 + (i + 1) % 4);
  }
}

__global__ void VoteAll(unsigned* out) {
  const int lane = threadIdx.x % 32;
  const unsigned odd = __ballot_sync(kAll, lane % 2);
  const int any = __any_sync(kAll, lane == 9);
  const int none = __any_sync(kAll, lane > 31);
  const int all = __all_sync(kAll, lane < 32);
  const int some = __all_sync(kAll, lane < 31);
  if (lane < 8) {
    const unsigned low = __ballot_sync(0xff, lane != 2);
    if (lane == 0) out[5] = low;
  }
  if (threadIdx.x == 0) {
    out[0] = odd;
    out[1] = any;
    out[2] = none;
    out[3] = all;
    out[4] = some;
  }
}

TEST(SimtTest, VotesFollowTheirDefinition) {
  std::vector<unsigned> out(6);
  ASSERT_TRUE(RunBlock(32, VoteAll, out.data()).ok());
  EXPECT_THAT(out, ElementsAre(0xaaaaaaaau, 1u, 0u, 1u, 0u, 0xfbu));
}

// The last warp of a block of 40 threads has only 8 lanes.
TEST(SimtTest, LanesThatDoNotExistDoNotVote) {
  std::vector<unsigned> out(1);
  const auto kernel = +[](unsigned* out) {
    const unsigned bits = __ballot_sync(kAll, 1);
    if (threadIdx.x == 32) *out = bits;
  };
  ASSERT_TRUE(RunBlock(40, kernel, out.data()).ok());
  EXPECT_EQ(out[0], 0xffu);
}

__global__ void ChangeAll(int* sum, int* most, int* least, unsigned* bits,
                          int* lock_sum) {
  __shared__ simt::Shared<int, 1> tile;
  if (threadIdx.x == 0) tile[0] = 100;
  __syncthreads();
  const int i = threadIdx.x;
  atomicAdd(&tile[0], i);
  atomicMax(most, i);
  atomicMin(least, i);
  atomicOr(bits, 1u << i % 32);
  for (int seen = *lock_sum;;) {
    const int before = atomicCAS(lock_sum, seen, seen + i);
    if (before == seen) break;
    seen = before;
  }
  __syncthreads();
  if (i == 0) *sum = tile[0];
}

TEST(SimtTest, AtomicOperationsLoseNothing) {
  int sum = 0, most = -1, least = 1000, lock_sum = 0;
  unsigned bits = 0;
  ASSERT_TRUE(
      RunBlock(64, ChangeAll, &sum, &most, &least, &bits, &lock_sum).ok());
  EXPECT_EQ(sum, 100 + 2016);
  EXPECT_EQ(most, 63);
  EXPECT_EQ(least, 0);
  EXPECT_EQ(bits, kAll);
  EXPECT_EQ(lock_sum, 2016);
}

// ---- The hardware's arithmetic ----

TEST(SimtTest, ApproximateInstructionsFlushSubnormals) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(simt::Exp2(-3), 0.125f);
  EXPECT_EQ(simt::Exp2(-126), 0x1p-126f);
  EXPECT_EQ(simt::Exp2(-126.5f), 0);
  EXPECT_EQ(simt::Exp2(-kInfinity), 0);
  EXPECT_EQ(simt::Exp2(128), kInfinity);
  EXPECT_TRUE(std::isnan(simt::Exp2(NAN)));
  EXPECT_EQ(simt::Log2(8), 3);
  EXPECT_EQ(simt::Log2(0x1p-127f), -kInfinity);
  EXPECT_TRUE(std::isnan(simt::Log2(-1)));
  EXPECT_EQ(simt::Reciprocal(4), 0.25f);
  EXPECT_EQ(simt::Reciprocal(-0x1p127f), 0);
  EXPECT_TRUE(std::signbit(simt::Reciprocal(-0x1p127f)));
  EXPECT_EQ(simt::Reciprocal(0x1p-127f), kInfinity);
}

TEST(SimtTest, LesserAndGreaterKeepNanAndOrderZeros) {
  EXPECT_EQ(simt::Min(2, -3), -3);
  EXPECT_EQ(simt::Max(2, -3), 2);
  for (float other : {-1.0f, 0.0f, NAN}) {
    EXPECT_TRUE(std::isnan(simt::Min(NAN, other)));
    EXPECT_TRUE(std::isnan(simt::Max(other, NAN)));
  }
  EXPECT_TRUE(std::signbit(simt::Min(0.0f, -0.0f)));
  EXPECT_FALSE(std::signbit(simt::Max(-0.0f, 0.0f)));
}

TEST(SimtTest, IntrinsicsAgreeWithTheirDefinition) {
  EXPECT_EQ(__popc(0xf0f0u), 8);
  EXPECT_EQ(__ffs(0), 0);
  EXPECT_EQ(__ffs(8), 4);
  EXPECT_EQ(__clz(0), 32);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__int_as_float(__float_as_int(-1.5f)), -1.5f);
  EXPECT_EQ(rsqrtf(4), 0.5f);
  EXPECT_EQ(max(-1.0f, NAN), -1.0f);
  EXPECT_EQ(simt::FromFloat<kernels::BFloat16>(1 + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(simt::ToFloat(simt::FromFloat<kernels::Float16>(0.1f)),
            0.0999755859375f);
}

}  // namespace
}  // namespace sfmamba
