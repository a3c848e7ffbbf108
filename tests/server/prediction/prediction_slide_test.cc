// Tests Segment with a sliding window. An image becomes several batch tasks,
// and its map is computed while their logits arrive.

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/prediction/sliding/sliding_map.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::prediction {
namespace {

using server::MemoryUse;

// A picture of the fake segmenter's input size, so it is not resized.
constexpr int kHeight = server::FakeModel::kShortSide;
constexpr int kWidth = server::FakeModel::kLongSide;

// The window and the stride of a request. A value of 0 is unset.
struct Window {
  int width = 0, height = 0, stride_x = 0, stride_y = 0;
};

class PredictionSlideTest : public PredictionTest {
 protected:
  // The picture is red in columns 32 to 63 and black elsewhere.
  PredictionSlideTest() {
    for (int i = 0; i < kHeight * kWidth; ++i) {
      const bool red = i % kWidth / 32 == 1;
      picture_ += std::string(1, red ? '\xff' : '\0') + std::string(2, '\0');
    }
  }

  PredictionRequest SlideRequest(const Window& slide, int images = 1) {
    PredictionRequest request = PixelRequest(images, picture_, kWidth, kHeight);
    request.method = observability::Method::kSegment;
    request.model = "maps";
    v1::SegmentParams params;
    params.set_encoding(v1::SegmentParams::RAW_INDEX);
    params.set_include_confidence_map(true);
    params.mutable_slide()->set_width(slide.width);
    params.mutable_slide()->set_height(slide.height);
    params.mutable_slide()->set_stride_x(slide.stride_x);
    params.mutable_slide()->set_stride_y(slide.stride_y);
    request.params = params;
    return request;
  }
  PredictionRequest LargeSlideRequest(const Window& slide, int height,
                                      int width) {
    PredictionRequest request = LargeRequest(1, height, width);
    PredictionRequest small = SlideRequest(slide);
    request.method = small.method;
    request.model = small.model;
    request.params = small.params;
    return request;
  }

  absl::Status Ask(PredictionRequest request, KeptResponse* response) {
    Prediction prediction(*environment_, std::move(request), response);
    prediction.Start(absl::OkStatus());
    return response->Wait();
  }
  absl::Status Ask(const Window& slide) {
    KeptResponse response;
    return Ask(SlideRequest(slide), &response);
  }
  std::string FieldOf(const Window& slide) {
    const absl::Status status = Ask(slide);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return server::GetErrorDetail(status).field;
  }
  // Returns the number of images in the batches that have run.
  double ImagesRun() const {
    double images = 0;
    for (const prometheus::MetricFamily& family : metrics_.Collect()) {
      if (family.name != "sfmamba_batch_items") continue;
      for (const auto& metric : family.metric) {
        images += metric.histogram.sample_sum;
      }
    }
    return images;
  }
  int64_t held() const {
    return memory_.held(MemoryUse::kMessage) +
           memory_.held(MemoryUse::kDecode) + memory_.held(MemoryUse::kInput) +
           memory_.held(MemoryUse::kAnswer);
  }
  void ExpectNothingLeft() {
    WaitUntil([this] { return held() == 0; }, "the memory to be given back");
    EXPECT_EQ(Value("sfmamba_queue_items{model=maps,priority=NORMAL}"), 0);
  }

  std::string picture_;
};

const v1::SegmentResult& MapOf(const KeptResponse& response, int i = 0) {
  return std::get<v1::SegmentResult>(response.answers_[i]->result);
}

int ClassAt(const v1::SegmentResult& map, int y, int x) {
  return map.raw().data()[y * map.width() + x];
}

TEST_F(PredictionSlideTest, MapsEachPixelByTheWindowsThatCoverIt) {
  for (const Window& slide : std::vector<Window>{
           {}, {32, 24, 16, 8}, {25, 13, 25, 13}, {96, 48}, {1000, 1000}}) {
    SCOPED_TRACE(absl::StrCat(slide.width, "x", slide.height));
    KeptResponse response;
    ASSERT_EQ(Ask(SlideRequest(slide, 2), &response), absl::OkStatus());
    for (int i = 0; i < 2; ++i) {
      const v1::SegmentResult& map = MapOf(response, i);
      ASSERT_EQ(map.height(), kHeight);
      ASSERT_EQ(map.width(), kWidth);
      EXPECT_FALSE(map.confidence_png().empty());
      for (const int y : {0, 20, kHeight - 1}) {
        EXPECT_EQ(ClassAt(map, y, 5), 0);
        EXPECT_EQ(ClassAt(map, y, 48), 2);
        EXPECT_EQ(ClassAt(map, y, kWidth - 1), 0);
      }
    }
  }
  ExpectNothingLeft();
}

TEST_F(PredictionSlideTest, MapsHaveThePicturesSizeOrTheInputs) {
  KeptResponse response;
  ASSERT_EQ(
      Ask(LargeSlideRequest({20, 20, 14, 14}, /*height=*/300, /*width=*/500),
          &response),
      absl::OkStatus());
  EXPECT_EQ(MapOf(response).height(), 300);
  EXPECT_EQ(MapOf(response).width(), 500);
  PredictionRequest request = LargeSlideRequest({20, 20, 14, 14}, 300, 500);
  std::get<v1::SegmentParams>(request.params)
      .set_output_size(v1::SegmentParams::MODEL);
  KeptResponse small;
  ASSERT_EQ(Ask(std::move(request), &small), absl::OkStatus());
  EXPECT_EQ(MapOf(small).height(), kHeight);
  EXPECT_EQ(MapOf(small).width(), 80);
}

TEST_F(PredictionSlideTest, ATensorIsLookedAtThroughWindowsToo) {
  std::string data(3 * sizeof(float) * kHeight * kWidth, '\0');
  for (int i = 0; i < kHeight * kWidth; ++i) {
    const float value = i % kWidth / 32 == 1 ? 1 : 0;
    std::memcpy(&data[sizeof(float) * i], &value, sizeof(float));
  }
  const std::vector<int64_t> shape = {3, kHeight, kWidth};
  PredictionRequest request = SlideRequest({32, 24, 16, 8});
  request.image = [&](int) -> absl::StatusOr<image::ImageSource> {
    image::InputTensor tensor;
    tensor.shape = shape;
    tensor.data = data;
    image::ImageSource source;
    source.source = tensor;
    return source;
  };
  KeptResponse response;
  ASSERT_EQ(Ask(std::move(request), &response), absl::OkStatus());
  EXPECT_EQ(ClassAt(MapOf(response), 20, 5), 0);
  EXPECT_EQ(ClassAt(MapOf(response), 20, 48), 2);
  ExpectNothingLeft();
}

TEST_F(PredictionSlideTest, SizesThatMakeNoSenseAreRefused) {
  EXPECT_EQ(FieldOf({-1, 8}), "params.slide.width");
  EXPECT_EQ(FieldOf({8, 1 << 30}), "params.slide.height");
  EXPECT_EQ(FieldOf({8, 8, 9, 8}), "params.slide.stride_x");
  EXPECT_EQ(FieldOf({8, 8, 8, -8}), "params.slide.stride_y");
  EXPECT_EQ(FieldOf({0, 0, kHeight + 1}), "params.slide.stride_x");
}

TEST_F(PredictionSlideTest, TooManyWindowsAreRefusedWithWhatFits) {
  environment_->limits.max_images = 20;
  for (const Window& slide : std::vector<Window>{
           {1, 1, 1, 1}, {32, 32, 1, 1}, {4, 4}, {96, 1, 1, 1}}) {
    KeptResponse response;
    const absl::Status status = Ask(
        LargeSlideRequest(slide, /*height=*/4000, /*width=*/8000), &response);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(server::GetErrorDetail(status).field, "images[0]");
    // The message suggests a window and a stride that are accepted.
    int width, height, stride_x, stride_y;
    const std::string message(status.message());
    const size_t begin = message.find("; a window of ");
    ASSERT_NE(begin, std::string::npos) << message;
    ASSERT_EQ(std::sscanf(&message[begin],
                          "; a window of %dx%d with a stride of %dx%d would",
                          &width, &height, &stride_x, &stride_y),
              4)
        << message;
    KeptResponse fitting;
    EXPECT_EQ(Ask(SlideRequest({width, height, stride_x, stride_y}), &fitting),
              absl::OkStatus())
        << message;
  }
  ExpectNothingLeft();
}

TEST_F(PredictionSlideTest, WindowsCountAsImages) {
  // 64 windows exceed the number that may be admitted at a time.
  const Window slide = {12, 6, 12, 6};
  const absl::Status status = Ask(slide);
  EXPECT_EQ(server::GetErrorDetail(status).reason, "TOO_MANY_IMAGES") << status;
  EXPECT_EQ(server::GetMetadata("got", status), "64");
  EXPECT_EQ(server::GetMetadata("max", status), absl::StrCat(kDecodeItems));
  ExpectNothingLeft();
}

TEST_F(PredictionSlideTest, OnlyTheWindowsWithRoomForTheirLogitsAreRun) {
  absl::Notification go_on;
  finish_pool_.Run([&] {
    server::Work work;
    work.run = [&] { go_on.WaitForNotification(); };
    return work;
  }());
  // The grid has eleven rows with one window each.
  const SlideGrid grid({kWidth, kHeight}, {16, 96}, {8, 96});
  ASSERT_EQ(grid.windows(), 11);
  PredictionRequest request =
      LargeSlideRequest({96, 16, 96, 8}, /*height=*/960, /*width=*/480);
  KeptResponse response;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  WaitUntil([&] { return ImagesRun() == grid.MostKept(); },
            "the first windows to be run");
  EXPECT_EQ(Value("sfmamba_queue_items{model=maps,priority=NORMAL}"), 0);
  go_on.Notify();
  EXPECT_EQ(response.Wait(), absl::OkStatus());
  EXPECT_EQ(ImagesRun(), grid.windows());
}

TEST_F(PredictionSlideTest, ACancelledPictureLeavesNothing) {
  for (const bool early : {true, false}) {
    gate_.Close();
    KeptResponse response;
    {
      Prediction prediction(*environment_, SlideRequest({32, 24, 16, 8}),
                            &response);
      prediction.Start(absl::OkStatus());
      if (early) {
        prediction.Cancel();
        gate_.Open();
      } else {
        gate_.WaitForBatch();
        prediction.Cancel();
        gate_.Open();
      }
      EXPECT_EQ(response.Wait().code(), absl::StatusCode::kCancelled);
    }
    ExpectNothingLeft();
  }
}

TEST_F(PredictionSlideTest, APictureFailsWithOneOfItsWindows) {
  gate_.Close();
  KeptResponse response;
  {
    PredictionRequest request = SlideRequest({32, 24, 16, 8}, 2);
    request.options.allow_partial_results = true;
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(absl::OkStatus());
    gate_.WaitForBatch();
    gate_.BreakDevice();
    gate_.Open();
    EXPECT_EQ(response.Wait(), absl::OkStatus());
    EXPECT_FALSE(response.errors_[0].ok());
    EXPECT_FALSE(response.errors_[1].ok());
  }
  ExpectNothingLeft();
}

TEST_F(PredictionSlideTest, NoOtherWindowIsRunOnceOneHasFailed) {
  gate_.Close();
  KeptResponse response;
  Prediction prediction(*environment_, SlideRequest({32, 24, 16, 8}),
                        &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  gate_.BreakDevice();
  gate_.Open();
  EXPECT_TRUE(absl::IsUnavailable(response.Wait())) << response.status_;
  ExpectNothingLeft();
  EXPECT_LE(ImagesRun(), 4) << "one batch";
}

TEST_F(PredictionSlideTest, ADeadlineEndsAPictureInTheMiddle) {
  gate_.Close();
  KeptResponse response;
  {
    Prediction prediction(*environment_, SlideRequest({32, 24, 16, 8}),
                          &response);
    prediction.Start(absl::OkStatus());
    gate_.WaitForBatch();
    AdvanceClock(absl::Hours(1));
    gate_.Open();
    EXPECT_EQ(response.Wait().code(), absl::StatusCode::kDeadlineExceeded);
  }
  ExpectNothingLeft();
}

// The deadline passes after the map is computed and before the answer is
// encoded.
TEST_F(PredictionSlideTest, TheMapsTimeCountsAsPostprocessing) {
  std::atomic<int> asked{0};
  environment_->clock = [&asked] {
    char thread[16] = "";
    pthread_getname_np(pthread_self(), thread, sizeof(thread));
    const bool after_batch =
        absl::StartsWith(thread, "finish") || absl::StartsWith(thread, "batch");
    const bool is_late = after_batch && asked++ > 0;
    return base::SteadyNow() + (is_late ? absl::Hours(1) : absl::Hours(0));
  };
  EXPECT_EQ(Ask({kWidth, kHeight}).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Value("sfmamba_stage_duration_seconds{model=maps,outcome=expired,"
                  "stage=postprocess}"),
            1);
}

TEST_F(PredictionSlideTest, TheInputIsHeldUntilItsLastWindowIsCutOut) {
  gate_.Close();
  KeptResponse response;
  Prediction prediction(*environment_, SlideRequest({48, 48, 48, 48}),
                        &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  WaitUntil(
      [this] { return memory_.held(MemoryUse::kInput) == 2 * 3 * 48 * 48; },
      "the input to be released, but not its two windows");
  gate_.Open();
  EXPECT_EQ(response.Wait(), absl::OkStatus());
}

TEST_F(PredictionSlideTest, APictureWithADeadlineGoesBeforeWorkWithoutOne) {
  Steps held;
  held.Allow(0);
  server::Work first, other;
  first.group = finish_pool_.NewGroup();
  first.run = [&held] { held.Take(); };
  finish_pool_.Run(std::move(first));
  WaitUntil([this] { return finish_pool_.busy() == 1; }, "the held thread");
  KeptResponse response;
  bool was_answered = false;
  other.group = finish_pool_.NewGroup();
  other.run = [&] { was_answered = response.done_.HasBeenNotified(); };
  finish_pool_.Run(std::move(other));
  {
    Prediction prediction(*environment_,
                          SlideRequest({kWidth, kHeight, kWidth, kHeight}),
                          &response);
    prediction.Start(absl::OkStatus());
    WaitUntil([this] { return finish_pool_.queued() == 2; }, "its logits");
    held.Allow(Steps::kAll);
    EXPECT_EQ(response.Wait(), absl::OkStatus());
    WaitUntil([this] { return finish_pool_.queued() == 0; }, "the other work");
  }
  EXPECT_TRUE(was_answered);
}

TEST_F(PredictionSlideTest, ManyPicturesAtOnceAllHaveTheirMaps) {
  std::vector<std::unique_ptr<KeptResponse>> responses;
  std::vector<std::unique_ptr<Prediction>> predictions;
  for (int i = 0; i < 6; ++i) {
    responses.push_back(std::make_unique<KeptResponse>());
    predictions.push_back(std::make_unique<Prediction>(
        *environment_, SlideRequest({48, 48, 48, 48}), responses.back().get()));
    predictions.back()->Start(absl::OkStatus());
  }
  for (const auto& response : responses) {
    ASSERT_EQ(response->Wait(), absl::OkStatus());
    EXPECT_EQ(ClassAt(MapOf(*response), 24, 48), 2);
  }
  predictions.clear();
  ExpectNothingLeft();
}

}  // namespace
}  // namespace sfmamba::prediction
