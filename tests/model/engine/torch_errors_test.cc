#include "model/engine/torch_errors.h"

#include <stdexcept>

#include "c10/util/Exception.h"
#include "gtest/gtest.h"

namespace sfmamba::engine {
namespace {

template <typename Throw>
absl::Status StatusOf(Throw body) {
  try {
    body();
  } catch (...) {
    return CaughtError();
  }
  return absl::OkStatus();
}

TEST(CaughtErrorTest, LibtorchsErrorsAreInternalWithoutBacktrace) {
  const absl::Status status =
      StatusOf([] { TORCH_CHECK(false, "expected [320, 640]"); });
  EXPECT_EQ(status, absl::InternalError("expected [320, 640]"));
}

TEST(CaughtErrorTest, ADevicesMemoryIsAResource) {
  const absl::Status status = StatusOf(
      [] { TORCH_CHECK_WITH(OutOfMemoryError, false, "80 GiB are in use"); });
  EXPECT_EQ(status, absl::ResourceExhaustedError("80 GiB are in use"));
}

TEST(CaughtErrorTest, SoIsTheMemoryOfItsLibraries) {
  for (const char* message :
       {"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(h)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation'"}) {
    EXPECT_EQ(StatusOf([&] { TORCH_CHECK(false, message); }),
              absl::ResourceExhaustedError(message));
  }
  EXPECT_TRUE(absl::IsInternal(StatusOf([] {
    TORCH_CHECK(false, "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED");
  })));
}

TEST(CaughtErrorTest, TheStandardLibrarysErrorsAreInternal) {
  EXPECT_EQ(StatusOf([] { throw std::runtime_error("no room"); }),
            absl::InternalError("no room"));
}

TEST(CaughtErrorTest, WhatIsNoErrorIsThrownOn) {
  EXPECT_THROW(StatusOf([] { throw 7; }), int);
}

}  // namespace
}  // namespace sfmamba::engine
