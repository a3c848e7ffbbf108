// Tests messages that no client library creates. They are sent as bytes.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/generic/generic_stub.h"
#include "tests/server/vision_service_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

class MalformedCallTest : public server::VisionServiceTest {
 protected:
  // Calls a method of VisionService. `bytes` is the serialized request.
  server::Ending Send(const std::string& method, const std::string& bytes) {
    grpc::GenericStub stub(server_->channel());
    grpc::ClientContext context;
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::Status status;
    absl::Notification done;
    stub.UnaryCall(&context, absl::StrCat("/sfmamba.v1.VisionService/", method),
                   grpc::StubOptions(), &request, &response,
                   [&](grpc::Status ended) {
                     status = std::move(ended);
                     done.Notify();
                   });
    WaitFor(done, "the end of the call");
    return server::EndingOf(status, &context);
  }
};

TEST_F(MalformedCallTest, BytesThatAreNoMessageAreRefusedCountedAndLogged) {
  Start();
  for (const char* method :
       {"Classify", "Detect", "Segment", "GetModel", "ListModels"}) {
    SCOPED_TRACE(method);
    // The first message has a text that is longer than the message. The second
    // has a text that is not UTF-8, in fields 1 and 2, because the first text
    // of ListModelsRequest is field 2.
    for (const std::string& bytes :
         {std::string("\x0a\x05x"), std::string("\x0a\x01\xff\x12\x01\xff")}) {
      const server::Ending ending = Send(method, bytes);
      EXPECT_EQ(ending.code, grpc::StatusCode::INVALID_ARGUMENT);
      EXPECT_EQ(ending.reason, "MALFORMED_MESSAGE");
      EXPECT_EQ(ending.metadata.count("trace_id"), 1u);
    }
    EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                  {R"(reason="MALFORMED_MESSAGE")",
                                   R"(code="INVALID_ARGUMENT")",
                                   absl::StrCat("method=\"", method, "\"")},
                                  2),
              2);
  }
  EXPECT_NE(server_->Log().find("\"reason\":\"MALFORMED_MESSAGE\""),
            std::string::npos);
  ExpectAlive();
}

TEST_F(MalformedCallTest, LongNamesOfModelsAreNotParsed) {
  Start();
  const std::string name(1 << 20, 'x');
  v1::GetModelRequest request;
  request.set_name(name);
  EXPECT_EQ(Send("GetModel", request.SerializeAsString()).reason,
            "MALFORMED_MESSAGE");
}

TEST_F(MalformedCallTest, EmptyImagesAreOneError) {
  Start();
  std::string bytes;
  for (int i = 0; i < 1'000'000; ++i) bytes += {'\x12', '\0'};
  EXPECT_EQ(Send("Classify", bytes).reason, "TOO_MANY_IMAGES");
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_items_total", {R"(outcome="error")"}, 1), 1);
  ExpectAlive();
}

}  // namespace
}  // namespace sfmamba::rpc
