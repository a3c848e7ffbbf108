#ifndef SFMAMBA_SERVER_REST_KSERVE_JSON_SCALAR_H_
#define SFMAMBA_SERVER_REST_KSERVE_JSON_SCALAR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "inference/grpc_service.pb.h"

namespace sfmamba::rest {

// A value in JSON that is no object and no array. An integer is a uint64_t only
// if int64_t does not have it. The string outlives it.
using Scalar =
    std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string*>;

// What it is, for errors: "a boolean".
const char* NameOf(const Scalar& value);

// Fills `parameter`; a string is moved. False if the value is null.
bool ToParameter(const Scalar& value, inference::InferParameter* parameter);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_JSON_SCALAR_H_
