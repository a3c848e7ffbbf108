#ifndef SFMAMBA_SERVER_OBSERVABILITY_SERIES_H_
#define SFMAMBA_SERVER_OBSERVABILITY_SERIES_H_

#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"

namespace sfmamba::observability {

// A name of metrics, the names of its labels, and a histogram's upper bounds.
template <typename Metric>
struct Family {
  prometheus::Family<Metric>& metrics;
  std::vector<std::string> labels;
  std::vector<double> bounds;
};

// The series of a family that one owner has. Each is made when it is first
// asked for, because most labels never occur, and all are removed with this.
//
//   Series<Counter> misses(families.deadline_misses, {"tiny"});
//   misses.Of({"queue"}).Increment();
//
// Thread-safe. Of() waits for a scrape only where it makes a series.
template <typename Metric>
class Series {
 public:
  // `first` are the values of the family's first labels, which all have.
  explicit Series(const Family<Metric>& family,
                  std::vector<std::string> first = {})
      : family_(family), first_(std::move(first)) {}
  ~Series() { Clear(); }

  // The series with these values of the family's other labels.
  Metric& Of(std::initializer_list<absl::string_view> rest = {})
      ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    Metric*& metric = made_[absl::StrJoin(rest, "\n")];
    if (metric == nullptr) metric = &Make(rest);
    return *metric;
  }

  // Removes all. No reference from Of() may be in use.
  void Clear() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    for (auto& [values, metric] : made_) family_.metrics.Remove(metric);
    made_.clear();
  }

 private:
  Metric& Make(std::initializer_list<absl::string_view> rest) {
    std::vector<std::string> values = first_;
    for (const absl::string_view value : rest) values.emplace_back(value);
    prometheus::Labels labels;
    for (size_t i = 0; i < values.size(); ++i) {
      labels[family_.labels.at(i)] = values[i];
    }
    if constexpr (std::is_same_v<Metric, prometheus::Histogram>) {
      return family_.metrics.Add(labels, family_.bounds);
    } else {
      return family_.metrics.Add(labels);
    }
  }

  const Family<Metric> family_;
  const std::vector<std::string> first_;
  absl::Mutex mu_;
  absl::flat_hash_map<std::string, Metric*> made_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_SERIES_H_
