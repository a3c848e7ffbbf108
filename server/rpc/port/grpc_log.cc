#include "server/rpc/port/grpc_log.h"

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "grpc/support/log.h"

namespace sfmamba::rpc {
namespace {

// gRPC's hook is a function without a context, so this one object has no owner.
ABSL_CONST_INIT absl::Mutex current_mu(absl::kConstInit);
const GrpcLog::Options* current ABSL_GUARDED_BY(current_mu) = nullptr;

void Log(gpr_log_func_args* args) {
  if (args->severity != GPR_LOG_SEVERITY_ERROR) return;
  const absl::string_view text = args->message;
  if (absl::StartsWith(text, "assertion failed")) {
    std::fprintf(stderr, "gRPC: %s\n", args->message);  // It aborts next.
  }
  absl::ReaderMutexLock lock(&current_mu);
  if (current == nullptr) return;
  if (absl::StartsWith(text, "Handshake failed")) {
    current->handshake_failed(text);
  } else {
    current->error(text);
  }
}

}  // namespace

GrpcLog::GrpcLog(Options options) {
  {
    absl::MutexLock lock(&current_mu);
    delete current;
    current = new Options(std::move(options));
  }
  gpr_set_log_function(Log);
}

GrpcLog::~GrpcLog() {
  gpr_set_log_function(nullptr);
  absl::MutexLock lock(&current_mu);
  delete current;
  current = nullptr;
}

}  // namespace sfmamba::rpc
