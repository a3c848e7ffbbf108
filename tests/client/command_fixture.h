#ifndef SFMAMBA_TESTS_CLIENT_COMMAND_FIXTURE_H_
#define SFMAMBA_TESTS_CLIENT_COMMAND_FIXTURE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/client/fake_vision_server.h"

namespace sfmamba::client {

// Starts a server with one classifier. It answers like AnswerCup(), but returns
// an error if the picture's bytes are "bad".
class CommandFixture : public testing::Test {
 protected:
  CommandFixture() : server_(AnswerUnlessBad) {
    server_.SetModels({FakeModel("models/m/versions/1")});
  }

  std::string ServerFlag() const {
    return absl::StrCat("--server=", server_.address());
  }

  FakeVisionServer server_;

 private:
  static grpc::Status AnswerUnlessBad(const v1::ClassifyRequest& request,
                                      v1::ClassifyResponse* response) {
    if (request.images(0).encoded() == "bad") {
      return FakeError(grpc::StatusCode::INVALID_ARGUMENT, "not a picture",
                       "IMAGE_FORMAT_UNSUPPORTED", "images[0].encoded");
    }
    return AnswerCup(request, response);
  }
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_TESTS_CLIENT_COMMAND_FIXTURE_H_
