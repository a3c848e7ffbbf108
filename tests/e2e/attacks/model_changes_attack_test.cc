// Attacks by callers that load and unload models without pause. A polite caller
// of another model must be answered.

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/admin.grpc.pb.h"
#include "tests/e2e/attacks/rounds.h"
#include "tests/e2e/server_process.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int kModels = 3;
constexpr int kCallers = 12;
// Two texts that are added to the configuration of a small network. `backbone`
// is added to the configuration's message `backbone`. `config` is added to the
// end of the configuration.
struct Addition {
  const char* backbone = "";
  const char* config = "";
};
// Models with these additions have small weights. Yet a model with one of them
// needs gigabytes of memory to run, or more memory than any machine has.
constexpr Addition kHuge[kModels] = {{"", "input { size: 4096 }"},
                                     {"", "input { size: 16384 }"},
                                     {"windows: [16384, 16384]", ""}};

std::string NameOf(int model) { return absl::StrCat("large", model); }

// Writes the configuration of a small network, but no weights. The server must
// therefore be started with --random_init. Each `edition` makes a different
// file, so that the server finds a change when it polls the repository.
void WriteSmallNetwork(const std::string& repository, const std::string& name,
                       const Addition& addition, int edition = 0) {
  const std::string folder = absl::StrCat(repository, "/", name, "/1");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.textproto")
      << "num_classes: 10 backbone { variant: 'custom' dim: 28 "
         "stem: EFFICIENTNET_LITE0 depths: [0, 0, 1, 1] "
         "num_heads: [1, 2, 4, 8] "
      << addition.backbone << " } " << addition.config << " # " << edition;
}

// Loads or unloads the models in turn until `end`. Calls that have not ended by
// then are cancelled.
void ChangeModels(const std::string& address, int caller, absl::Time end) {
  const auto stub = v1::AdminService::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  for (int i = caller; base::SteadyNow() < end; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMilliseconds(end - base::SteadyNow()));
    if (i / kModels % 2 == 0) {
      v1::LoadModelRequest request;
      v1::LoadModelResponse response;
      request.set_name(NameOf(i % kModels));
      stub->LoadModel(&context, request, &response);
    } else {
      v1::UnloadModelRequest request;
      v1::UnloadModelResponse response;
      request.set_name(NameOf(i % kModels));
      stub->UnloadModel(&context, request, &response);
    }
  }
}

TEST(ModelChangesAttackTest, LeaveTimeForAnotherModel) {
  const std::string repository = WriteTinyModel();
  for (int i = 0; i <= kModels; ++i) {
    const std::string folder =
        absl::StrCat(repository, "/", i < kModels ? NameOf(i) : "served", "/1");
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/config.textproto")
        << "task: CLASSIFICATION num_classes: 10 "
           "backbone { variant: 'sf_mamba_t' }";
  }
  ServerProcess server({"--model_repository=" + repository, "--random_init",
                        "--model_control=explicit", "--drain_delay=0s",
                        "--memory_budget_bytes=1536MiB"});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  Rounds rounds;
  rounds.model = "served";
  rounds.interval = absl::Milliseconds(250);
  rounds.round = absl::Seconds(8);
  ExpectFiveRoundsHarmless(rounds, &server, [&](absl::Time end) {
    std::vector<std::thread> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&, i] { ChangeModels(server.address(), i, end); });
    }
    for (std::thread& caller : callers) Join(caller, "the changes' end");
  });
}

TEST(ModelChangesAttackTest, ModelsThatTakeMuchMemoryLeaveSomeForOthers) {
  const std::string repository = WriteTinyModel();
  WriteSmallNetwork(repository, "served", {"", "input { size: 160 }"});
  ServerProcess server({"--model_repository=" + repository, "--random_init",
                        "--model_control=poll+explicit", "--poll_period=1s",
                        "--startup_models=served", "--drain_delay=0s",
                        "--memory_budget_bytes=1GiB"});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  Rounds rounds;
  rounds.model = "served";
  rounds.interval = absl::Seconds(1);
  rounds.round = absl::Seconds(8);
  rounds.memory_budget = int64_t{6} << 30;
  ExpectFiveRoundsHarmless(rounds, &server, [&](absl::Time end) {
    std::vector<std::thread> callers;
    for (int i = 0; i < kModels; ++i) {
      WriteSmallNetwork(repository, NameOf(i), kHuge[i]);
      callers.emplace_back([&, i] { ChangeModels(server.address(), i, end); });
    }
    for (int i = 0; base::SteadyNow() < end; ++i) {
      // The server polls the repository and finds that the model has changed.
      WriteSmallNetwork(repository, "polled", kHuge[i % kModels], i);
      absl::SleepFor(absl::Seconds(1));
    }
    for (std::thread& caller : callers) Join(caller, "the changes' end");
  });
}

}  // namespace
}  // namespace sfmamba
