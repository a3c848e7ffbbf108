#ifndef SFMAMBA_TESTS_E2E_ATTACKS_LARGE_PICTURES_H_
#define SFMAMBA_TESTS_E2E_ATTACKS_LARGE_PICTURES_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"

namespace sfmamba {

// The side of a square picture of 50 megapixels.
inline constexpr int kLargeSide = 7071;

// Returns a blank PNG of kLargeSide x kLargeSide pixels, a few kilobytes long.
std::string BlankPng();

// Returns a stub with its own connection. The stub accepts answers of any size.
std::unique_ptr<v1::VisionService::Stub> NewStub(const ServerProcess& server);

void SetTimeout(absl::Duration timeout, grpc::ClientContext* context);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_ATTACKS_LARGE_PICTURES_H_
