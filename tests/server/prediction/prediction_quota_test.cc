// Tests what a prediction counts for its client's quota and share.

#include "server/security/client_quotas.h"
#include "tests/server/prediction/prediction_fixture.h"

namespace sfmamba::prediction {
namespace {

class PredictionQuotaTest : public PredictionTest {
 protected:
  void SetUp() override { environment_->quotas = &quotas_; }

  PredictionRequest Named(int images, const std::string& name,
                          security::Quota quota) {
    PredictionRequest request = Request(images);
    request.call.caller = {name, /*has_token=*/true, quota};
    return request;
  }
  // Returns the reason of a refusal, or an empty string if there was an answer.
  std::string Ask(PredictionRequest request) {
    KeptResponse response;
    Prediction prediction(*environment_, std::move(request), &response);
    prediction.Start(absl::OkStatus());
    return server::GetErrorDetail(response.Wait()).reason;
  }

  security::ClientQuotas quotas_;
};

TEST_F(PredictionQuotaTest, ImagesCountUntilTheyEnd) {
  const security::Quota quota = {/*max_items=*/3, 0, 0};
  gate_.Close();
  KeptResponse response;
  Prediction prediction(*environment_, Named(2, "a", quota), &response);
  prediction.Start(absl::OkStatus());
  gate_.WaitForBatch();
  EXPECT_EQ(Ask(Named(2, "a", quota)), "CLIENT_QUOTA");
  EXPECT_EQ(quotas_.clients(), 1u);
  gate_.Open();
  EXPECT_EQ(response.Wait(), absl::OkStatus());
  EXPECT_EQ(quotas_.clients(), 0u) << "although the prediction still lives";
  EXPECT_EQ(Ask(Named(3, "a", quota)), "");
}

TEST_F(PredictionQuotaTest, TilesCountAsImages) {
  const auto tiled = [this](int max_items) {
    PredictionRequest request = LargeRequest(1, 96, 96);
    request.call.caller = {"a", /*has_token=*/true, {max_items, 0, 0}};
    request.model = "masks";
    v1::DetectParams params;
    params.mutable_tiles()->set_overlap(0);
    request.params = params;
    return request;
  };
  EXPECT_EQ(Ask(tiled(4)), "CLIENT_QUOTA") << "four tiles and the picture";
  EXPECT_EQ(Ask(tiled(5)), "");
  EXPECT_EQ(quotas_.clients(), 0u);
}

TEST_F(PredictionQuotaTest, WithoutNameTheAddressIsTheClient) {
  PredictionRequest request = Request(2);
  request.call.caller.quota.max_items = 1;
  KeptResponse response;
  Prediction prediction(*environment_, std::move(request), &response);
  prediction.Start(absl::OkStatus());
  EXPECT_EQ(server::GetErrorDetail(response.Wait()).quota_subject,
            "ipv4:127.0.0.1");
}

// The queue has no room for the first request, so the bucket must stay full.
TEST_F(PredictionQuotaTest, RefusedImagesDoNotCountForTheRate) {
  const security::Quota quota = {0, /*items_per_second=*/0.001,
                                 /*burst=*/kDecodeItems + 1};
  EXPECT_NE(Ask(Named(kDecodeItems + 1, "a", quota)), "");
  EXPECT_EQ(Ask(Named(1, "a", quota)), "");
  EXPECT_EQ(quotas_.clients(), 1u);
}

}  // namespace
}  // namespace sfmamba::prediction
