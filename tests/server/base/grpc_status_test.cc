#include "server/base/grpc_status.h"

#include <cmath>
#include <limits>

#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/base/error.h"

namespace sfmamba {
namespace {

const std::vector<std::string>& Labels() {
  static const auto* const labels =
      new std::vector<std::string>{"zero", "one", "two", "three"};
  return *labels;
}

v1::ClassifyResult Convert(const std::vector<float>& logits,
                           const v1::ClassifyParams& params) {
  v1::ClassifyResult result;
  ToProto(Classification{logits, {0.5f, -0.5f}}, params, Labels(), &result);
  return result;
}

std::vector<int> Ids(const v1::ClassifyResult& result) {
  std::vector<int> ids;
  for (const v1::Category& category : result.categories()) {
    ids.push_back(category.class_id());
  }
  return ids;
}

TEST(ConvertTest, SoftmaxIsDefaultInDescendingOrder) {
  const v1::ClassifyResult result = Convert({1, 3, 0, 2}, {});
  EXPECT_EQ(Ids(result), (std::vector<int>{1, 3, 0, 2}));
  const double sum = std::exp(1.) + std::exp(3.) + std::exp(0.) + std::exp(2.);
  EXPECT_FLOAT_EQ(result.categories(0).score(), std::exp(3.) / sum);
  EXPECT_FLOAT_EQ(result.categories(3).score(), std::exp(0.) / sum);
  EXPECT_EQ(result.categories(0).label(), "one");
  EXPECT_EQ(result.embedding_size(), 0);
}

TEST(ConvertTest, SoftmaxOfLargeLogitsStaysFinite) {
  const v1::ClassifyResult result = Convert({1e30f, -1e30f, 0, 1e30f}, {});
  EXPECT_FLOAT_EQ(result.categories(0).score(), 0.5f);
  EXPECT_EQ(result.categories(3).score(), 0);
}

TEST(ConvertTest, TiesGoByClassId) {
  EXPECT_EQ(Ids(Convert({2, 2, 5, 2}, {})), (std::vector<int>{2, 0, 1, 3}));
}

TEST(ConvertTest, LogitAndSigmoid) {
  v1::ClassifyParams params;
  params.set_score_type(v1::ClassifyParams::LOGIT);
  EXPECT_EQ(Convert({1, 3, 0, 2}, params).categories(0).score(), 3);
  params.set_score_type(v1::ClassifyParams::SIGMOID);
  EXPECT_FLOAT_EQ(Convert({1, 3, 0, 2}, params).categories(3).score(), 0.5f);
}

TEST(ConvertTest, TopKDefaultsToFive) {
  v1::ClassifyResult result;
  ToProto(Classification{{1, 2, 3, 4, 5, 6, 7}, {}}, {},
          std::vector<std::string>(7), &result);
  EXPECT_EQ(Ids(result), (std::vector<int>{6, 5, 4, 3, 2}));
}

TEST(ConvertTest, FilterChoosesWhoCompetesAndCountsRepeatsOnce) {
  v1::ClassifyParams params;
  for (int id : {2, 0, 2}) params.add_class_filter(id);
  const v1::ClassifyResult result = Convert({1, 3, 0, 2}, params);
  EXPECT_EQ(Ids(result), (std::vector<int>{0, 2}));
  EXPECT_EQ(result.categories(0).score(),
            Convert({1, 3, 0, 2}, {}).categories(2).score());
}

TEST(ConvertTest, MinScoreLeavesOutWhatIsBelow) {
  v1::ClassifyParams params;
  params.set_score_type(v1::ClassifyParams::LOGIT);
  EXPECT_EQ(Convert({1, -3, 0, 2}, params).categories_size(), 4);
  params.set_min_score(1);
  EXPECT_EQ(Ids(Convert({1, -3, 0, 2}, params)), (std::vector<int>{3, 0}));
  params.set_min_score(-1);
  EXPECT_EQ(Convert({1, -3, 0, 2}, params).categories_size(), 3);
}

TEST(ConvertTest, EmbeddingOnRequest) {
  v1::ClassifyParams params;
  params.set_include_embedding(true);
  const v1::ClassifyResult result = Convert({1, 3, 0, 2}, params);
  ASSERT_EQ(result.embedding_size(), 2);
  EXPECT_EQ(result.embedding(1), -0.5f);
}

TEST(ConvertTest, GrpcStatusCarriesTheDetails) {
  ErrorDetail detail;
  detail.reason = "QUEUE_FULL";
  detail.field = "images";
  detail.retry_after = absl::Milliseconds(30);
  const grpc::Status status = ToGrpcStatus(
      MakeError(absl::StatusCode::kResourceExhausted, "queue is full", detail));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(), "queue is full");
  google::rpc::Status proto;
  ASSERT_TRUE(proto.ParseFromString(status.error_details()));
  EXPECT_EQ(proto.code(), 8);
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest request;
  google::rpc::RetryInfo retry;
  int found = 0;
  for (const google::protobuf::Any& any : proto.details()) {
    found +=
        any.UnpackTo(&info) + any.UnpackTo(&request) + any.UnpackTo(&retry);
  }
  EXPECT_EQ(found, 3);
  EXPECT_EQ(info.reason(), "QUEUE_FULL");
  EXPECT_EQ(info.domain(), "sfmamba.serving");
  EXPECT_EQ(request.field_violations(0).field(), "images");
  EXPECT_EQ(retry.retry_delay().nanos(), 30'000'000);
}

TEST(ConvertTest, AStatusWithoutDetailStillCarriesErrorInfo) {
  google::rpc::Status proto = ToRpcStatus(absl::InternalError("x"));
  google::rpc::ErrorInfo info;
  ASSERT_EQ(proto.details_size(), 1);
  ASSERT_TRUE(proto.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "INTERNAL");
}

TEST(ConvertTest, Durations) {
  google::protobuf::Duration proto;
  ToProto(absl::Nanoseconds(2'500'000'001), &proto);
  EXPECT_EQ(proto.seconds(), 2);
  EXPECT_EQ(proto.nanos(), 500'000'001);
  EXPECT_EQ(FromProto(proto), absl::Nanoseconds(2'500'000'001));
}

}  // namespace
}  // namespace sfmamba
