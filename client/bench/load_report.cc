#include "client/bench/load_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "client/rpc/rpc_status.h"

namespace sfmamba::client {
namespace {

std::string CodeOf(const absl::Status& status) {
  const std::string code = absl::StatusCodeToString(status.code());
  if (status.ok()) return code;
  const std::string reason = GetRpcErrorDetails(status).reason;
  return reason.empty() ? code : absl::StrCat(code, " (", reason, ")");
}

}  // namespace

void RequestCounts::Add(const RequestCounts& other) {
  requests += other.requests;
  over_cap += other.over_cap;
  missed += other.missed;
  sent += other.sent;
  in_time += other.in_time;
  late += other.late;
  failed += other.failed;
  for (const auto& [code, count] : other.codes) codes[code] += count;
  latency.Add(other.latency);
  latency_from_sending.Add(other.latency_from_sending);
}

LoadTally::LoadTally(const std::vector<std::string>& class_names,
                     absl::Duration measured_from,
                     absl::Duration measured_until)
    : measured_from_(measured_from),
      measured_until_(measured_until),
      last_answer_(measured_from) {
  for (const std::string& name : class_names) {
    classes_.emplace_back().class_name = name;
  }
}

void LoadTally::CountSent(const SentRequest& request) {
  const bool ok = request.status.ok();
  const bool in_time = ok && request.received - request.due <= request.deadline;
  if (request.received >= measured_from_ &&
      request.received < measured_until_) {
    last_answer_ = std::max(last_answer_, request.received);
    in_time_ += in_time;
    report_.images += request.images;
  }
  RequestCounts& counts = CountsOf(request.class_index, request.due);
  ++counts.sent;
  ++counts.codes[CodeOf(request.status)];
  ++(in_time ? counts.in_time : ok ? counts.late : counts.failed);
  if (in_time) {
    counts.latency.Record(request.received - request.due);
    counts.latency_from_sending.Record(request.received - request.sent);
  }
  if (request.due < measured_from_) return;
  report_.delay.Record(request.sent - request.due);
  if (request.timing != nullptr) AddTiming(*request.timing, request.images);
}

void LoadTally::CountOverCap(int class_index, absl::Duration due) {
  ++CountsOf(class_index, due).over_cap;
}

void LoadTally::CountMissed(int class_index, absl::Duration due) {
  ++CountsOf(class_index, due).missed;
}

void LoadTally::CountInFlight(int64_t in_flight) {
  report_.peak_in_flight = std::max(report_.peak_in_flight, in_flight);
}

LoadReport LoadTally::Report(bool until_last_answer) const {
  LoadReport report = report_;
  for (const RequestCounts& counts : classes_) report.all.Add(counts);
  if (classes_.size() > 1) report.classes = classes_;
  report.elapsed =
      (until_last_answer ? last_answer_ : measured_until_) - measured_from_;
  if (report.elapsed > absl::ZeroDuration()) {
    const double seconds = absl::ToDoubleSeconds(report.elapsed);
    report.images_per_second = report.images / seconds;
    report.goodput = in_time_ / seconds;
  }
  if (batches_ > 0) report.mean_batch_size = batched_images_ / batches_;
  for (absl::Duration* stage :
       {&report.stages.decode, &report.stages.preprocess, &report.stages.queue,
        &report.stages.inference, &report.stages.postprocess,
        &report.stages.total}) {
    *stage /= std::max<int64_t>(1, timings_);
  }
  return report;
}

void LoadTally::AddTiming(const v1::Timing& timing, int images) {
  StageMeans& stages = report_.stages;
  stages.decode += base::FromProto(timing.decode());
  stages.preprocess += base::FromProto(timing.preprocess());
  stages.queue += base::FromProto(timing.queue());
  stages.inference += base::FromProto(timing.inference());
  stages.postprocess += base::FromProto(timing.postprocess());
  stages.total += base::FromProto(timing.total());
  ++timings_;
  if (timing.batch_size() > 0) {
    batched_images_ += images;
    batches_ += static_cast<double>(images) / timing.batch_size();
  }
}

RequestCounts& LoadTally::CountsOf(int class_index, absl::Duration due) {
  RequestCounts& counts =
      due < measured_from_ ? warmup_ : classes_[class_index];
  ++counts.requests;
  return counts;
}

}  // namespace sfmamba::client
