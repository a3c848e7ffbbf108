// Changes the models of a real server while a crowd calls them. Only requests
// that are meant to fail may fail, and each answer names the version that
// computed it.

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/rpc/server_access.h"
#include "client/rpc/vision_client.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/e2e/reload/callers.h"
#include "tests/e2e/reload/versions.h"
#include "tests/e2e/server_process.h"
#include "tests/server/security/token_texts.h"
#include "tests/testing/certificates.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr absl::Duration kCallTime = absl::Minutes(1);
// The number of clients that call the model "tiny".
constexpr int kClients = 6;

std::string Tiny(int number) {
  return absl::StrCat("models/tiny/versions/", number);
}

class ReloadTest : public testing::Test {
 protected:
  // Starts a server with version 1 of "tiny" and of "other". The server allows
  // calls of AdminService to load and unload its models.
  void Start(std::vector<std::string> flags = {}) {
    repository_ = WriteTinyModel("max_batch_size: 4");
    PublishVersion(repository_, "tiny", 1);
    PublishVersion(repository_, "other", 1);
    flags.push_back("--model_repository=" + repository_);
    flags.push_back("--model_control=explicit");
    flags.push_back("--log_level=info,requests=error");
    server_ = std::make_unique<ServerProcess>(flags);
    ASSERT_TRUE(server_->WaitForLog("\"msg\":\"serving\""))
        << server_->output();
    admin_ = Operator("operator-1");
  }
  // Starts a server with TLS and tokens. "caller" may infer, and "operator-1"
  // may administer.
  void StartGuarded() {
    IssueCertificate();
    SetTokens("operator-1");
    access_.tls = true;
    access_.roots = authority_.pem;
    access_.token = "caller";
    Start({"--tls_cert_file=" + Path("cert"), "--tls_key_file=" + Path("key"),
           "--token_file=" + Path("tokens")});
  }

  // Makes a new certificate for the server. SetTokens() makes a new token for
  // the operator.
  void IssueCertificate() {
    CertificateOptions options;
    options.issuer = &authority_;
    const Certificate certificate = MakeCertificate(options);
    WriteTestFile("cert", certificate.pem);
    WriteTestFile("key", certificate.key);
  }
  void SetTokens(const std::string& operator_token) {
    WriteTestFile("tokens", security::ClientText("caller", "caller", "INFER") +
                                security::ClientText("operator", operator_token,
                                                     "ADMIN, READ"));
  }
  // Waits until the server has reloaded its files. `files` is "tls" or
  // "tokens".
  void WaitForReload(const std::string& files) const {
    WaitUntil(
        [&] {
          return SumOf(Samples(HttpGet(server_->metrics_port(), "/metrics")),
                       "sfmamba_security_reloads_total",
                       {absl::StrCat("files=\"", files, "\""),
                        "outcome=\"taken\""}) >= 1;
        },
        "the change of " + files);
  }

  // Returns a client that uses `token` for administrative calls.
  std::unique_ptr<client::VisionClient> Operator(
      const std::string& token) const {
    client::VisionClientOptions options;
    options.share_connections = false;
    options.access = access_;
    if (access_.tls) options.access.token = token;
    return std::make_unique<client::VisionClient>(server_->address(), options);
  }

  // Returns a channel with its own connection.
  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
    return client::MakeChannel(server_->address(), access_, arguments);
  }
  std::unique_ptr<Callers> Crowd(const std::string& model, int clients) const {
    return std::make_unique<Callers>(model, clients,
                                     [this] { return Connect(); });
  }

  absl::Status Load(const std::string& name, bool again = false) {
    v1::LoadModelRequest request;
    request.set_name(name);
    // The server loads a serving version again only if the request changes its
    // limits.
    if (again) request.mutable_batching()->set_max_batch_size(4);
    return admin_->LoadModel(request, kCallTime).status();
  }
  absl::Status Unload(const std::string& name) {
    v1::UnloadModelRequest request;
    request.set_name(name);
    return admin_->UnloadModel(request, kCallTime).status();
  }
  absl::Status Label(const std::string& label, int version) {
    v1::SetVersionLabelRequest request;
    request.set_model("tiny");
    request.set_label(label);
    request.set_version(version);
    return admin_->SetVersionLabel(request, kCallTime).status();
  }

  // Returns a path for a file of this test.
  static std::string Path(const std::string& name) {
    return absl::StrCat(testing::TempDir(), "/", name);
  }

  const Certificate authority_ = MakeCertificate();
  client::ServerAccess access_;  // The credentials of callers.
  std::string repository_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<client::VisionClient> admin_;
};

void ExpectNoErrors(const Callers::Outcomes& outcomes) {
  EXPECT_EQ(outcomes.failed(), 0) << outcomes.first_error;
}

// Skips answers to requests that are already in flight, then returns the next
// `count` answers. Expects that no request fails.
Callers::Outcomes Next(Callers& crowd, int count) {
  ExpectNoErrors(crowd.TakeNext(100));
  const Callers::Outcomes next = crowd.TakeNext(count);
  ExpectNoErrors(next);
  return next;
}

// Expects that only `version` answers new requests.
void ExpectAllBy(const std::string& version, Callers& crowd) {
  const Callers::Outcomes next = Next(crowd, 200);
  EXPECT_EQ(next.answers.size(), 1u);
  EXPECT_EQ(next.answers.count(version), 1u);
}

TEST_F(ReloadTest, NoRequestFailsThatWasNotAskedTo) {
  StartGuarded();
  const auto tiny = Crowd("tiny", kClients);
  const auto other = Crowd("other", 2);
  ExpectAllBy(Tiny(1), *tiny);

  // Publishes a new version.
  PublishVersion(repository_, "tiny", 2);
  ASSERT_TRUE(Load("tiny").ok());
  ExpectAllBy(Tiny(2), *tiny);

  // Returns to the old version.
  ASSERT_TRUE(Load(Tiny(1)).ok());
  ASSERT_TRUE(Label("stable", 1).ok());
  ExpectAllBy(Tiny(1), *tiny);

  // Unloads the other model. Only requests for it fail.
  ExpectNoErrors(other->Take());
  ASSERT_TRUE(Unload("other").ok());
  Callers::Outcomes gone = other->TakeNext(50);
  gone = other->TakeNext(50);  // Requests in flight are answered by now.
  EXPECT_EQ(gone.answered(), 0);
  for (const auto& [reason, count] : gone.errors) {
    EXPECT_TRUE(reason == "MODEL_NOT_FOUND" || reason == "MODEL_NOT_READY")
        << gone.first_error;
  }
  ExpectNoErrors(tiny->TakeNext(200));

  // Loads the other model again.
  ASSERT_TRUE(Load("other").ok());
  other->TakeNext(20);
  ExpectNoErrors(other->TakeNext(50));

  // Changes the certificate and the operator's token. Existing connections
  // persist, and new connections are served as well.
  IssueCertificate();
  WaitForReload("tls");
  const auto newcomers = Crowd("tiny", 2);
  SetTokens("operator-2");
  WaitForReload("tokens");
  ExpectNoErrors(newcomers->TakeNext(200));
  EXPECT_EQ(Label("new", 2).code(), absl::StatusCode::kUnauthenticated);
  admin_ = Operator("operator-2");
  EXPECT_TRUE(Label("new", 2).ok());
  ExpectAllBy(Tiny(1), *tiny);

  newcomers->Stop();
  ExpectNoErrors(newcomers->Take());
  tiny->Stop();
  ExpectNoErrors(tiny->Take());
}

TEST_F(ReloadTest, MemoryComesBackAfterTwentyReloads) {
  Start();
  const auto tiny = Crowd("tiny", 2);
  tiny->TakeNext(200);
  // Each thread that loads or frees a version has its own heap. These heaps
  // reach their final size within about ten loads.
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(Load("tiny", /*again=*/true).ok());
  tiny->TakeNext(200);
  const int64_t before = server_->resident_bytes();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Load("tiny", /*again=*/true).ok());
  ExpectNoErrors(tiny->TakeNext(200));
  const int64_t after = server_->resident_bytes();
  std::cout << "resident: " << before / 1048576.0 << " MiB before, "
            << after / 1048576.0 << " MiB after 20 reloads, "
            << 100.0 * (after - before) / before << " % more\n";
  EXPECT_LT(after, before * 1.2);
}

TEST_F(ReloadTest, LatencyDuringALoadIsShown) {
  Start();
  const auto tiny = Crowd("tiny", 2);
  tiny->TakeNext(100);
  const Callers::Outcomes before = tiny->TakeNext(500);
  tiny->Take();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Load("other", /*again=*/true).ok());
  const Callers::Outcomes during = tiny->Take();
  ExpectNoErrors(before);
  ExpectNoErrors(during);
  for (const double percent : {50.0, 99.0}) {
    std::cout << "p" << percent << ": " << before.Percentile(percent)
              << " before, " << during.Percentile(percent) << " of "
              << during.answered() << " answers during five loads\n";
  }
}

TEST_F(ReloadTest, LoadsAndUnloadsBySeveralAtOnceFailNoRequest) {
  Start();
  // Version 1 stays loaded because of its label. Without the label, the server
  // would keep only the latest version.
  ASSERT_TRUE(Label("stable", 1).ok());
  PublishVersion(repository_, "tiny", 2);
  ASSERT_TRUE(Load(Tiny(2)).ok());
  const auto tiny = Crowd("tiny", 4);
  std::vector<std::thread> operators;
  for (int i = 0; i < 4; ++i) {
    operators.emplace_back([this, i] {
      client::VisionClient admin(server_->address());
      for (int round = 0; round < 4; ++round) {
        v1::LoadModelRequest load;
        load.set_name(Tiny(i % 2 + 1));
        load.mutable_batching()->set_max_batch_size(4);
        const auto loaded = admin.LoadModel(load, kCallTime);
        // A load of version 2 may fail, because another operator may unload
        // this version meanwhile.
        EXPECT_TRUE(loaded.ok() || i % 2 == 1) << loaded.status();
        v1::UnloadModelRequest unload;
        unload.set_name(Tiny(2));
        (void)admin.UnloadModel(unload,
                                // Another operator may have unloaded it
                                // already.
                                kCallTime);
      }
    });
  }
  for (std::thread& thread : operators) {
    Join(thread, "the loads and unloads", kTestPatience);
  }
  ExpectAllBy(Tiny(1), *tiny);
  tiny->Stop();
  ExpectNoErrors(tiny->Take());
}

}  // namespace
}  // namespace sfmamba
