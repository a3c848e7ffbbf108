#ifndef SFMAMBA_TESTS_SERVER_CEILING_LOAD_H_
#define SFMAMBA_TESTS_SERVER_CEILING_LOAD_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/support/status.h"
#include "tests/server/ceiling/server_child.h"

namespace sfmamba {

// The number of concurrent requests.
constexpr int kRequestsInFlight = 64;

struct Rate {
  double per_second;
  double server_micros, client_micros;  // CPU time per request.
  // The number of requests that did not end with the expected gRPC code or HTTP
  // status.
  int64_t other;

  double micros() const { return server_micros + client_micros; }
};

// Sends the same gRPC message repeatedly for `time` and counts the calls that
// end with `code`. `method` is a path such as
// "/sfmamba.v1.VisionService/Classify".
Rate LoadOfCalls(const ServerChild& server, const std::string& method,
                 const std::string& message, absl::Duration time,
                 grpc::StatusCode code = grpc::StatusCode::OK);

// Loads a server over HTTP/1.1, with one connection per concurrent request.
// Counts the answers with status 200.
Rate LoadOfHttp(const ServerChild& server, const std::string& request,
                absl::Duration time);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_LOAD_H_
