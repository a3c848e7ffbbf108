#ifndef SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
#define SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::observability {

// The trace id, 32 hexadecimal digits, of a W3C `traceparent` value
// ("00-<trace id>-<parent id>-<flags>"); empty if the value is not one or an id
// is all zeros.
std::string TraceIdOf(absl::string_view traceparent);

// A new random trace id.
std::string NewTraceId();

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_TRACE_CONTEXT_H_
