#include "client/commands/bench/bench_output.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "client/commands/output/text_table.h"

namespace sfmamba::client {
namespace {

// Name and value of each figure, in the order in which they are shown.
using DurationFigures = std::vector<std::pair<const char*, absl::Duration>>;

DurationFigures LatencyFigures(const LatencyHistogram& latency) {
  return {{"mean", latency.Mean()},        {"p50", latency.Percentile(50)},
          {"p90", latency.Percentile(90)}, {"p95", latency.Percentile(95)},
          {"p99", latency.Percentile(99)}, {"p99.9", latency.Percentile(99.9)},
          {"max", latency.Max()}};
}

DurationFigures StageFigures(const StageMeans& stages) {
  return {{"decode", stages.decode},
          {"preprocess", stages.preprocess},
          {"queue", stages.queue},
          {"inference", stages.inference},
          {"postprocess", stages.postprocess},
          {"total", stages.total}};
}

std::string FiguresLine(const char* name, const DurationFigures& figures) {
  std::string text = absl::StrFormat("%-12s", name);
  for (const auto& [figure, value] : figures) {
    absl::StrAppend(&text, " ", figure, " ", FormatMilliseconds(value), " ");
  }
  text.back() = '\n';
  return text;
}

// Returns a line with the count. Returns "" if the count is 0.
std::string CountLine(const char* name, int64_t count, absl::string_view what) {
  return count == 0 ? ""
                    : absl::StrFormat("%-12s %8d  %s\n", name, count, what);
}

std::string Loop(const BenchFlags& flags) {
  if (!flags.trace.empty()) {
    return absl::StrFormat("trace %s at %gx", flags.trace, flags.speed);
  }
  if (flags.arrivals.rate == 0) {
    return absl::StrFormat("closed loop, %d in flight", flags.concurrency);
  }
  const std::string text =
      absl::StrFormat("open loop at %g requests/s", flags.arrivals.rate);
  return flags.arrivals.burst_factor == 1
             ? text
             : absl::StrFormat(
                   "%s, bursts of %g times that every %s", text,
                   flags.arrivals.burst_factor,
                   absl::FormatDuration(flags.arrivals.burst_period));
}

double PercentInTime(const RequestCounts& counts) {
  return 100.0 * counts.in_time / std::max<int64_t>(1, counts.requests);
}

std::string ClassTable(const std::vector<RequestCounts>& classes) {
  TextTable table({"class", ">requests", ">in time", ">%", ">late", ">failed",
                   ">not sent", ">p50 ms", ">p99 ms", ">p99.9 ms"});
  const auto milliseconds = [](absl::Duration duration) {
    return absl::StrFormat("%.2f", absl::ToDoubleMilliseconds(duration));
  };
  for (const RequestCounts& counts : classes) {
    table.AddRow({counts.class_name, absl::StrCat(counts.requests),
                  absl::StrCat(counts.in_time),
                  absl::StrFormat("%.1f", PercentInTime(counts)),
                  absl::StrCat(counts.late), absl::StrCat(counts.failed),
                  absl::StrCat(counts.over_cap + counts.missed),
                  milliseconds(counts.latency.Percentile(50)),
                  milliseconds(counts.latency.Percentile(99)),
                  milliseconds(counts.latency.Percentile(99.9))});
  }
  return table.ToString();
}

void WriteFigures(const DurationFigures& figures, JsonWriter* json) {
  json->BeginObject();
  for (const auto& [name, value] : figures) {
    json->Key(name).Number(absl::ToDoubleMilliseconds(value));
  }
  json->EndObject();
}

// Writes the counts as members of a JSON object.
void WriteCounts(const RequestCounts& counts, JsonWriter* json) {
  json->Key("requests").Integer(counts.requests);
  json->Key("sent").Integer(counts.sent);
  json->Key("not_sent").BeginObject();
  json->Key("over_max_in_flight").Integer(counts.over_cap);
  json->Key("past_deadline").Integer(counts.missed);
  json->EndObject();
  json->Key("in_time").Integer(counts.in_time);
  json->Key("late").Integer(counts.late);
  json->Key("failed").Integer(counts.failed);
  json->Key("codes").BeginObject();
  for (const auto& [code, count] : counts.codes) {
    json->Key(code).Integer(count);
  }
  json->EndObject();
  json->Key("latency_ms");
  WriteFigures(LatencyFigures(counts.latency), json);
  json->Key("latency_from_sending_ms");
  WriteFigures(LatencyFigures(counts.latency_from_sending), json);
}

// Writes the flags as members of a JSON object.
void WriteSetting(const BenchFlags& flags, JsonWriter* json) {
  json->Key("server").String(flags.common.server);
  json->Key("deadline_ms")
      .Number(absl::ToDoubleMilliseconds(flags.common.deadline));
  json->Key("loop").String(flags.open_loop() ? "open" : "closed");
  json->Key("threads").Integer(flags.threads);
  json->Key("channels").Integer(flags.channels);
  json->Key("warmup_s").Number(absl::ToDoubleSeconds(flags.warmup));
  json->Key("seed").Integer(flags.seed);
  if (flags.open_loop()) {
    json->Key("max_in_flight").Integer(flags.max_in_flight);
  } else {
    json->Key("concurrency").Integer(flags.concurrency);
  }
  if (!flags.trace.empty()) {
    json->Key("trace").String(flags.trace);
    json->Key("speed").Number(flags.speed);
    return;
  }
  json->Key("rate").Number(flags.arrivals.rate);
  json->Key("burst_factor").Number(flags.arrivals.burst_factor);
  json->Key("burst_period_s")
      .Number(absl::ToDoubleSeconds(flags.arrivals.burst_period));
  json->Key("method").String(flags.method);
  json->Key("model").String(flags.model);
  json->Key("priority").String(flags.priority);
  json->Key("input").String(flags.tensor.empty() ? "encoded" : flags.tensor);
  json->Key("images_per_request").Integer(flags.images);
}

}  // namespace

std::string BenchText(const LoadReport& report, const BenchFlags& flags) {
  const RequestCounts& all = report.all;
  std::string text = absl::StrFormat(
      "%s, %d thread(s), %d channel(s), measured for %s after %s of warm-up\n",
      Loop(flags), flags.threads, flags.channels,
      absl::FormatDuration(report.elapsed), absl::FormatDuration(flags.warmup));
  absl::StrAppendFormat(&text,
                        "goodput      %.1f requests/s in time: %.1f %% of %d\n",
                        report.goodput, PercentInTime(all), all.requests);
  absl::StrAppendFormat(&text, "throughput   %.1f images/s\n",
                        report.images_per_second);
  text += FiguresLine("latency", LatencyFigures(all.latency));
  if (flags.open_loop()) {
    text +=
        FiguresLine("from sending", LatencyFigures(all.latency_from_sending));
    text += FiguresLine("sent behind", LatencyFigures(report.delay));
    absl::StrAppendFormat(&text, "in flight    %d at most\n",
                          report.peak_in_flight);
  }
  absl::StrAppendFormat(&text, "batch size   %.2f mean\n",
                        report.mean_batch_size);
  text += FiguresLine("stage means", StageFigures(report.stages));
  for (const auto& [code, count] : all.codes) {
    text += CountLine("answers", count, code);
  }
  text += CountLine("late", all.late, "OK, but after the deadline");
  text += CountLine("not sent", all.over_cap, "--max_in_flight was reached");
  text += CountLine("not sent", all.missed, "the deadline had passed");
  if (!report.classes.empty()) {
    absl::StrAppend(&text, "\n", ClassTable(report.classes));
  }
  return text;
}

std::string BenchJson(const LoadReport& report, const BenchFlags& flags) {
  JsonWriter json;
  json.BeginObject();
  WriteSetting(flags, &json);
  json.Key("elapsed_s").Number(absl::ToDoubleSeconds(report.elapsed));
  json.Key("goodput_per_s").Number(report.goodput);
  json.Key("images").Integer(report.images);
  json.Key("images_per_s").Number(report.images_per_second);
  WriteCounts(report.all, &json);
  json.Key("sent_behind_ms");
  WriteFigures(LatencyFigures(report.delay), &json);
  json.Key("peak_in_flight").Integer(report.peak_in_flight);
  json.Key("mean_batch_size").Number(report.mean_batch_size);
  json.Key("stage_means_ms");
  WriteFigures(StageFigures(report.stages), &json);
  json.Key("classes").BeginArray();
  for (const RequestCounts& counts : report.classes) {
    json.BeginObject();
    json.Key("class").String(counts.class_name);
    WriteCounts(counts, &json);
    json.EndObject();
  }
  json.EndArray();
  return absl::StrCat(json.EndObject().text(), "\n");
}

}  // namespace sfmamba::client
