// Tests `sfmamba classify --resize` with a server in this process. The answer
// of its fake model depends on each pixel.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/classify_command.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands_testing.h"
#include "tests/server/picture.h"
#include "tests/server/vision_service_fixture.h"

namespace sfmamba::client {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class ResizeCommandTest : public server::VisionServiceTest {
 protected:
  Outcome Classify(std::vector<std::string> arguments) {
    arguments.push_back(
        absl::StrCat("--server=127.0.0.1:", server_->server().port()));
    return Invoke(RunClassify, arguments);
  }
};

TEST_F(ResizeCommandTest, TheAnswersAreTheSameForFewerBytes) {
  Start();
  image::RgbImage image = server::Gradient(300, 200);
  const std::string turned =
      WriteFile("b.jpg", server::WithExif(server::EncodeJpeg(image),
                                          server::ExifOrientation(6, true)));
  uint32_t noise = 1;
  for (uint8_t& byte : image.data) {
    noise = noise * 1664525 + 1013904223;
    byte = noise >> 24;
  }
  const std::string png = WriteFile("a.png", server::EncodePng(image));
  const auto bytes_of = [this](int requests) {
    const std::string method = R"(method="Classify")";
    server_->WaitForSum("sfmamba_request_bytes_count", {method}, requests);
    return server_->Sum("sfmamba_request_bytes_sum", {method});
  };
  const Outcome whole = Classify({png, turned, "--top_k=10"});
  ASSERT_EQ(whole.exit_code, kExitOk) << whole.err;
  const double whole_bytes = bytes_of(2);
  EXPECT_GT(whole_bytes, 180'000);
  for (const char* model : {"--model=", "--model=fake"}) {
    const Outcome resized =
        Classify({png, turned, "--top_k=10", "--resize", model});
    EXPECT_EQ(resized.exit_code, kExitOk) << resized.err;
    EXPECT_EQ(resized.out, whole.out);
  }
  constexpr int kTensorBytes =
      3 * server::FakeModel::kSide * server::FakeModel::kSide;
  const double resized_bytes = bytes_of(6) - whole_bytes;
  EXPECT_GE(resized_bytes, 4 * kTensorBytes);
  EXPECT_LE(resized_bytes, 4 * (kTensorBytes + 100));
}

TEST_F(ResizeCommandTest, ABrokenPictureIsRefusedHere) {
  Start();
  const std::string png = server::EncodePng(server::Gradient(60, 45));
  const std::string good = WriteFile("good.png", png);
  const std::string bad = WriteFile("bad.png", png.substr(0, 200));
  const Outcome outcome = Classify({bad, good, "/none.jpg", "--resize"});
  EXPECT_EQ(outcome.exit_code, kExitUsage);
  EXPECT_THAT(outcome.out, HasSubstr("good.png"));
  EXPECT_THAT(outcome.err, MatchesRegex("sfmamba: '.*/bad.png': PNG: [^\n]*\n"
                                        "sfmamba: cannot read '/none.jpg': "
                                        "No such file or directory\n"));
}

TEST_F(ResizeCommandTest, NeedsAClassifier) {
  Start();
  const std::string png =
      WriteFile("a.png", server::EncodePng(server::Gradient(60, 45)));
  const Outcome none = Classify({png, "--resize", "--model=none"});
  EXPECT_EQ(none.exit_code, kExitRpcError);
  EXPECT_THAT(none.err, HasSubstr("NOT_FOUND"));
  const Outcome both = Classify(
      {png, "--resize", "--heat_map", "--output_dir=" + testing::TempDir()});
  EXPECT_EQ(both.exit_code, kExitUsage);
  EXPECT_THAT(both.err, HasSubstr("--heat_map excludes --resize"));
}

}  // namespace
}  // namespace sfmamba::client
