// Callers that load and unload models without pause, beside one that asks
// another model.

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
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

std::string NameOf(int model) { return absl::StrCat("large", model); }

// Loads or unloads the models in turns until `end`.
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

// A6.
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

}  // namespace
}  // namespace sfmamba
