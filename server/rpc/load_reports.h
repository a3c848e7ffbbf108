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

// The trailer of a load report. gRPC's weighted_round_robin and Envoy's
// client_side_weighted_round_robin read it.
inline constexpr char kLoadReportTrailer[] = "endpoint-load-metrics-bin";

// `load` as a serialized xds.data.orca.v3.OrcaLoadReport. gRPC 1.51 has no
// public recorder of these fields.
// Source: "Custom Backend Metrics Support", gRPC proposal A51.
std::string SerializeLoadReport(const observability::Load& load);

// Counts calls as they end and says what each reports. Thread-safe.
class LoadReports {
 public:
  // The backlog that a utilization of 1 stands for.
  static constexpr absl::Duration kTargetBacklog = absl::Milliseconds(500);

  // How often the backlog is asked for.
  static constexpr absl::Duration kPeriod = absl::Milliseconds(10);

  // `backlog` returns how long what waits now will take. `clock` is
  // thread-safe.
  LoadReports(std::function<absl::Duration()> backlog,
              std::function<absl::Time()> clock);

  // A call ends with `status` now. Returns its report. An error that is the
  // caller's fault is not counted.
  std::string CallEnded(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::function<absl::Duration()> backlog_;  // With mu_ held.
  const std::function<absl::Time()> clock_;

  absl::Mutex mu_;
  absl::Time asked_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Duration last_backlog_ ABSL_GUARDED_BY(mu_);
  observability::LoadMeter meter_ ABSL_GUARDED_BY(mu_);
  std::string last_ ABSL_GUARDED_BY(mu_);  // The last report.
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_LOAD_REPORTS_H_
