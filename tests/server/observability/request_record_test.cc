#include "server/observability/request_record.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "server/errors/reasons.h"
#include "tests/server/observability/metric_values.h"
#include "tests/testing/patience.h"

namespace sfmamba::observability {
namespace {

class RequestRecordTest : public testing::Test {
 protected:
  // Returns the log line of a request that ends with `status`.
  std::string LineOf(
      const absl::Status& status,
      const std::function<void(RequestRecord&)>& prepare = [](RequestRecord&) {
      }) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(),
                                                               &std::fclose);
    Logger log(file.get(), LogLevel::kInfo, LogFormat::kText);
    RequestRecord record(Method::kClassify, 1, "ipv4:127.0.0.1:1", "",
                         &metrics_, &log);
    prepare(record);
    record.Finish(status).IgnoreError();
    EXPECT_TRUE(log.Flush(kPatience));
    std::rewind(file.get());
    std::string text(1 << 12, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    return text;
  }

  Metrics metrics_{BuildInfo()};
};

TEST_F(RequestRecordTest, OnlyTheServersFaultsAreLoggedAsErrors) {
  const auto expect = [this](const absl::Status& status, const char* part) {
    const std::string line = LineOf(status);
    EXPECT_TRUE(absl::StrContains(line, part)) << line;
  };
  expect(absl::OkStatus(), "info    requests request method=");
  expect(server::InvalidField("f", "m"), "info    requests request method=");
  expect(absl::InternalError("broken"),
         "error   requests request failed method=");
}

TEST_F(RequestRecordTest, IsInFlightUntilItIsGone) {
  const auto in_flight = [this] {
    return Values(metrics_)["sfmamba_in_flight_requests{method=Classify}"];
  };
  LineOf(absl::OkStatus(), [&](RequestRecord&) { EXPECT_EQ(in_flight(), 1); });
  EXPECT_EQ(in_flight(), 0);
}

TEST_F(RequestRecordTest, IsCountedForItsModelAndNamesItsCaller) {
  const auto model = metrics_.Model("m", "3");
  const std::string line =
      LineOf(absl::OkStatus(), [&model](RequestRecord& record) {
        record.set_model("models/m/versions/3", model);
        record.set_images(7);
        record.set_request_id("r1");
        record.set_client("alice");
        record.CountAs(server::InvalidField("f", "m"));
      });
  for (const char* part :
       {"method=Classify model=models/m/versions/3 code=INVALID_ARGUMENT "
        "reason=INVALID_FIELD error=",
        " images=7 ", " request_id=r1 ", " client=alice ",
        " peer=ipv4:127.0.0.1:1"}) {
    EXPECT_TRUE(absl::StrContains(line, part)) << line;
  }
  EXPECT_EQ(Values(metrics_)["sfmamba_requests_total{code=INVALID_ARGUMENT,"
                             "method=Classify,model=m,reason=INVALID_FIELD,"
                             "version=3}"],
            1);
}

}  // namespace
}  // namespace sfmamba::observability
