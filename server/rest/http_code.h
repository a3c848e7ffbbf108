#ifndef SFMAMBA_SERVER_REST_HTTP_CODE_H_
#define SFMAMBA_SERVER_REST_HTTP_CODE_H_

#include "absl/status/status.h"

namespace sfmamba::rest {

// The HTTP status that says the same as a canonical code, by the mapping that
// google.rpc.Code documents: 400 for INVALID_ARGUMENT, 429 for
// RESOURCE_EXHAUSTED, 499 for CANCELLED.
int HttpCode(absl::StatusCode code);

// The canonical code nearest to an HTTP status of an error.
absl::StatusCode CanonicalCode(int http_code);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_HTTP_CODE_H_
