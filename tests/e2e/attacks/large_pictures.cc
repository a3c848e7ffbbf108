#include "tests/e2e/attacks/large_pictures.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "tests/testing/encode_masks.h"

namespace sfmamba {

std::string BlankPng() {
  return *base::EncodeGreyPng(kLargeSide, kLargeSide, 1, [](int, uint8_t* row) {
    std::fill_n(row, (kLargeSide + 7) / 8, 0);
  });
}

std::unique_ptr<v1::VisionService::Stub> NewStub(const ServerProcess& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return v1::VisionService::NewStub(grpc::CreateCustomChannel(
      server.address(), grpc::InsecureChannelCredentials(), arguments));
}

void SetTimeout(absl::Duration timeout, grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() +
                        absl::ToChronoMilliseconds(timeout));
}

}  // namespace sfmamba
