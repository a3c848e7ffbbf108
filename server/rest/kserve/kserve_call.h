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
  // Most bytes of elements that JSON may stand for.
  int64_t max_raw_bytes = 64 << 20;
  // Most bytes of tensors in an answer that comes as JSON. A MiB of a class map
  // takes about 5 ms to write and becomes up to 4 MiB of text.
  int64_t max_json_answer_bytes = 16 << 20;
};

// Makes a call of the Open Inference Protocol, version 2, with the extension
// for binary data. docs/clients.md says how its clients ask. See
// MakeTypedCall().
std::unique_ptr<call::Call> MakeKserveCall(
    std::unique_ptr<http::Exchange> exchange, PathFields fields,
    absl::Status serving, const KserveLimits& limits,
    server::MemoryBudget* memory);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_KSERVE_CALL_H_
