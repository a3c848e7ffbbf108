#ifndef SFMAMBA_SERVER_MAKE_TRACER_H_
#define SFMAMBA_SERVER_MAKE_TRACER_H_

#include <memory>
#include <string>

#include "server/observability/log.h"
#include "server/tracing/tracer.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {

// The tracer that `config`, which is valid, asks for. `version` is the
// server's. What goes wrong with the file or the collector is logged, once
// until it is mended. `log` outlives the tracer.
std::unique_ptr<tracing::Tracer> MakeTracer(const v1::ServerConfig& config,
                                            const std::string& version,
                                            observability::Logger* log);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_MAKE_TRACER_H_
