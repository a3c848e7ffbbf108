#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simt/simt.h"

namespace sfmamba {
namespace {

using ::testing::AllOf;
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

__global__ void ReadNeighbour(int* out) {
  __shared__ simt::Shared<int, 64> tile;
  tile[threadIdx.x] = 0;
  __syncthreads();
  tile[threadIdx.x] = threadIdx.x;  // A barrier is missing after this.
  out[threadIdx.x] = tile[threadIdx.x ^ 32];
}

TEST(ErrorsTest, FindsAReadThatNoBarrierOrders) {
  std::vector<int> out(64);
  for (int seed = 1; seed <= 20; ++seed) {
    simt::SetSeed(seed);
    const std::string error = Error(RunBlock(64, ReadNeighbour, out.data()));
    EXPECT_THAT(error, AllOf(HasSubstr("the_kernel: block (0,0,0)"),
                             HasSubstr("a race"), HasSubstr("thread "),
                             HasSubstr(absl::StrCat("[seed ", seed, "]"))));
  }
}

TEST(ErrorsTest, NamesElementAndThreadsOfARace) {
  const auto kernel = +[] {
    __shared__ simt::Shared<int, 8> tile;
    if (threadIdx.x == 3 || threadIdx.x == 40) tile[5] = 1;
  };
  EXPECT_THAT(Error(RunBlock(64, kernel)),
              AllOf(HasSubstr("element 5 of a shared array of 8"),
                    HasSubstr("thread 3 "), HasSubstr("thread 40 ")));
}

__global__ void Overwrite(int* out) {  // Has one barrier instead of two.
  __shared__ simt::Shared<int, 64> tile;
  for (int round = 0; round < 2; ++round) {
    tile[threadIdx.x] = round;
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x];
  }
}

TEST(ErrorsTest, FindsAWriteBeforeOthersHaveRead) {
  std::vector<int> out(64);
  for (int seed = 1; seed <= 20; ++seed) {
    simt::SetSeed(seed);
    EXPECT_THAT(Error(RunBlock(64, Overwrite, out.data())),
                HasSubstr("a race"));
  }
}

// Each thread exchanges its value with the thread whose index differs from its
// own by `apart`. `Sync` is the barrier between the accesses of both threads.
template <void (*Sync)()>
__global__ void Swap(int* out, int apart) {
  __shared__ simt::Shared<int, 64> tile;
  tile[threadIdx.x] = 0;
  __syncthreads();
  tile[threadIdx.x] = threadIdx.x;
  Sync();
  const int other = tile[threadIdx.x ^ apart];
  Sync();
  tile[threadIdx.x] = other;
  out[threadIdx.x] = tile[threadIdx.x];
}
__device__ void Nothing() {}
__device__ void Warp() { __syncwarp(); }
__device__ void Shuffle() { __shfl_sync(kAll, 0, 0); }

TEST(ErrorsTest, SyncWarpOrdersAWarpAndNothingElse) {
  std::vector<int> out(64);
  EXPECT_TRUE(RunBlock(64, Swap<Warp>, out.data(), 16).ok());
  EXPECT_EQ(out[40], 56);
  EXPECT_THAT(Error(RunBlock(64, Swap<Warp>, out.data(), 32)),
              HasSubstr("a race"));
  EXPECT_THAT(Error(RunBlock(64, Swap<Nothing>, out.data(), 16)),
              HasSubstr("a race"));
  EXPECT_THAT(Error(RunBlock(64, Swap<Shuffle>, out.data(), 16)),
              HasSubstr("a race"));
}

TEST(ErrorsTest, SyncWarpOfSomeLanesOrdersThoseOnly) {
  const auto kernel = +[](int writer) {
    __shared__ simt::Shared<int, 1> tile;
    if (threadIdx.x == writer) tile[0] = 1;
    if (threadIdx.x < 16) {
      __syncwarp(0xffff);
      if (threadIdx.x == 2) tile[0] = 2;
    }
  };
  EXPECT_TRUE(RunBlock(32, kernel, 5).ok());
  EXPECT_THAT(Error(RunBlock(32, kernel, 20)),
              AllOf(HasSubstr("thread 2 "), HasSubstr("thread 20 ")));
}

TEST(ErrorsTest, FindsAPlainAccessBesideAnAtomicOne) {
  const auto kernel = +[](int* out) {
    __shared__ simt::Shared<int, 1> tile;
    if (threadIdx.x == 0) tile[0] = 0;
    __syncthreads();
    if (threadIdx.x < 32) atomicAdd(&tile[0], 1);
    if (threadIdx.x == 40) *out = tile[0];
  };
  int out;
  EXPECT_THAT(Error(RunBlock(64, kernel, &out)), HasSubstr("atomically"));
}

__global__ void ReadUnwritten(int* out) {
  __shared__ simt::Shared<int, 64> tile;
  if (blockIdx.x == 0) tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

TEST(ErrorsTest, FindsReadsOfWhatThisBlockHasNotWritten) {
  std::vector<int> out(64);
  EXPECT_TRUE(RunBlock(64, ReadUnwritten, out.data()).ok());
  for (int seed = 1; seed <= 4; ++seed) {  // Covers both orders of the blocks.
    simt::SetSeed(seed);
    EXPECT_THAT(Error(simt::Launch("the_kernel", ReadUnwritten, dim3(2),
                                   dim3(64), nullptr, out.data())),
                AllOf(HasSubstr("block (1,0,0)"),
                      HasSubstr("which nobody has written")));
  }
}

TEST(ErrorsTest, FindsIndicesOutsideOfAnArray) {
  const auto kernel = +[](int i) {
    __shared__ simt::Shared<float, 64> tile;
    tile[i] = 0;
  };
  EXPECT_TRUE(RunBlock(1, kernel, 63).ok());
  EXPECT_THAT(Error(RunBlock(1, kernel, 64)),
              HasSubstr("element 64 of a shared array of 64"));
  EXPECT_THAT(Error(RunBlock(1, kernel, -1)), HasSubstr("element -1"));
}

__global__ void MoveVectors(const float* in, float* out, int shift) {
  __shared__ simt::Shared<float, 16> tile;
  tile.Store<4>(shift + 4, simt::Load<4>(in));
  simt::Store(out, tile.Load<2>(shift + 6));
}

TEST(ErrorsTest, MovesVectorsFromAlignedPlacesOnly) {
  alignas(16) const float in[8] = {1, 2, 3, 4, 5};
  alignas(16) float out[2] = {};
  EXPECT_TRUE(RunBlock(1, MoveVectors, in, out, 0).ok());
  EXPECT_THAT(out, ElementsAre(3, 4));
  EXPECT_THAT(Error(RunBlock(1, MoveVectors, in, out, 2)),
              HasSubstr("not a multiple of 4"));
  EXPECT_THAT(Error(RunBlock(1, MoveVectors, in + 1, out, 0)),
              HasSubstr("4 beyond a multiple of 16"));
}

TEST(ErrorsTest, FindsBarriersThatSomeThreadsMiss) {
  const auto ended = +[] {
    if (threadIdx.x != 5) __syncthreads();
  };
  EXPECT_THAT(
      Error(RunBlock(64, ended)),
      AllOf(HasSubstr("63 at __syncthreads of line "),
            HasSubstr("thread 0 first"), HasSubstr("1 ended, thread 5")));

  const auto apart = +[] {
    if (threadIdx.x < 32) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  };
  EXPECT_THAT(Error(RunBlock(64, apart)),
              HasSubstr("reaches the __syncthreads"));

  const auto crossed = +[] {
    if (threadIdx.x == 0) {
      __syncwarp();
      __syncthreads();
    } else {
      __syncthreads();
      __syncwarp();
    }
  };
  EXPECT_THAT(
      Error(RunBlock(32, crossed)),
      AllOf(HasSubstr("1 at __syncwarp"), HasSubstr("31 at __syncthreads")));
}

TEST(ErrorsTest, FindsShufflesThatSomeLanesMiss) {
  const auto ended = +[] {
    if (threadIdx.x >= 16) return;
    __shfl_xor_sync(kAll, 1, 1);
  };
  EXPECT_THAT(Error(RunBlock(32, ended)),
              AllOf(HasSubstr("16 at __shfl_xor_sync"), HasSubstr("16 ended")));

  const auto outside = +[] {
    if (threadIdx.x < 16) __shfl_sync(0xff, 1, 0);
  };
  EXPECT_THAT(Error(RunBlock(32, outside)),
              HasSubstr("is not in the mask 0xff"));

  const auto beyond = +[] { __shfl_xor_sync(kAll, 1, 8); };
  EXPECT_THAT(Error(RunBlock(40, beyond)),
              HasSubstr("which is not one of the lanes 0xff"));
}

TEST(ErrorsTest, FindsAnEndlessWaitForAnotherBlock) {
  const auto kernel = +[](int* arrived) {
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < 2) continue;
  };
  int arrived = 0;
  EXPECT_THAT(Error(simt::Launch("the_kernel", kernel, dim3(2), dim3(1),
                                 nullptr, &arrived)),
              HasSubstr("endless"));
}

TEST(ErrorsTest, AFailedLaunchLeavesTheNextOneAlone) {
  std::vector<int> out(64);
  EXPECT_FALSE(RunBlock(64, Overwrite, out.data()).ok());
  EXPECT_TRUE(RunBlock(64, Swap<Warp>, out.data(), 1).ok());
}

}  // namespace
}  // namespace sfmamba
