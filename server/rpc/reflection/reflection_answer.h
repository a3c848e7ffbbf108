#ifndef SFMAMBA_SERVER_RPC_REFLECTION_REFLECTION_ANSWER_H_
#define SFMAMBA_SERVER_RPC_REFLECTION_REFLECTION_ANSWER_H_

#include <string>
#include <vector>

#include "grpc/reflection/v1alpha/reflection.pb.h"

namespace sfmamba::rpc {

// What a request for reflection is answered with: of the files that the program
// was built with, or the names `services`. What is not there is an
// error_response with gRPC's code NOT_FOUND.
grpc::reflection::v1alpha::ServerReflectionResponse Reflect(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request,
    const std::vector<std::string>& services);

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_REFLECTION_REFLECTION_ANSWER_H_
