// Tests which clients may use the administration port.

#include <memory>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/admin.grpc.pb.h"
#include "tests/server/running_server.h"
#include "tests/testing/certificates.h"

namespace sfmamba::server {
namespace {

grpc::StatusCode AskThrough(
    int port, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ClientContext context;
  v1::ServerInfo info;
  return v1::AdminService::NewStub(
             grpc::CreateChannel(absl::StrCat("localhost:", port), credentials))
      ->GetServerInfo(&context, v1::GetServerInfoRequest(), &info)
      .error_code();
}

TEST(AdminPortTest, HasTlsWhereTheServerHas) {
  const Certificate pair = MakeCertificate();
  v1::ServerConfig config;
  config.set_model_repository(NewFolder("models"));
  WriteModel(config.model_repository(), "fake", "1");
  config.set_tls_cert_file(WriteTestFile("cert", pair.pem));
  config.set_tls_key_file(WriteTestFile("key", pair.key));
  config.set_admin_port(0);
  RunningServer server(config);
  const int port = server.server().admin_port();
  grpc::SslCredentialsOptions trusted;
  trusted.pem_root_certs = pair.pem;
  EXPECT_EQ(AskThrough(port, grpc::SslCredentials(trusted)),
            grpc::StatusCode::OK);
  EXPECT_EQ(AskThrough(port, grpc::InsecureChannelCredentials()),
            grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace sfmamba::server
