#include "server/prediction/image_parts.h"

#include <utility>

#include "base/steady_clock.h"
#include "server/errors/guarded.h"

namespace sfmamba::prediction {

void InputRun::End(const batching::BatchInfo& info) {
  batch = info;
  if (batch.batch_size == 0) batch.queue = base::SteadyNow() - submitted;
}

ImageParts::ImageParts(int parts, PartCollector* collector, Done done)
    : collector_(*collector),
      done_(std::move(done)),
      runs_(parts),
      missing_(parts) {}

ImageParts::~ImageParts() {
  // No lock is needed, because no other thread can use this object any more.
  absl::Status status = std::move(status_);
  if (status.ok() && missing_ > 0) {
    status = absl::InternalError("the image could not be handled");
  }
  std::vector<InputRun> runs = std::move(runs_);
  server::Guarded([&] {
    done_(std::move(status), std::move(runs));
    return absl::OkStatus();
  }).IgnoreError();
}

void ImageParts::End(int i, absl::StatusOr<model::Result> result,
                     InputRun run) {
  absl::Status status = result.status();
  if (status.ok()) {
    status = server::Guarded([&] {
      collector_.Add(i, *std::move(result));
      return absl::OkStatus();
    });
  }
  if (!status.ok()) Fail(status);
  absl::MutexLock lock(&mu_);
  runs_[i] = std::move(run);
  --missing_;
}

void ImageParts::Fail(const absl::Status& status) {
  absl::MutexLock lock(&mu_);
  if (status_.ok() || absl::IsCancelled(status_)) status_ = status;
}

}  // namespace sfmamba::prediction
