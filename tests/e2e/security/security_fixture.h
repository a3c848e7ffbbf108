#ifndef SFMAMBA_TESTS_E2E_SECURITY_SECURITY_FIXTURE_H_
#define SFMAMBA_TESTS_E2E_SECURITY_SECURITY_FIXTURE_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/server/security/token_texts.h"
#include "tests/testing/certificates.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

// A fixture for tests of a server with TLS and tokens, in a separate process.

namespace sfmamba {

using security::ClientText;

inline constexpr char kServing[] = "\"msg\":\"serving\"";

inline v1::ClassifyRequest GreyRequest(int images = 1) {
  v1::ClassifyRequest request;
  for (int i = 0; i < images; ++i) {
    v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
    pixels.set_width(64);
    pixels.set_height(64);
    pixels.set_format(v1::PixelBuffer::GRAY8);
    pixels.set_data(std::string(64 * 64, 'x'));
  }
  return request;
}

inline std::string ReasonOf(const grpc::Status& status) {
  google::rpc::Status proto;
  proto.ParseFromString(status.error_details());
  for (const auto& any : proto.details()) {
    google::rpc::ErrorInfo info;
    if (any.UnpackTo(&info)) return info.reason();
  }
  return "";
}

inline void AddToken(const std::string& token, grpc::ClientContext* context) {
  if (!token.empty()) {
    context->AddMetadata("authorization", absl::StrCat("Bearer ", token));
  }
  context->set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
}

class SecurityTest : public testing::Test {
 protected:
  // Writes a file that the test may overwrite later. Returns its path.
  static std::string Write(const std::string& name, const std::string& text) {
    return WriteTestFile(
        absl::StrCat(
            testing::UnitTest::GetInstance()->current_test_info()->name(), ".",
            name),
        text);
  }
  Certificate Issue(bool expired = false) const {
    CertificateOptions options;
    options.issuer = &authority_;
    options.expired = expired;
    return MakeCertificate(options);
  }

  void Start(std::vector<std::string> flags) {
    flags.push_back("--model_repository=" + WriteTinyModel());
    flags.push_back("--drain_delay=0s");
    server_ = std::make_unique<ServerProcess>(flags);
    ASSERT_TRUE(server_->WaitForLog(kServing)) << server_->output();
  }
  std::string TokenFlag(const std::string& clients) {
    return "--token_file=" + Write("tokens", clients);
  }
  // Returns the flags for the server's certificate and key. With `client_ca`,
  // the server asks clients for certificates.
  std::vector<std::string> TlsFlags(const Certificate& pair, bool client_ca) {
    std::vector<std::string> flags = {
        "--tls_cert_file=" + Write("cert", pair.pem),
        "--tls_key_file=" + Write("key", pair.key), "--http_port=-1"};
    if (client_ca) {
      flags.push_back("--tls_client_ca_file=" + Write("ca", authority_.pem));
    }
    return flags;
  }

  // Returns a channel with its own connection. `own` is the client certificate.
  std::shared_ptr<grpc::Channel> Connect(bool tls = false,
                                         const Certificate& own = {}) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    return grpc::CreateCustomChannel(
        server_->address(),
        tls ? grpc::SslCredentials({authority_.pem, own.key, own.pem})
            : grpc::InsecureChannelCredentials(),
        arguments);
  }
  static grpc::Status Classify(const std::shared_ptr<grpc::Channel>& channel,
                               const std::string& token, int images = 1) {
    grpc::ClientContext context;
    AddToken(token, &context);
    v1::ClassifyResponse response;
    return v1::VisionService::NewStub(channel)->Classify(
        &context, GreyRequest(images), &response);
  }
  static grpc::Status List(const std::shared_ptr<grpc::Channel>& channel,
                           const std::string& token) {
    grpc::ClientContext context;
    AddToken(token, &context);
    v1::ListModelsResponse response;
    return v1::VisionService::NewStub(channel)->ListModels(&context, {},
                                                           &response);
  }
  static grpc::Status Health(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    AddToken("", &context);
    grpc::health::v1::HealthCheckResponse response;
    return grpc::health::v1::Health::NewStub(channel)->Check(&context, {},
                                                             &response);
  }

  double Sum(const std::string& name,
             const std::initializer_list<std::string>& labels) const {
    return SumOf(Samples(HttpGet(server_->metrics_port(), "/metrics")), name,
                 labels);
  }
  void WaitForReloads(const std::string& files, const std::string& outcome,
                      int count) const {
    WaitUntil(
        [&] {
          return Sum("sfmamba_security_reloads_total",
                     {absl::StrCat("files=\"", files, "\""),
                      absl::StrCat("outcome=\"", outcome, "\"")}) >= count;
        },
        absl::StrCat(outcome, " of ", files));
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  const Certificate authority_ = MakeCertificate();
  std::unique_ptr<ServerProcess> server_;
};

#define EXPECT_REFUSED(status, expected_code, expected_reason)        \
  do {                                                                \
    const grpc::Status got = (status);                                \
    EXPECT_EQ(got.error_code(), grpc::StatusCode::expected_code)      \
        << got.error_message();                                       \
    EXPECT_EQ(ReasonOf(got), expected_reason) << got.error_message(); \
  } while (false)

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_SECURITY_SECURITY_FIXTURE_H_
