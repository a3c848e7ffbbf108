#ifndef SFMAMBA_SERVER_RPC_LOAD_REPORTS_H_
#define SFMAMBA_SERVER_RPC_LOAD_REPORTS_H_

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/observability/load_meter.h"

namespace sfmamba::rpc {

// The trailer that contains a load report. The load-balancing policies
// weighted_round_robin (gRPC) and client_side_weighted_round_robin (Envoy) read
// this trailer.
inline constexpr char kLoadReportTrailer[] = "endpoint-load-metrics-bin";

// Returns `load` as a serialized xds.data.orca.v3.OrcaLoadReport. The fields
// are encoded by hand, because gRPC 1.51 has no public API to set them. Source:
// "Custom Backend Metrics Support", gRPC proposal A51.
std::string SerializeLoadReport(const observability::Load& load);

// Counts finished calls and creates the load report of each call. Thread-safe.
class LoadReports {
 public:
  // If the backlog has this duration, the utilization is 1. The backlog is the
  // expected time until the waiting images are computed. If the server has
  // several models, the longest backlog counts.
  static constexpr absl::Duration kTargetBacklog = absl::Milliseconds(500);

  // The minimum time between two calls of the function `backlog`.
  static constexpr absl::Duration kPeriod = absl::Milliseconds(10);

  // `backlog` returns the longest backlog of all models. `clock` must be
  // thread-safe.
  LoadReports(std::function<absl::Duration()> backlog,
              std::function<absl::Time()> clock);

  // Counts a call that ends now with `status`. Returns the load report that the
  // server sends with this call. If `status` is an error that the caller
  // caused, for example INVALID_ARGUMENT, the call is not counted at all. The
  // returned report is then the report of the last counted call, or an empty
  // string if there is none.
  std::string CallEnded(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::function<absl::Duration()> backlog_;  // Called with mu_ held.
  const std::function<absl::Time()> clock_;

  absl::Mutex mu_;
  absl::Time asked_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Duration last_backlog_ ABSL_GUARDED_BY(mu_);
  observability::LoadMeter meter_ ABSL_GUARDED_BY(mu_);
  std::string last_ ABSL_GUARDED_BY(mu_);  // The most recent report.
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_LOAD_REPORTS_H_
