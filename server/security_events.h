#ifndef SFMAMBA_SERVER_SECURITY_EVENTS_H_
#define SFMAMBA_SERVER_SECURITY_EVENTS_H_

#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/rpc/port/grpc_log.h"
#include "server/security/security.h"

namespace sfmamba::server {

// What is counted and logged of who may call and of TLS. `metrics` and `log`
// outlive what is returned.
security::Security::Events SecurityEvents(observability::Metrics* metrics,
                                          observability::Logger* log);
rpc::GrpcLog::Options GrpcLogEvents(observability::Metrics* metrics,
                                    observability::Logger* log);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SECURITY_EVENTS_H_
