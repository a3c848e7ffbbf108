#include "server/rpc/admin_service.h"

#include <string>

#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "tests/server/vision_service_fixture.h"

namespace sfmamba::rpc {
namespace {

using grpc::StatusCode;

class AdminServiceTest : public server::VisionServiceTest {
 protected:
  server::Ending GetBatchProfile(const std::string& name,
                                 v1::BatchProfile* profile) {
    const auto stub = v1::AdminService::NewStub(server_->channel());
    grpc::ClientContext context;
    v1::GetBatchProfileRequest request;
    request.set_name(name);
    return server::EndingOf(stub->GetBatchProfile(&context, request, profile),
                            &context);
  }
};

TEST_F(AdminServiceTest, TellsWhatWasMeasuredAtLoadAndWhatRan) {
  Start("max_batch_size: 4 max_queue_delay {}");
  v1::ClassifyResponse response;
  ASSERT_EQ(Classify(server::GreyRequest(1), &response).code, StatusCode::OK);
  v1::BatchProfile profile;
  ASSERT_EQ(GetBatchProfile("fake", &profile).code, StatusCode::OK);
  EXPECT_EQ(profile.model(), "models/fake/versions/3");
  EXPECT_EQ(profile.device(), "fake");
  EXPECT_EQ(profile.max_batch_size(), 4);
  ASSERT_EQ(profile.size_classes_size(), 1);
  const v1::BatchProfile::SizeClass& size = profile.size_classes(0);
  EXPECT_EQ(size.height(), server::FakeModel::kSide);
  EXPECT_EQ(size.width(), server::FakeModel::kSide);
  EXPECT_EQ(size.image_type(), v1::BatchProfile::UINT8);
  ASSERT_EQ(size.times_size(), 3);  // 1, 2 and 4.
  EXPECT_EQ(size.times(0).images(), 1);
  EXPECT_EQ(size.times(2).images(), 4);
  absl::Duration last;
  for (const v1::BatchProfile::BatchTime& time : size.times()) {
    EXPECT_GT(base::FromProto(time.median()), absl::ZeroDuration());
    EXPECT_GE(base::FromProto(time.median()), last);
    EXPECT_GE(base::FromProto(time.p95()), base::FromProto(time.median()));
    last = base::FromProto(time.median());
  }
  ASSERT_GE(size.efficient_sizes_size(), 1);
  EXPECT_EQ(size.efficient_sizes(0), 1);
  EXPECT_GT(size.pace(), 0);
}

TEST_F(AdminServiceTest, ADenseModelHasNoTimesBeforeItsFirstImage) {
  server::WriteModel(repository_, "boxes", "1", "",
                     model::VisionTask::kDetection);
  Start("max_batch_size: 4");
  v1::BatchProfile profile;
  ASSERT_EQ(GetBatchProfile("boxes", &profile).code, StatusCode::OK);
  EXPECT_EQ(profile.model(), "models/boxes/versions/1");
  EXPECT_EQ(profile.size_classes_size(), 0);
}

TEST_F(AdminServiceTest, AModelThatIsNotThereIsNotFound) {
  Start();
  v1::BatchProfile profile;
  const server::Ending ending = GetBatchProfile("none", &profile);
  EXPECT_EQ(ending.code, StatusCode::NOT_FOUND);
  EXPECT_EQ(ending.reason, "MODEL_NOT_FOUND");
  EXPECT_EQ(ending.metadata.count("trace_id"), 1u);
}

}  // namespace
}  // namespace sfmamba::rpc
