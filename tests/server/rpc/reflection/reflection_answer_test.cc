#include <set>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "server/rpc/reflection/reflection_service.h"
#include "sfmamba/v1/config.pb.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {
namespace {

using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;
using ::testing::Contains;
using ::testing::ElementsAre;

constexpr int kNotFound = 5;
constexpr int kInvalidArgument = 3;

class ReflectionAnswerTest : public testing::Test {
 protected:
  // Else the linker would leave the files out.
  ReflectionAnswerTest() {
    v1::ClassifyRequest::descriptor();
    v1::ServerConfig::descriptor();
  }

  // The names of the files in an answer, the first one first.
  static std::vector<std::string> Files(
      const ServerReflectionResponse& response) {
    std::vector<std::string> names;
    for (const std::string& bytes :
         response.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      EXPECT_TRUE(file.ParseFromString(bytes));
      names.push_back(file.name());
    }
    return names;
  }
  ServerReflectionResponse Ask() const { return Reflect(request_, {}); }

  ServerReflectionRequest request_;
};

TEST_F(ReflectionAnswerTest, ListsTheServicesThatAreServed) {
  request_.set_host("here");
  request_.set_list_services("");
  const ServerReflectionResponse response = Reflect(request_, {"a.B", "c.D"});
  ASSERT_EQ(response.list_services_response().service_size(), 2);
  EXPECT_EQ(response.list_services_response().service(0).name(), "a.B");
  EXPECT_EQ(response.list_services_response().service(1).name(), "c.D");
  EXPECT_EQ(response.valid_host(), "here");
  EXPECT_EQ(response.original_request().SerializeAsString(),
            request_.SerializeAsString());
}

TEST_F(ReflectionAnswerTest, GivesAFileWithAllThatItImportsOnce) {
  request_.set_file_by_filename("sfmamba/v1/vision.proto");
  const std::vector<std::string> files = Files(Ask());
  ASSERT_FALSE(files.empty());
  EXPECT_EQ(files[0], "sfmamba/v1/vision.proto");
  EXPECT_THAT(files, Contains("google/rpc/status.proto"));
  // Imported by google/rpc/status.proto.
  EXPECT_THAT(files, Contains("google/protobuf/any.proto"));
  EXPECT_EQ(std::set<std::string>(files.begin(), files.end()).size(),
            files.size());
}

TEST_F(ReflectionAnswerTest, FindsTheFileOfASymbol) {
  for (const char* symbol :
       {"sfmamba.v1.VisionService", "sfmamba.v1.VisionService.Classify",
        "sfmamba.v1.ClassifyRequest"}) {
    request_.set_file_containing_symbol(symbol);
    const std::vector<std::string> files = Files(Ask());
    ASSERT_FALSE(files.empty()) << symbol;
    EXPECT_EQ(files[0], "sfmamba/v1/vision.proto");
  }
}

TEST_F(ReflectionAnswerTest, FindsExtensions) {
  const std::string options = "google.protobuf.FieldOptions";
  request_.set_all_extension_numbers_of_type(options);
  const ServerReflectionResponse numbers = Ask();
  EXPECT_EQ(numbers.all_extension_numbers_response().base_type_name(), options);
  ASSERT_GT(numbers.all_extension_numbers_response().extension_number_size(),
            0);
  auto* extension = request_.mutable_file_containing_extension();
  extension->set_containing_type(options);
  extension->set_extension_number(
      numbers.all_extension_numbers_response().extension_number(0));
  EXPECT_THAT(Files(Ask()), Contains("sfmamba/v1/setting.proto"));
}

TEST_F(ReflectionAnswerTest, SaysWhatIsNotThere) {
  request_.set_file_by_filename("../../etc/passwd");
  EXPECT_EQ(Ask().error_response().error_code(), kNotFound);
  EXPECT_EQ(Ask().error_response().error_message(), "not found");
  request_.set_file_containing_symbol("no.Such");
  EXPECT_EQ(Ask().error_response().error_code(), kNotFound);
  request_.set_all_extension_numbers_of_type("no.Such");
  EXPECT_EQ(Ask().error_response().error_code(), kNotFound);
  auto* extension = request_.mutable_file_containing_extension();
  extension->set_containing_type("no.Such");
  EXPECT_EQ(Ask().error_response().error_code(), kNotFound);
  extension->set_containing_type("google.protobuf.FieldOptions");
  extension->set_extension_number(-1);
  EXPECT_EQ(Ask().error_response().error_code(), kNotFound);
  request_.clear_message_request();
  EXPECT_EQ(Ask().error_response().error_code(), kInvalidArgument);
  EXPECT_EQ(Ask().error_response().error_message(), "nothing is asked for");
}

}  // namespace
}  // namespace sfmamba::rpc
