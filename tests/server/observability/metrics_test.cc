#include "server/observability/metrics.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/server/observability/metric_values.h"

namespace sfmamba::observability {
namespace {

TEST(MetricsTest, RequestsAndItemsAreCounted) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "3");
  metrics.RequestStarted(Method::kClassify, 1000);
  EXPECT_EQ(Values(metrics)["sfmamba_in_flight_requests{method=Classify}"], 1);
  model->RequestDone(Method::kClassify, absl::StatusCode::kOk, "",
                     absl::Milliseconds(2));
  model->RequestDone(Method::kClassify, absl::StatusCode::kInvalidArgument,
                     "INVALID_FIELD", absl::Milliseconds(2));
  model->RequestDone(Method::kClassify, absl::StatusCode::kInvalidArgument,
                     "IMAGE_TOO_LARGE", absl::Milliseconds(2));
  metrics.UnknownModel().RequestDone(Method::kClassify,
                                     absl::StatusCode::kNotFound,
                                     "MODEL_NOT_FOUND", absl::ZeroDuration());
  metrics.RequestFinished(Method::kClassify);
  model->ItemDone(ItemOutcome::kOk);
  model->ItemDone(ItemOutcome::kOk);
  model->ItemFailed("DEVICE_OOM");
  model->ItemFailed("DEVICE_OOM");
  model->DeadlineMissed("queue");
  model->DeadlineMissed("queue");
  auto values = Values(metrics);
  const auto requests = [&values](const std::string& labels) {
    return values["sfmamba_requests_total{" + labels + "}"];
  };
  EXPECT_EQ(requests("code=OK,method=Classify,model=m,reason=,version=3"), 1);
  EXPECT_EQ(requests("code=INVALID_ARGUMENT,method=Classify,model=m,reason="
                     "INVALID_FIELD,version=3"),
            1);
  EXPECT_EQ(requests("code=NOT_FOUND,method=Classify,model=_unknown,reason="
                     "MODEL_NOT_FOUND,version="),
            1);
  EXPECT_EQ(values["sfmamba_items_total{model=m,outcome=ok,version=3}"], 2);
  EXPECT_EQ(values["sfmamba_item_errors_total{model=m,reason=DEVICE_OOM}"], 2);
  EXPECT_EQ(values["sfmamba_deadline_misses_total{model=m,stage=queue}"], 2);
  EXPECT_EQ(values["sfmamba_in_flight_requests{method=Classify}"], 0);
}

// Refusals are fast. They must not make the durations of answers look shorter.
TEST(MetricsTest, DurationsAreToldApartByCode) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "3");
  model->RequestDone(Method::kClassify, absl::StatusCode::kOk, "",
                     absl::Seconds(3));
  for (int i = 0; i < 9; ++i) {
    model->RequestDone(Method::kClassify, absl::StatusCode::kResourceExhausted,
                       "QUEUE_FULL", absl::Microseconds(20));
  }
  auto values = Values(metrics);
  const std::string name = "sfmamba_request_duration_seconds";
  EXPECT_EQ(values[name + "{code=OK,method=Classify,model=m}"], 1);
  EXPECT_EQ(values[name + "{code=RESOURCE_EXHAUSTED,method=Classify,model=m}"],
            9);
}

TEST(MetricsTest, RefusalsNameTheQueueThatWasFull) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "3");
  model->Rejected("QUEUE_FULL", "batch");
  model->Rejected("QUEUE_FULL", "batch");
  model->Rejected("QUEUE_FULL", "decode");
  model->Rejected("OTHER", "");
  auto values = Values(metrics);
  const std::string name = "sfmamba_admission_rejections_total{model=m,queue=";
  EXPECT_EQ(values[name + "batch,reason=QUEUE_FULL}"], 2);
  EXPECT_EQ(values[name + "decode,reason=QUEUE_FULL}"], 1);
  EXPECT_EQ(values[name + ",reason=OTHER}"], 1);
}

TEST(MetricsTest, StagesAreToldApartByHowTheImageEnded) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "3");
  const std::string name = "sfmamba_stage_duration_seconds{model=m,outcome=";
  EXPECT_EQ(Values(metrics).count(name + "ok,stage=queue}"), 0);
  model->StageDone(Stage::kQueue, ItemOutcome::kOk, absl::Seconds(1));
  model->StageDone(Stage::kQueue, ItemOutcome::kExpired, absl::Seconds(2));
  model->StageDone(Stage::kQueue, ItemOutcome::kExpired, absl::Seconds(2));
  auto values = Values(metrics);
  EXPECT_EQ(values[name + "ok,stage=queue}"], 1);
  EXPECT_EQ(values[name + "expired,stage=queue}"], 2);
}

TEST(MetricsTest, BatchesAreCountedByBucketAndTrigger) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "1");
  model->BatchRun("224x224", "full", 6, 8);
  model->BatchRun("224x224", "full", 8, 8);
  model->BatchRun("224x224", "delay", 1, 1);
  auto values = Values(metrics);
  EXPECT_EQ(values["sfmamba_batches_total{bucket=224x224,model=m,trigger=full,"
                   "version=1}"],
            2);
  EXPECT_EQ(values["sfmamba_batches_total{bucket=224x224,model=m,trigger=delay,"
                   "version=1}"],
            1);
  EXPECT_EQ(values["sfmamba_batch_items{model=m}"], 3);
  EXPECT_EQ(values["sfmamba_padding_items_total{model=m}"], 2);
}

TEST(MetricsTest, GraphsThatCouldNotBeRecordedAreCounted) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "1");
  const std::string name = "sfmamba_graph_capture_failures_total{model=m}";
  EXPECT_EQ(Values(metrics)[name], 0);
  model->CaptureFailed();
  model->CaptureFailed();
  EXPECT_EQ(Values(metrics)[name], 2);
}

// Returns the histogram of the family `name` that has observations. There must
// be only one.
prometheus::ClientMetric::Histogram HistogramOf(const Metrics& metrics,
                                                const std::string& name) {
  for (const prometheus::MetricFamily& family : metrics.Collect()) {
    if (family.name != name) continue;
    for (const prometheus::ClientMetric& metric : family.metric) {
      if (metric.histogram.sample_count > 0) return metric.histogram;
    }
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(MetricsTest, HistogramsHoldWhatWasObserved) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "1");
  metrics.RequestStarted(Method::kDetect, 1234);
  EXPECT_EQ(HistogramOf(metrics, "sfmamba_request_bytes").sample_sum, 1234);
  metrics.ImageDecoded("jpeg", 70'000);
  EXPECT_EQ(HistogramOf(metrics, "sfmamba_image_pixels").sample_sum, 70'000);
  model->BatchRun("8x8", "full", 6, 8);
  EXPECT_EQ(HistogramOf(metrics, "sfmamba_batch_items").sample_sum, 6);
  EXPECT_EQ(
      HistogramOf(metrics, "sfmamba_batch_fold_occupancy_ratio").sample_sum,
      0.75);
  model->StageDone(Stage::kQueue, ItemOutcome::kOk, absl::Milliseconds(1500));
  const auto stage = HistogramOf(metrics, "sfmamba_stage_duration_seconds");
  EXPECT_EQ(stage.sample_sum, 1.5);
  std::vector<double> bounds;
  for (const auto& bucket : stage.bucket) bounds.push_back(bucket.upper_bound);
  // The last bound is infinity.
  bounds.pop_back();
  EXPECT_EQ(bounds,
            (std::vector<double>{.0001, .00025, .0005, .001, .0025, .005, .01,
                                 .025,  .05,    .1,    .25,  .5,    1,    2.5,
                                 5,     10,     20,    30,   60,    120}));
}

TEST(MetricsTest, LoadsAndImagesThatFailAreToldApart) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "1");
  model->LoadDone(false, absl::Seconds(1));
  metrics.ImageFailed("png", "IMAGE_DECODE_FAILED");
  metrics.ImageFailed("png", "IMAGE_DECODE_FAILED");
  auto values = Values(metrics);
  EXPECT_EQ(values["sfmamba_model_load_duration_seconds{model=m,result=error,"
                   "version=1}"],
            1);
  EXPECT_EQ(values["sfmamba_image_decode_failures_total{format=png,reason="
                   "IMAGE_DECODE_FAILED}"],
            2);
}

TEST(MetricsTest, QueueGaugesAddUpOverVersions) {
  Metrics metrics(BuildInfo{});
  auto one = metrics.Model("m", "1");
  auto two = metrics.Model("m", "2");
  EXPECT_EQ(Values(metrics)["sfmamba_queue_oldest_age_seconds{model=m,priority="
                            "normal}"],
            0);
  using server::Priority;
  one->QueueChanged(Priority::kNormal, 3, 300,
                    base::SteadyNow() - absl::Seconds(7));
  two->QueueChanged(Priority::kNormal, 1, 100,
                    base::SteadyNow() - absl::Seconds(1));
  two->QueueChanged(Priority::kLow, 2, 50, base::SteadyNow());
  auto values = Values(metrics);
  EXPECT_EQ(values["sfmamba_queue_items{model=m,priority=normal}"], 4);
  EXPECT_EQ(values["sfmamba_queue_bytes{model=m,priority=normal}"], 400);
  EXPECT_EQ(values["sfmamba_queue_items{model=m,priority=low}"], 2);
  EXPECT_EQ(values["sfmamba_queue_bytes{model=m,priority=low}"], 50);
  EXPECT_EQ(values.count("sfmamba_queue_items{model=m,priority=high}"), 1u);
  EXPECT_EQ(values["sfmamba_queue_items{model=m,priority=high}"], 0);
  const double age =
      values["sfmamba_queue_oldest_age_seconds{model=m,priority=normal}"];
  EXPECT_GE(age, 7);
  EXPECT_LT(age, 3600);
}

TEST(MetricsTest, ABacklogIsThatOfAllVersions) {
  Metrics metrics(BuildInfo{});
  auto one = metrics.Model("m", "1");
  auto two = metrics.Model("m", "2");
  const std::string name = "sfmamba_backlog_seconds{model=m}";
  EXPECT_EQ(Values(metrics)[name], 0);
  one->BacklogIs(absl::Milliseconds(250));
  two->BacklogIs(absl::Milliseconds(500));
  EXPECT_EQ(Values(metrics)[name], 0.75);
  one.reset();
  EXPECT_EQ(Values(metrics)[name], 0.5);
}

TEST(MetricsTest, TurnsAreCounted) {
  Metrics metrics(BuildInfo{});
  auto one = metrics.Model("m", "1");
  auto two = metrics.Model("m", "2");
  one->ActiveClientsAre(3);
  // The metric shows the larger count of the two versions.
  two->ActiveClientsAre(2);
  one->TurnsPassed(0);
  one->TurnsPassed(5);
  EXPECT_EQ(Values(metrics)["sfmamba_active_clients{model=m}"], 3);
  const auto turns = HistogramOf(metrics, "sfmamba_turns_passed");
  EXPECT_EQ(turns.sample_sum, 5);
  EXPECT_EQ(turns.sample_count, 2);
}

TEST(MetricsTest, APredictedWaitIsTheLongestOfAModelsVersionsOnceKnown) {
  Metrics metrics(BuildInfo{});
  auto one = metrics.Model("m", "1");
  auto two = metrics.Model("m", "2");
  const std::string name = "sfmamba_predicted_wait_seconds{model=m}";
  EXPECT_EQ(Values(metrics).count(name), 0);
  one->PredictedWait(absl::Milliseconds(250));
  two->PredictedWait(absl::ZeroDuration());
  EXPECT_EQ(Values(metrics)[name], 0.25);
  one.reset();
  EXPECT_EQ(Values(metrics)[name], 0);
  EXPECT_EQ(Values(metrics).count(name), 1);
}

TEST(MetricsTest, PredictionsAreComparedWithWhatWasMeasured) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "1");
  const std::string name = "sfmamba_cost_model_error_ratio";
  EXPECT_EQ(Values(metrics).count(name + "{model=m}"), 0);
  model->BatchPredicted(absl::Seconds(1), absl::ZeroDuration());
  EXPECT_EQ(Values(metrics).count(name + "{model=m}"), 0);
  model->BatchPredicted(absl::Seconds(3), absl::Seconds(2));
  EXPECT_EQ(HistogramOf(metrics, name).sample_sum, 1.5);
  model.reset();
  EXPECT_EQ(Values(metrics).count(name + "{model=m}"), 0);
}

TEST(MetricsTest, ADeviceHasASeriesWhileSomeoneUsesIt) {
  Metrics metrics(BuildInfo{});
  const std::string name = "sfmamba_device_busy_ratio{device=gpu0}";
  EXPECT_EQ(Values(metrics).count(name), 0);
  auto device = metrics.Device("gpu0");
  EXPECT_EQ(device, metrics.Device("gpu0"));
  EXPECT_NE(device, metrics.Device("gpu1"));
  EXPECT_EQ(Values(metrics)[name], 0);
  EXPECT_EQ(Values(metrics).count(name), 1);
  device->BatchStarted();
  EXPECT_GT(Values(metrics)[name], 0);
  device->BatchEnded();
  EXPECT_GT(Values(metrics)[name], 0);
  device.reset();
  EXPECT_EQ(Values(metrics).count(name), 0);
}

TEST(MetricsTest, OneStateIsOne) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "1");
  model->StateChanged(ModelState::kLoading);
  model->StateChanged(ModelState::kReady);
  auto values = Values(metrics);
  EXPECT_EQ(values["sfmamba_model_state{model=m,state=LOADING,version=1}"], 0);
  EXPECT_EQ(values["sfmamba_model_state{model=m,state=READY,version=1}"], 1);
}

TEST(MetricsTest, AModelIsAliveOrNotOnceItIsKnown) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "1");
  const std::string name = "sfmamba_model_alive{model=m,version=1}";
  EXPECT_EQ(Values(metrics).count(name), 0);
  model->AliveIs(true);
  EXPECT_EQ(Values(metrics)[name], 1);
  model->AliveIs(false);
  EXPECT_EQ(Values(metrics)[name], 0);
  model.reset();
  EXPECT_EQ(Values(metrics).count(name), 0);
}

TEST(MetricsTest, SeriesGoWithTheLastOwnerAndSiblingsStay) {
  Metrics metrics(BuildInfo{});
  const size_t before = Values(metrics).size();
  auto two = metrics.Model("m", "2");
  {
    auto one = metrics.Model("m", "1");
    EXPECT_EQ(one, metrics.Model("m", "1"));
    one->StageDone(Stage::kDecode, ItemOutcome::kOk, absl::Milliseconds(1));
    one->StateChanged(ModelState::kReady);
    one->LoadDone(true, absl::Seconds(1));
    one->RequestDone(Method::kClassify, absl::StatusCode::kOk, "",
                     absl::Milliseconds(1));
    one->BatchRun("8x8", "delay", 1, 1);
    one->Rejected("QUEUE_FULL", "batch");
    one->ItemFailed("DEVICE_OOM");
    one->DeadlineMissed("queue");
  }
  auto values = Values(metrics);
  EXPECT_EQ(values.count("sfmamba_items_total{model=m,outcome=ok,version=1}"),
            0);
  EXPECT_EQ(values.count("sfmamba_items_total{model=m,outcome=ok,version=2}"),
            1);
  EXPECT_EQ(
      values["sfmamba_stage_duration_seconds{model=m,outcome=ok,stage=decode}"],
      1);
  two.reset();
  EXPECT_EQ(Values(metrics).size(), before);
}

TEST(MetricsTest, DecodePoolGauges) {
  Metrics metrics(BuildInfo{});
  metrics.DecodeQueued();
  metrics.DecodeQueued();
  metrics.DecodeStarted();
  auto values = Values(metrics);
  EXPECT_EQ(values["sfmamba_decode_queue_items{}"], 1);
  EXPECT_EQ(values["sfmamba_decode_threads_busy{}"], 1);
  metrics.DecodeDone();
  EXPECT_EQ(Values(metrics)["sfmamba_decode_threads_busy{}"], 0);
}

TEST(MetricsTest, RequestsInFlightWaitOrRun) {
  Metrics metrics(BuildInfo{});
  const auto model = metrics.Model("m", "1");
  const auto expect = [&metrics](double waiting, double running) {
    auto values = Values(metrics);
    EXPECT_EQ(values["sfmamba_num_requests_waiting{}"], waiting);
    EXPECT_EQ(values["sfmamba_num_requests_running{}"], running);
  };
  expect(0, 0);
  for (int i = 0; i < 5; ++i) metrics.RequestStarted(Method::kClassify, 1);
  metrics.RequestStarted(Method::kModelInfer, 1);
  // ListModels is no prediction, so the metrics do not count this request.
  metrics.RequestStarted(Method::kListModels, 1);
  expect(0, 6);
  metrics.DecodeQueued();
  model->QueueChanged(server::Priority::kHigh, 2, 1, absl::UnixEpoch());
  expect(3, 3);
  // Now 23 images wait, because a request may have several images. The metric
  // never exceeds the number of requests in flight, which is 6.
  model->QueueChanged(server::Priority::kLow, 20, 1, absl::UnixEpoch());
  expect(6, 0);
}

TEST(MetricsTest, WhatHasNotHappenedIsZero) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "1");
  auto values = Values(metrics);
  const auto expect = [&values](const std::string& series) {
    EXPECT_EQ(values.count(series), 1) << series;
    EXPECT_EQ(values[series], 0) << series;
  };
  for (int i = 0; i < kMethodCount; ++i) {
    const auto method = MethodName(static_cast<Method>(i));
    expect(absl::StrCat("sfmamba_in_flight_requests{method=", method, "}"));
    expect(absl::StrCat("sfmamba_request_bytes{method=", method, "}"));
  }
  for (int i = 0; i < kItemOutcomeCount; ++i) {
    expect(absl::StrCat("sfmamba_items_total{model=m,outcome=",
                        ItemOutcomeName(static_cast<ItemOutcome>(i)),
                        ",version=1}"));
  }
  for (const char* series :
       {"decode_threads_busy{}", "decode_queue_items{}",
        "log_lines_dropped_total{}", "trace_spans_exported_total{}",
        "trace_spans_dropped_total{}", "tls_handshake_failures_total{}",
        "malformed_forwarded_for_total{}",
        "connections_refused_total{port=grpc}",
        "connections_refused_total{port=http}"}) {
    expect(absl::StrCat("sfmamba_", series));
  }
}

TEST(MetricsTest, WhatBefallsTheServerIsCounted) {
  Metrics metrics(BuildInfo{});
  for (int i = 0; i < 2; ++i) {
    metrics.LogLinesDropped(3);
    metrics.SpansExported(4);
    metrics.SpansDropped(5);
    metrics.GrpcConnectionRefused();
    metrics.CallRefused("TOKEN_INVALID");
    metrics.TlsHandshakeFailed();
    metrics.ForwardMalformed();
    metrics.FilesReloaded("tokens", /*taken=*/true);
    metrics.CertificateExpires(absl::FromUnixSeconds(7 + i));
  }
  metrics.HttpConnectionRefused();
  metrics.FilesReloaded("tokens", /*taken=*/false);
  metrics.Model("m", "1")->ReloadDone(true);
  auto values = Values(metrics);
  for (const auto& [series, value] : std::map<std::string, double>{
           {"log_lines_dropped_total{}", 6},
           {"trace_spans_exported_total{}", 8},
           {"trace_spans_dropped_total{}", 10},
           {"connections_refused_total{port=grpc}", 2},
           {"connections_refused_total{port=http}", 1},
           {"unauthorized_total{reason=TOKEN_INVALID}", 2},
           {"tls_handshake_failures_total{}", 2},
           {"malformed_forwarded_for_total{}", 2},
           {"security_reloads_total{files=tokens,outcome=taken}", 2},
           {"security_reloads_total{files=tokens,outcome=kept_old}", 1},
           {"tls_certificate_expiry_timestamp_seconds{}", 8}}) {
    EXPECT_EQ(values["sfmamba_" + series], value) << series;
  }
}

TEST(MetricsTest, ADenseModelsManyBucketsAreCountedTogether) {
  Metrics metrics(BuildInfo{});
  auto model = metrics.Model("m", "1");
  for (int i = 0; i < 400; ++i) {
    model->BatchRun(absl::StrCat("512x", i % 200), "full", 1, 1);
  }
  int series = 0;
  double batches = 0;
  for (const auto& [key, value] : Values(metrics)) {
    if (key.find("sfmamba_batches_total{") != 0) continue;
    ++series;
    batches += value;
  }
  EXPECT_EQ(series, 65);
  EXPECT_EQ(batches, 400);
  auto values = Values(metrics);
  EXPECT_EQ(values["sfmamba_batches_total{bucket=512x0,model=m,trigger=full,"
                   "version=1}"],
            2);
  EXPECT_EQ(values["sfmamba_batches_total{bucket=other,model=m,trigger=full,"
                   "version=1}"],
            2 * 136);
}

}  // namespace
}  // namespace sfmamba::observability
