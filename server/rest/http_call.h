#ifndef SFMAMBA_SERVER_REST_HTTP_CALL_H_
#define SFMAMBA_SERVER_REST_HTTP_CALL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/call/call.h"
#include "server/http/exchange.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rest {

// The field of a request that the path sets. Empty: none.
struct PathField {
  std::string name;
  std::string value;
};

// Makes a call over HTTP. docs/serving.md, "REST", says how requests and
// responses are written. The caller was admitted when the request's head had
// come: see access.h. `serving` is the error that requests are answered with,
// or OK. `memory` outlives the call.
std::unique_ptr<call::Call> MakeHttpCall(
    std::unique_ptr<http::Exchange> exchange, PathField field,
    absl::Status serving, server::MemoryBudget* memory);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_HTTP_CALL_H_
