// Tests detections whose crops are classified in the same call.

#include <malloc.h>

#include <cstdint>
#include <limits>

#include "server/prediction/picture_crops.h"
#include "server/security/client_quotas.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::prediction {
namespace {

using server::MemoryUse;

constexpr int kWidth = 96, kHeight = 80;

void ExpectRect(const image::PixelRect& rect, int left, int top, int width,
                int height) {
  EXPECT_EQ(rect.left, left);
  EXPECT_EQ(rect.top, top);
  EXPECT_EQ(rect.width, width);
  EXPECT_EQ(rect.height, height);
}

image::PixelRect Crop(const model::Box& box, float margin,
                      const image::PictureSize& picture) {
  v1::BoundingBox proto;
  proto.set_x_min(box.x1);
  proto.set_y_min(box.y1);
  proto.set_x_max(box.x2);
  proto.set_y_max(box.y2);
  return CropOf(proto, margin, picture);
}

TEST(CropOfTest, IsRoundedOutwardsAndGrowsWithinThePicture) {
  const image::PictureSize picture = {/*height=*/100, /*width=*/200};
  ExpectRect(Crop({10.5f, 20, 30.5f, 40}, 0, picture), 10, 20, 21, 20);
  ExpectRect(Crop({10, 20, 30, 40}, 0.25f, picture), 5, 15, 30, 30);
  ExpectRect(Crop({10, 20, 190, 90}, 1, picture), 0, 0, 200, 100);
}

TEST(CropOfTest, HasAtLeastOnePixel) {
  const image::PictureSize picture = {/*height=*/100, /*width=*/200};
  ExpectRect(Crop({50, 60, 50, 60}, 0, picture), 50, 60, 1, 1);
  ExpectRect(Crop({200, 100, 200, 100}, 1, picture), 199, 99, 1, 1);
  ExpectRect(Crop({0, 0, 0, 0}, 0.5f, {1, 1}), 0, 0, 1, 1);
}

class PredictionCropsTest : public PredictionTest {
 protected:
  PredictionCropsTest() : picture_(size_t{3} * kWidth * kHeight, '\0') {
    for (size_t i = 0; i < picture_.size(); ++i) picture_[i] = 7 * i;
  }

  // Requests pictures with `objects` detections each. Each detection covers the
  // whole picture.
  PredictionRequest Detect(int images, int objects) {
    PredictionRequest request = Pictures(images);
    request.method = observability::Method::kDetect;
    request.model = "masks";
    v1::DetectParams params;
    params.set_max_detections(objects);
    params.mutable_crops()->set_model("fake");
    request.params = params;
    return request;
  }
  PredictionRequest Pictures(int images) {
    return PixelRequest(images, picture_, kWidth, kHeight);
  }
  static v1::Crops& CropsOf(PredictionRequest* request) {
    return *std::get<v1::DetectParams>(request->params).mutable_crops();
  }

  // A prediction and its response.
  struct Asked {
    Asked(const PredictionEnvironment& environment, PredictionRequest request)
        : prediction(environment, std::move(request), &response) {
      prediction.Start(absl::OkStatus());
    }
    const auto& objects(int i) const {
      return std::get<v1::DetectResult>(response.answers_[i]->result)
          .detections();
    }
    KeptResponse response;
    Prediction prediction;
  };
  absl::Status Ask(PredictionRequest request) {
    return Asked(*environment_, std::move(request)).response.Wait();
  }
  // Makes a request whose deadline passes while its crops are classified.
  const Asked& AskBeyondTheDeadline(bool partial) {
    gate_.Close();
    PredictionRequest request = Detect(1, 5);
    request.options.allow_partial_results = partial;
    const absl::Time deadline = base::SteadyNow() + absl::Seconds(2);
    request.call.deadline = deadline;
    late_ = std::make_unique<Asked>(*environment_, std::move(request));
    gate_.WaitForBatch();
    absl::SleepFor(deadline - base::SteadyNow());
    gate_.Open();
    late_->response.Wait().IgnoreError();
    return *late_;
  }
  void ExpectNothingHeld() {
    for (const MemoryUse use : {MemoryUse::kMessage, MemoryUse::kDecode,
                                MemoryUse::kInput, MemoryUse::kAnswer}) {
      EXPECT_EQ(memory_.held(use), 0) << server::MemoryUseName(use);
    }
  }

  std::string picture_;
  std::unique_ptr<Asked> late_;
};

TEST_F(PredictionCropsTest, AreAnsweredAsIfTheyWereSent) {
  PredictionRequest plain = Pictures(1);
  plain.model = "fake";
  v1::ClassifyParams params;
  params.set_top_k(2);
  params.set_include_embedding(true);
  plain.params = params;
  Asked classified(*environment_, std::move(plain));
  ASSERT_EQ(classified.response.Wait(), absl::OkStatus());
  const auto& expected =
      std::get<v1::ClassifyResult>(classified.response.answers_[0]->result);

  PredictionRequest request = Detect(2, 3);
  CropsOf(&request).set_top_k(2);
  CropsOf(&request).set_include_embedding(true);
  Asked asked(*environment_, std::move(request));
  ASSERT_EQ(asked.response.Wait(), absl::OkStatus());
  for (const int i : {0, 1}) {
    ASSERT_EQ(asked.objects(i).size(), 3);
    for (const v1::Detection& object : asked.objects(i)) {
      EXPECT_EQ(object.crop().categories_size(), 2);
      EXPECT_EQ(object.crop().DebugString(), expected.DebugString());
    }
  }
  EXPECT_EQ(asked.response.model_, "models/masks/versions/1");
  EXPECT_EQ(asked.response.times_released_.load(), 1);
}

TEST_F(PredictionCropsTest, WithoutThemObjectsHaveNone) {
  PredictionRequest request = Detect(1, 3);
  std::get<v1::DetectParams>(request.params).clear_crops();
  Asked asked(*environment_, std::move(request));
  ASSERT_EQ(asked.response.Wait(), absl::OkStatus());
  EXPECT_FALSE(asked.objects(0)[0].has_crop());
}

TEST_F(PredictionCropsTest, OfTilesAreCutOutOfThePicture) {
  PredictionRequest request = Detect(1, 2);
  std::get<v1::DetectParams>(request.params).mutable_tiles()->set_overlap(0);
  Asked asked(*environment_, std::move(request));
  ASSERT_EQ(asked.response.Wait(), absl::OkStatus());
  ASSERT_FALSE(asked.objects(0).empty());
  for (const v1::Detection& object : asked.objects(0)) {
    EXPECT_EQ(object.crop().categories_size(), 1);
  }
}

TEST_F(PredictionCropsTest, AskForAClassifierAndSaneNumbers) {
  const auto refused = [this](const v1::Crops& crops) {
    PredictionRequest request = Detect(1, 1);
    CropsOf(&request) = crops;
    const absl::Status status = Ask(std::move(request));
    return std::make_pair(status.code(), server::GetErrorDetail(status).field);
  };
  using Refusal = std::pair<absl::StatusCode, std::string>;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  v1::Crops crops;
  crops.set_model("nothing");
  EXPECT_EQ(refused(crops).first, absl::StatusCode::kNotFound);
  crops.set_model("masks");
  EXPECT_EQ(refused(crops).first, absl::StatusCode::kFailedPrecondition);
  crops.set_model("fake");
  crops.set_top_k(1000);
  EXPECT_EQ(refused(crops), Refusal(kInvalid, "params.crops.top_k"));
  crops.set_top_k(0);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float margin : {kNan, -0.1f, 1.1f}) {
    crops.set_margin(margin);
    EXPECT_EQ(refused(crops), Refusal(kInvalid, "params.crops.margin"));
  }
  crops.set_margin(1);
  crops.set_min_score(kNan);
  EXPECT_EQ(refused(crops), Refusal(kInvalid, "params.crops.min_score"));
}

TEST_F(PredictionCropsTest, AClassifierUnloadedMeanwhileStillAnswers) {
  decoding_.Allow(0);
  Asked asked(*environment_, Detect(1, 2));
  absl::Notification unloaded;
  repository_->UnloadModel("fake", std::nullopt, [&](const absl::Status& done) {
    EXPECT_EQ(done, absl::OkStatus());
    unloaded.Notify();
  });
  WaitFor(unloaded, "the model to be unloaded");
  decoding_.Allow(Steps::kAll);
  EXPECT_EQ(asked.response.Wait(), absl::OkStatus());
  EXPECT_FALSE(Ask(Detect(1, 1)).ok());
}

TEST_F(PredictionCropsTest, ThatFindNoRoomFailTheRequestOrTheirObjects) {
  // The queue has room for 36 inputs.
  const absl::Status status = Ask(Detect(1, 50));
  EXPECT_EQ(server::GetErrorDetail(status).field, "params.crops");
  PredictionRequest request = Detect(2, 50);
  request.options.allow_partial_results = true;
  {
    Asked asked(*environment_, std::move(request));
    ASSERT_EQ(asked.response.Wait(), absl::OkStatus());
    ASSERT_EQ(asked.objects(1).size(), 50);
    EXPECT_TRUE(asked.objects(1)[49].crop().has_error());
  }
  ExpectNothingHeld();
}

TEST_F(PredictionCropsTest, CountWithTheirEmbeddingsForTheAnswersSize) {
  constexpr int kObjects = 10;
  // Finds the smallest limit that fits the crops without embeddings.
  environment_->max_response_bytes = 0;
  do {
    environment_->max_response_bytes += 8;
    ASSERT_LT(environment_->max_response_bytes, 1 << 14);
  } while (!Ask(Detect(1, kObjects)).ok());
  PredictionRequest request = Detect(1, kObjects);
  CropsOf(&request).set_include_embedding(true);
  EXPECT_EQ(server::GetErrorDetail(Ask(std::move(request))).reason,
            "RESPONSE_TOO_LARGE");
}

TEST_F(PredictionCropsTest, NeedAClassifier) {
  PredictionRequest request = Detect(1, 5);
  CropsOf(&request).set_model("masks");
  const absl::Status status = Ask(std::move(request));
  EXPECT_EQ(server::GetErrorDetail(status).reason, "TASK_MISMATCH");
  EXPECT_EQ(server::GetErrorDetail(status).field, "params.crops.model");
  EXPECT_EQ(status.message(),
            "got a detector, expected a classifier; models/masks/versions/1 is "
            "for detection");
}

TEST_F(PredictionCropsTest, NameOtherModelsOnlyToThoseWhoMayReadThem) {
  const auto ask = [this](bool may_read, bool crops) {
    PredictionRequest request = Detect(1, 5);
    request.call.caller.may_read = may_read;
    if (crops) {
      CropsOf(&request).set_model("maskz");
    } else {
      request.model = "maskz";
    }
    return std::string(Ask(std::move(request)).message());
  };
  for (const bool crops : {false, true}) {
    EXPECT_EQ(ask(true, crops),
              "there is no model \"maskz\", did you mean \"masks\"");
    EXPECT_EQ(ask(false, crops), "there is no model \"maskz\"");
  }
}

TEST_F(PredictionCropsTest, CountForTheQuota) {
  security::ClientQuotas quotas;
  environment_->quotas = &quotas;
  const auto ask = [&](int max_items) {
    PredictionRequest request = Detect(1, 5);
    request.call.caller = {"a", /*has_token=*/true, {max_items, 0, 0}};
    return server::GetErrorDetail(Ask(std::move(request))).reason;
  };
  EXPECT_EQ(ask(5), "CLIENT_QUOTA") << "the picture and its crops";
  EXPECT_EQ(ask(6), "");
  EXPECT_EQ(quotas.clients(), 0u);
}

TEST_F(PredictionCropsTest, HoldThePictureUntilTheirInputsAreMade) {
  constexpr int64_t kPicture = 3 * kWidth * kHeight;
  gate_.Close();
  decoding_.Allow(0);
  {
    Asked asked(*environment_, Detect(1, 2));
    EXPECT_GE(memory_.held(MemoryUse::kInput), kPicture);
    decoding_.Allow(Steps::kAll);
    gate_.WaitForBatch();
    WaitUntil(
        [this] { return memory_.held(MemoryUse::kInput) == 2 * kInputBytes; },
        "the picture to be freed");
    gate_.Open();
    EXPECT_EQ(asked.response.Wait(), absl::OkStatus());
    EXPECT_EQ(memory_.held(MemoryUse::kInput), 0);
  }
  ExpectNothingHeld();
}

// Returns the bytes of large blocks in use. malloc() never keeps a free block
// of more than 32 MiB, so a freed picture of 36 MB disappears from this count.
int64_t LargeBlocks() { return mallinfo2().hblkhd; }

TEST_F(PredictionCropsTest, KeepNoPictureThatIsNotHeldAnyMore) {
  constexpr int64_t kPicture = 36'000'000;
  const auto large = [this] {
    PredictionRequest request = LargeRequest(1, 3000, 4000);
    const PredictionRequest small = Detect(1, 2);
    request.method = small.method;
    request.model = small.model;
    request.params = small.params;
    return request;
  };
  const int64_t before = LargeBlocks();
  gate_.Close();
  Asked asked(*environment_, large());
  gate_.WaitForBatch();
  WaitUntil(
      [this] { return memory_.held(MemoryUse::kInput) == 2 * kInputBytes; },
      "the picture to be freed");
  EXPECT_LT(LargeBlocks(), before + kPicture);
  gate_.Open();
  EXPECT_EQ(asked.response.Wait(), absl::OkStatus());
  // An image that ends before its crops are cut also frees its picture.
  mask_gate_.Close();
  Asked running(*environment_, Detect(1, 2));
  mask_gate_.WaitForBatch();
  Asked cancelled(*environment_, large());
  WaitUntil(
      [this] {
        return Value("sfmamba_queue_items{model=masks,priority=normal}") == 1;
      },
      "the picture in the queue");
  cancelled.prediction.Cancel();
  EXPECT_TRUE(absl::IsCancelled(cancelled.response.Wait()));
  EXPECT_LT(LargeBlocks(), before + kPicture);
  mask_gate_.Open();
  EXPECT_EQ(running.response.Wait(), absl::OkStatus());
}

TEST_F(PredictionCropsTest, WaitWithTheRequestsPriorityAndOutsideTheAnswers) {
  gate_.Close();
  PredictionRequest request = Detect(1, 3);
  request.options.priority = server::Priority::kLow;
  Asked asked(*environment_, std::move(request));
  gate_.WaitForBatch();
  WaitUntil(
      [this] {
        return Value("sfmamba_queue_items{model=fake,priority=low}") == 2;
      },
      "two crops in the queue");
  EXPECT_EQ(finish_room_.items(), 0) << "no answer is encoded meanwhile";
  gate_.Open();
  EXPECT_EQ(asked.response.Wait(), absl::OkStatus());
}

TEST_F(PredictionCropsTest, WaitNoLongerThanTheRequestMayForABatch) {
  gate_.Close();
  PredictionRequest request = Detect(1, 3);
  request.options.max_queue_wait = absl::Seconds(2);
  request.call.deadline = base::SteadyNow() + absl::Seconds(100);
  Asked asked(*environment_, std::move(request));
  gate_.WaitForBatch();
  // Two crops wait in the queue. The first that expires may cancel the other
  // before the other expires. So the metric counts one or two crops.
  WaitUntil(
      [this] {
        return Value("sfmamba_deadline_misses_total{model=fake,stage=queue}") >=
               1;
      },
      "a crop to expire");
  gate_.Open();
  EXPECT_EQ(asked.response.Wait().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(PredictionCropsTest, MayBeMoreThanARequestsImages) {
  environment_->limits.max_images = 3;
  EXPECT_EQ(Ask(Detect(1, 5)), absl::OkStatus());
}

TEST_F(PredictionCropsTest, NameTheClassesFromTheScoreOn) {
  PredictionRequest request = Detect(1, 1);
  CropsOf(&request).set_min_score(1.5f);
  Asked asked(*environment_, std::move(request));
  ASSERT_EQ(asked.response.Wait(), absl::OkStatus());
  EXPECT_TRUE(asked.objects(0)[0].has_crop());
  EXPECT_EQ(asked.objects(0)[0].crop().categories_size(), 0);
}

TEST_F(PredictionCropsTest, ACancelledRequestCancelsThem) {
  gate_.Close();
  {
    Asked asked(*environment_, Detect(1, 5));
    // The detector's batches do not wait at `gate_`, so this is a batch of the
    // classifier.
    gate_.WaitForBatch();
    asked.prediction.Cancel();
    gate_.Open();
    EXPECT_EQ(asked.response.Wait().code(), absl::StatusCode::kCancelled);
  }
  ExpectNothingHeld();
}

TEST_F(PredictionCropsTest, TheDeadlineBoundsBoth) {
  const Asked& asked = AskBeyondTheDeadline(/*partial=*/false);
  EXPECT_EQ(asked.response.status_.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(PredictionCropsTest, TheDeadlineBoundsPartialAnswersToo) {
  const Asked& asked = AskBeyondTheDeadline(/*partial=*/true);
  EXPECT_EQ(asked.response.errors_[0].code(),
            absl::StatusCode::kDeadlineExceeded);
}

// The classifier's queue has room for only a small part of the objects.
TEST_F(PredictionCropsTest, ManyPicturesLeaveOthersTheirAnswers) {
  // The fixture's decode queue has no client shares, so one client may fill it.
  decode_room_.SetLimits({1000, 1 << 30});
  PredictionRequest request = Detect(30, 30);
  request.options.allow_partial_results = true;
  {
    Asked asked(*environment_, std::move(request));
    for (int i = 0; i < 20; ++i) {
      PredictionRequest other = Request(1);
      other.model = "fake";
      other.call.peer = "ipv4:10.0.0.7:1";
      EXPECT_EQ(Ask(std::move(other)), absl::OkStatus());
    }
    ASSERT_EQ(asked.response.Wait(), absl::OkStatus());
    int answered = 0;
    for (int i = 0; i < 30; ++i) {
      for (const v1::Detection& object : asked.objects(i)) {
        answered += !object.crop().has_error();
      }
    }
    EXPECT_GT(answered, 0);
  }
  ExpectNothingHeld();
}

}  // namespace
}  // namespace sfmamba::prediction
