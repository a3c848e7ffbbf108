#ifndef SFMAMBA_SERVER_RPC_REFLECTION_REFLECTION_SERVICE_H_
#define SFMAMBA_SERVER_RPC_REFLECTION_REFLECTION_SERVICE_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/security/gate.h"

namespace sfmamba::rpc {

// What a request for reflection is answered with: of the files that the program
// was built with, or the names `services`. What is not there is an
// error_response with gRPC's code NOT_FOUND.
grpc::reflection::v1alpha::ServerReflectionResponse Reflect(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request,
    const std::vector<std::string>& services);

// Implements grpc.reflection.v1alpha.ServerReflection, for callers that may
// read. gRPC's own implementation has no place for a guard.
//
// A stream ends with UNAUTHENTICATED or PERMISSION_DENIED as soon as its caller
// may not read, which is asked for each request before that is parsed;
// INVALID_ARGUMENT for a message that is none or larger than kMostRequestBytes,
// as each is sent back with its answer; UNAVAILABLE once the server stops. Of
// streams beyond kMostStreams, or kMostOfClient of one client, each is refused
// with RESOURCE_EXHAUSTED.
// Thread-safe.
class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::
          WithRawCallbackMethod_ServerReflectionInfo<
              grpc::reflection::v1alpha::ServerReflection::Service> {
 public:
  static constexpr size_t kMostStreams = 64;
  static constexpr size_t kMostOfClient = 48;
  static constexpr size_t kMostRequestBytes = 16 << 10;

  // `gate` outlives the service.
  ReflectionService(const security::Gate* gate,
                    std::vector<std::string> services);

  // Ends all streams. New ones end at once.
  void EndStreams() ABSL_LOCKS_EXCLUDED(mu_);

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
  ServerReflectionInfo(grpc::CallbackServerContext* context) override;

 private:
  class Stream;

  const security::Gate& gate_;
  const std::vector<std::string> services_;
  absl::Mutex mu_;
  std::set<Stream*> streams_ ABSL_GUARDED_BY(mu_);  // Each deletes itself.
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_REFLECTION_REFLECTION_SERVICE_H_
