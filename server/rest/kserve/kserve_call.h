#ifndef SFMAMBA_SERVER_REST_KSERVE_KSERVE_CALL_H_
#define SFMAMBA_SERVER_REST_KSERVE_KSERVE_CALL_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "server/call/call.h"
#include "server/http/exchange.h"
#include "server/rest/method_paths.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rest {

struct KserveLimits {
  // The maximum size in bytes of the elements in a JSON request, after
  // decoding.
  int64_t max_raw_bytes = 64 << 20;
  // The maximum size in bytes of the tensors in a JSON response, before
  // formatting. Formatting 1 MiB of a class map takes about 5 ms and produces
  // up to 4 MiB of text.
  int64_t max_json_answer_bytes = 16 << 20;
};

// Returns a call of the Open Inference Protocol, version 2, with the binary
// data extension. See docs/clients.md for clients, and MakeTypedCall() for the
// arguments.
std::unique_ptr<call::Call> MakeKserveCall(
    std::unique_ptr<http::Exchange> exchange, PathFields fields,
    absl::Status serving, const KserveLimits& limits,
    server::MemoryBudget* memory);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_KSERVE_CALL_H_
