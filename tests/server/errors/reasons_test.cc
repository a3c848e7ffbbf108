#include "server/errors/reasons.h"

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"

namespace sfmamba::server {
namespace {

using absl::StatusCode;

struct Expected {
  absl::Status status;
  StatusCode code;
  const char* reason;
};

// Clients compare codes and reasons, so a change here breaks them.
TEST(ReasonsTest, CodesAndReasonsAreStable) {
  const Expected all[] = {
      {MalformedMessage("m"), StatusCode::kInvalidArgument,
       "MALFORMED_MESSAGE"},
      {InvalidField("f", "m"), StatusCode::kInvalidArgument, "INVALID_FIELD"},
      {WrongText("f", "a", "b"), StatusCode::kInvalidArgument, "INVALID_FIELD"},
      {OutOfRange("f", 3, 1, 2), StatusCode::kInvalidArgument, "INVALID_FIELD"},
      {TooManyImages(65, 64), StatusCode::kInvalidArgument, "TOO_MANY_IMAGES"},
      {TooManyTiles(65, 64, 9, 8), StatusCode::kInvalidArgument,
       "TOO_MANY_TILES"},
      {InputsTooLarge(9, 8), StatusCode::kInvalidArgument, "INPUTS_TOO_LARGE"},
      {ImageFormatUnsupported("m"), StatusCode::kInvalidArgument,
       "IMAGE_FORMAT_UNSUPPORTED"},
      {ImageDecodeFailed("m"), StatusCode::kInvalidArgument,
       "IMAGE_DECODE_FAILED"},
      {ImageDecodeTimeout("m"), StatusCode::kInvalidArgument,
       "IMAGE_DECODE_TIMEOUT"},
      {ImageTooLarge("m"), StatusCode::kInvalidArgument, "IMAGE_TOO_LARGE"},
      {TaskMismatch("model", "models/m", "detection", "classification"),
       StatusCode::kFailedPrecondition, "TASK_MISMATCH"},
      {TooManyLabels("models/m", 64), StatusCode::kFailedPrecondition,
       "TOO_MANY_LABELS"},
      {ModelNotFound("m"), StatusCode::kNotFound, "MODEL_NOT_FOUND"},
      {NotSupported("x"), StatusCode::kUnimplemented, "NOT_SUPPORTED"},
      {Removed("x", "y"), StatusCode::kUnimplemented, "NOT_SUPPORTED"},
      {OriginRefused(), StatusCode::kPermissionDenied, "ORIGIN_REFUSED"},
      {ModelControlOff(), StatusCode::kFailedPrecondition, "MODEL_CONTROL_OFF"},
      {LoadFailed("models/m/versions/1", "m"), StatusCode::kFailedPrecondition,
       "LOAD_FAILED"},
      {VersionInUse("models/m/versions/1", "stable"),
       StatusCode::kFailedPrecondition, "VERSION_IN_USE"},
      {TokenInvalid("none"), StatusCode::kUnauthenticated, "TOKEN_INVALID"},
      {ScopeMissing("a", "admin", "more"), StatusCode::kPermissionDenied,
       "SCOPE_MISSING"},
      {OverQuota("a", "images", 2, "1", absl::Seconds(1)),
       StatusCode::kResourceExhausted, "CLIENT_QUOTA"},
      {QueueFull("batch", "m", absl::Seconds(1)),
       StatusCode::kResourceExhausted, "QUEUE_FULL"},
      {ClientQuota("ipv4:10.0.0.7", "the queue", absl::Seconds(1)),
       StatusCode::kResourceExhausted, "CLIENT_QUOTA"},
      {ResponseTooLarge(9, 8, "s"), StatusCode::kResourceExhausted,
       "RESPONSE_TOO_LARGE"},
      {DeviceOutOfMemory(absl::Seconds(1)), StatusCode::kResourceExhausted,
       "DEVICE_OOM"},
      {Draining("the server"), StatusCode::kUnavailable, "DRAINING"},
      {ModelNotReady("m", "LOADING", ""), StatusCode::kUnavailable,
       "MODEL_NOT_READY"},
      {DeviceFailed("m"), StatusCode::kUnavailable, "DEVICE_FAILED"},
      {Expired("queue"), StatusCode::kDeadlineExceeded, "EXPIRED_IN_QUEUE"},
      {Cancelled("queue"), StatusCode::kCancelled, "CANCELLED"},
      {NonFiniteOutput(), StatusCode::kInternal, "NON_FINITE_OUTPUT"},
      {DeviceError("m"), StatusCode::kInternal, "DEVICE_ERROR"},
  };
  for (const Expected& expected : all) {
    EXPECT_EQ(expected.status.code(), expected.code) << expected.reason;
    EXPECT_EQ(GetErrorDetail(expected.status).reason, expected.reason);
    EXPECT_NE(expected.status.message(), "") << expected.reason;
  }
}

TEST(ReasonsTest, MessagesTellWhatWasGotAndExpected) {
  EXPECT_EQ(OutOfRange("f", 3, 1, 2).message(), "got 3, expected 1 to 2");
  EXPECT_EQ(TooManyImages(65, 64).message(), "got 65 images, expected 1 to 64");
  const absl::Status mismatch = TaskMismatch("params.crops.model", "models/m",
                                             "detection", "classification");
  EXPECT_EQ(GetErrorDetail(mismatch).field, "params.crops.model");
  EXPECT_EQ(mismatch.message(),
            "got a detector, expected a classifier; models/m is for detection");
  EXPECT_EQ(ResponseTooLarge(9, 8, "fewer images").message(),
            "the response has 9 bytes or more, expected at most 8; smaller are "
            "fewer images");
  EXPECT_EQ(ModelNotReady("m", "LOADING", "").message(), "m is LOADING");
  EXPECT_EQ(ModelNotReady("m", "UNAVAILABLE", "no weights").message(),
            "m is UNAVAILABLE: no weights");
}

TEST(ReasonsTest, AHintIsTakenFromNoOtherError) {
  EXPECT_EQ(WithoutHint(ModelNotFound("m", "; there are a, b")),
            ModelNotFound("m"));
  EXPECT_EQ(WithoutHint(ModelControlOff()), ModelControlOff());
}

TEST(ReasonsTest, HintsSayWhenToTryAgain) {
  EXPECT_EQ(GetErrorDetail(QueueFull("batch", "m", absl::Milliseconds(20)))
                .retry_after,
            absl::Milliseconds(20));
  EXPECT_EQ(GetErrorDetail(Draining("it")).retry_after, absl::ZeroDuration());
  EXPECT_EQ(GetErrorDetail(DeviceFailed("m")).retry_after,
            absl::ZeroDuration());
  EXPECT_EQ(GetErrorDetail(ModelNotReady("m", "LOADING", "")).retry_after,
            absl::Seconds(1));
  EXPECT_EQ(GetErrorDetail(ModelNotReady("m", "UNAVAILABLE", "")).retry_after,
            absl::InfiniteDuration());
  EXPECT_EQ(GetErrorDetail(ModelNotFound("m")).retry_after,
            absl::InfiniteDuration());
}

TEST(ReasonsTest, WhatTheMessageNamesIsInTheMetadataToo) {
  using Metadata = std::map<std::string, std::string>;
  const auto metadata = [](const absl::Status& status) {
    const ErrorDetail detail = GetErrorDetail(status);
    return Metadata(detail.metadata.begin(), detail.metadata.end());
  };
  const absl::Duration second = absl::Seconds(1);
  EXPECT_EQ(metadata(QueueFull("decode", "m", second)),
            (Metadata{{"queue", "decode"}}));
  EXPECT_EQ(metadata(TooManyImages(65, 64)),
            (Metadata{{"got", "65"}, {"max", "64"}}));
  EXPECT_EQ(
      metadata(TooManyTiles(65, 64, 9, 8)),
      (Metadata{
          {"got", "65"}, {"max", "64"}, {"width", "9"}, {"height", "8"}}));
  for (const absl::Status& status :
       {InputsTooLarge(9, 8), ResponseTooLarge(9, 8, "s")}) {
    EXPECT_EQ(metadata(status), (Metadata{{"bytes", "9"}, {"max_bytes", "8"}}));
  }
  EXPECT_EQ(metadata(TaskMismatch("model", "models/m", "detection",
                                  "classification")),
            (Metadata{{"model", "models/m"},
                      {"got", "detection"},
                      {"expected", "classification"}}));
  EXPECT_EQ(metadata(ModelNotFound("m", ", did you mean \"n\"")),
            (Metadata{{"model", "m"}}));
  EXPECT_EQ(metadata(VersionInUse("models/m/versions/1", "stable")),
            (Metadata{{"model", "models/m/versions/1"}, {"label", "stable"}}));
  EXPECT_EQ(metadata(LoadFailed("models/m/versions/1", "m")),
            (Metadata{{"model", "models/m/versions/1"}}));
  EXPECT_EQ(metadata(ModelNotReady("models/m", "LOADING", "")),
            (Metadata{{"model", "models/m"}, {"state", "LOADING"}}));
  EXPECT_EQ(metadata(ScopeMissing("a", "ADMIN", "more")),
            (Metadata{{"client", "a"}, {"scope", "ADMIN"}}));
  EXPECT_EQ(metadata(ClientQuota("a", "the queue", second)),
            (Metadata{{"client", "a"}, {"what", "the queue"}}));
  EXPECT_EQ(metadata(OverQuota("a", "at once", 2, "1", second)),
            (Metadata{{"client", "a"}, {"what", "at once"}, {"max", "1"}}));
  EXPECT_EQ(
      metadata(PredictedDeadlineMiss(
          absl::Milliseconds(5), absl::Milliseconds(7), absl::Milliseconds(6))),
      (Metadata{{"predicted_wait_ms", "5"},
                {"predicted_ms", "7"},
                {"allowed_ms", "6"}}));
  EXPECT_EQ(metadata(Expired("queue")), (Metadata{{"stage", "queue"}}));
  EXPECT_EQ(metadata(Cancelled("decode")), (Metadata{{"stage", "decode"}}));
}

TEST(ReasonsTest, QuotasAreOfTheirClient) {
  for (const absl::Status& status :
       {ClientQuota("a", "the queue", absl::Seconds(2)),
        OverQuota("a", "at once", 2, "1", absl::Seconds(2))}) {
    EXPECT_EQ(GetErrorDetail(status).quota_subject, "a");
    EXPECT_EQ(GetErrorDetail(status).retry_after, absl::Seconds(2));
  }
}

TEST(ReasonsTest, ANameOfAnyLengthIsShownInPart) {
  const absl::Status status = ModelNotFound(std::string(1 << 20, 'x'));
  EXPECT_LT(status.message().size(), 300u);
  EXPECT_EQ(GetErrorDetail(status).metadata[0].second, std::string(200, 'x'));
}

}  // namespace
}  // namespace sfmamba::server
