#include "server/security_events.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace sfmamba::server {

using observability::LogModule;

security::Security::Events SecurityEvents(observability::Metrics* metrics,
                                          observability::Logger* log) {
  security::Security::Events events;
  events.refused = [metrics](absl::string_view reason) {
    metrics->CallRefused(reason);
  };
  events.reloaded = [metrics, log](absl::string_view what,
                                   const absl::Status& status) {
    metrics->FilesReloaded(what, status.ok());
    if (status.ok()) {
      log->Info(LogModule::kServer, "changed files are used",
                {{"files", what}});
    } else {
      log->Error(LogModule::kServer,
                 "changed files cannot be used: those from before are",
                 {{"files", what}, {"error", status.message()}});
    }
  };
  events.certificate_expires = [metrics, log](absl::Time time) {
    metrics->CertificateExpires(time);
    if (time > absl::Now()) return;
    log->Error(LogModule::kServer,
               "the certificate has expired: clients refuse it",
               {{"setting", "tls_cert_file"},
                {"expired", absl::FormatTime(time, absl::UTCTimeZone())}});
  };
  return events;
}

rpc::GrpcLog::Options GrpcLogEvents(observability::Metrics* metrics,
                                    observability::Logger* log) {
  rpc::GrpcLog::Options options;
  // Whoever can connect can cause both as often as he likes.
  options.error = [log](absl::string_view text) {
    log->Debug(LogModule::kServer, "gRPC has met an error", {{"error", text}});
  };
  options.handshake_failed = [metrics, log](absl::string_view text) {
    metrics->TlsHandshakeFailed();
    log->Debug(LogModule::kServer, "a TLS handshake has failed",
               {{"error", text}});
  };
  return options;
}

}  // namespace sfmamba::server
