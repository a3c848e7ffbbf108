#include "server/batching/batch_runner.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"

namespace sfmamba::batching {
namespace {

bool AreFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

bool IsFinite(const model::Classification& result) {
  return AreFinite(result.logits) && AreFinite(result.embedding);
}

bool IsFinite(const model::Detections& result) { return result.finite; }

bool IsFinite(const model::Segmentation& result) { return result.finite; }

// A range [begin, end) of indices of images. These images have no answer yet.
struct Part {
  size_t begin, end;

  size_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
};

// Runs one batch on an execution context of a model.
class BatchRun {
 public:
  BatchRun(model::ExecutionContext& context,
           const BatchRunner::CheckDevice& check_device, BatchLimits& limits,
           const BatchLimits::Size& size,
           absl::Span<const model::ModelInput> images,
           BatchRunner::Answer answer)
      : context_(context),
        check_device_(check_device),
        limits_(limits),
        size_(size),
        images_(images),
        answer_(answer) {}

  // Runs the batch in parts that fit into memory.
  void Run() {
    for (Part rest = {0, images_.size()}; !rest.empty();) {
      const size_t count = limits_.Allowed(size_, rest.size());
      Part part = {rest.begin, rest.begin + count};
      const absl::Status status = Try(&part);
      if (absl::IsResourceExhausted(status) && count > 1) {
        limits_.Halve(size_, count);
        rest.begin = part.begin;
        continue;
      }
      if (!status.ok()) Bisect(part, status);
      rest.begin = part.end;
    }
  }

 private:
  // Runs both halves of a part that failed with `error`. If the part has only
  // one image or the device has failed permanently, nothing runs, and the
  // images get `error`. Afterwards each image has a result or an error.
  void Bisect(const Part& part, const absl::Status& error) {
    if (part.size() == 1 || absl::IsUnavailable(error)) {
      Fail(part, error);
      return;
    }
    const size_t middle = part.begin + part.size() / 2;
    Part halves[] = {{part.begin, middle}, {middle, part.end}};
    const absl::Status failed[] = {Try(&halves[0]), Try(&halves[1])};
    const bool both = !failed[0].ok() && !failed[1].ok();
    for (int i : {0, 1}) {
      if (both) {
        Fail(halves[i], error);
      } else if (!failed[i].ok()) {
        Bisect(halves[i], failed[i]);
      }
    }
  }

  // Runs the images of `part` together. Answers the images that succeed and
  // leaves the others in `part`. Returns the error of the remaining images, or
  // OK.
  absl::Status Try(Part* part) {
    const absl::Status device = check_device_();
    if (!device.ok()) return device;
    const int count = static_cast<int>(part->size());
    model::RunInfo info;
    bool first = true;
    const absl::Status status =
        context_.Run(images_.subspan(part->begin, part->size()), &info,
                     [&](model::Result result) {
                       if (first) padding_ += info.padded_images - count;
                       first = false;
                       answer_(part->begin++, std::move(result),
                               {count, info.padded_images, padding_});
                     });
    if (part->empty()) return absl::OkStatus();
    const absl::Status failed = check_device_();
    if (!failed.ok()) return failed;
    if (!status.ok()) return status;
    return absl::InternalError(
        absl::StrCat(count - part->size(), " results for ", count, " images"));
  }

  void Fail(const Part& part, const absl::Status& error) {
    const int count = static_cast<int>(part.size());
    for (size_t i = part.begin; i < part.end; ++i) {
      answer_(i, error, {count, count, padding_});
    }
  }

  model::ExecutionContext& context_;
  const BatchRunner::CheckDevice& check_device_;
  BatchLimits& limits_;
  const BatchLimits::Size size_;
  const absl::Span<const model::ModelInput> images_;
  const BatchRunner::Answer answer_;
  int padding_ = 0;
};

}  // namespace

size_t BatchLimits::Allowed(const Size& size, size_t wanted) const {
  absl::MutexLock lock(&mu_);
  const auto it = limits_.find(size);
  return it == limits_.end() ? wanted : std::min(wanted, it->second);
}

void BatchLimits::Halve(const Size& size, size_t images) {
  absl::MutexLock lock(&mu_);
  const auto [it, added] = limits_.emplace(size, images / 2);
  if (!added) it->second = std::min(it->second, images / 2);
}

bool IsFinite(const model::Result& result) {
  return std::visit([](const auto& values) { return IsFinite(values); },
                    result);
}

BatchRunner::BatchRunner(std::unique_ptr<model::ExecutionContext> context,
                         BatchLimits* limits, CheckDevice check_device)
    : context_(std::move(context)),
      limits_(*limits),
      check_device_(std::move(check_device)) {}

absl::Status BatchRunner::Prepare(const BatchLimits::Size& size,
                                  int max_images) {
  while (true) {
    const size_t images = limits_.Allowed(size, max_images);
    const absl::Status status = context_->Prepare(1, static_cast<int>(images));
    if (!absl::IsResourceExhausted(status) || images == 1) return status;
    limits_.Halve(size, images);
  }
}

absl::StatusOr<absl::Duration> BatchRunner::Measure(
    const BatchLimits::Size& size, int images,
    absl::FunctionRef<void(const model::Result&)> result) {
  const std::vector<uint8_t> black(size_t{3} * size.first * size.second);
  model::ModelInput input;
  input.height = size.first;
  input.width = size.second;
  input.pixels = black.data();
  const std::vector<model::ModelInput> inputs(images, input);
  model::RunInfo info;
  const absl::Time start = base::SteadyNow();
  const absl::Status status = context_->Run(
      inputs, &info, [result](const model::Result& r) { result(r); });
  if (!status.ok()) return status;
  return base::SteadyNow() - start;
}

void BatchRunner::Run(const BatchLimits::Size& size,
                      absl::Span<const model::ModelInput> images,
                      Answer answer) {
  BatchRun(*context_, check_device_, limits_, size, images, answer).Run();
}

}  // namespace sfmamba::batching
