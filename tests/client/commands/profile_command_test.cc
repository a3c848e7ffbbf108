#include "client/commands/profile_command.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/admin.grpc.pb.h"
#include "tests/client/commands_testing.h"

namespace sfmamba::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Answers each request with `profile`. If the request is for the model "none",
// answers with NOT_FOUND.
class FakeAdmin : public v1::AdminService::Service {
 public:
  grpc::Status GetBatchProfile(grpc::ServerContext* /*context*/,
                               const v1::GetBatchProfileRequest* request,
                               v1::BatchProfile* response) override {
    if (request->name() == "none") {
      return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such model");
    }
    *response = profile;
    return grpc::Status::OK;
  }

  v1::BatchProfile profile;  // Must be set before the first call.
};

class ProfileCommandTest : public testing::Test {
 protected:
  ProfileCommandTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(&admin_);
    server_ = builder.BuildAndStart();
    admin_.profile.set_model("models/m/versions/1");
    admin_.profile.set_device("cpu");
    admin_.profile.set_max_batch_size(8);
  }

  void AddTimes() {
    v1::BatchProfile::SizeClass* size = admin_.profile.add_size_classes();
    size->set_height(224);
    size->set_width(160);
    size->set_image_type(v1::BatchProfile::FLOAT32);
    size->set_pace(1.25);
    for (const int images : {1, 2, 8}) {
      v1::BatchProfile::BatchTime* time = size->add_times();
      time->set_images(images);
      time->mutable_median()->set_nanos(images * 10'000'000);
      time->mutable_p95()->set_nanos(images * 12'500'000);
    }
    size->mutable_times(2)->mutable_median()->set_nanos(40'000'000);
    size->add_efficient_sizes(1);
    size->add_efficient_sizes(8);
  }

  std::string ServerFlag() const {
    return absl::StrCat("--server=127.0.0.1:", port_);
  }

  FakeAdmin admin_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ProfileCommandTest, PrintsTimesRatesAndTheEfficientSizes) {
  AddTimes();
  const Outcome outcome = Invoke(RunProfile, {ServerFlag(), "m"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out,
              HasSubstr("models/m/versions/1 on cpu, batches of at most 8"));
  EXPECT_THAT(
      outcome.out,
      HasSubstr("224x160 float       1   10.00   12.50     100.0  yes"));
  EXPECT_THAT(outcome.out,
              HasSubstr("224x160 float       2   20.00   25.00     100.0\n"));
  EXPECT_THAT(
      outcome.out,
      HasSubstr("224x160 float       8   40.00  100.00     200.0  yes"));
  EXPECT_THAT(outcome.out, HasSubstr("1.25 times as long as at first"));
}

TEST_F(ProfileCommandTest, SaysThatNothingWasMeasured) {
  const Outcome outcome = Invoke(RunProfile, {ServerFlag()});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("The server has not measured any batch"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("T50")));
}

TEST_F(ProfileCommandTest, PrintsJson) {
  AddTimes();
  const Outcome outcome = Invoke(RunProfile, {ServerFlag(), "--json", "m"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"efficient_sizes\":[1,8]"));
  EXPECT_THAT(outcome.out, HasSubstr("\"median\":\"0.010s\""));
}

TEST_F(ProfileCommandTest, AModelThatIsNotThereAndTwoModelsAreErrors) {
  const Outcome unknown = Invoke(RunProfile, {ServerFlag(), "none"});
  EXPECT_EQ(unknown.exit_code, kExitRpcError);
  EXPECT_THAT(unknown.err, HasSubstr("no such model"));
  EXPECT_EQ(Invoke(RunProfile, {ServerFlag(), "a", "b"}).exit_code, kExitUsage);
}

}  // namespace
}  // namespace sfmamba::client
