#include "server/rpc/admin/batch_profile.h"

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "server/batching/executor.h"

namespace sfmamba::rpc {
namespace {

void ToProto(const batching::KeyProfile& profile,
             v1::BatchProfile::SizeClass* size_class) {
  size_class->set_height(profile.key.height);
  size_class->set_width(profile.key.width);
  size_class->set_image_type(profile.key.type == batching::ImageType::kUint8
                                 ? v1::BatchProfile::UINT8
                                 : v1::BatchProfile::FLOAT32);
  for (const auto& [images, point] : profile.curve.Points()) {
    v1::BatchProfile::BatchTime* time = size_class->add_times();
    time->set_images(images);
    base::ToProto(point.median, time->mutable_median());
    base::ToProto(point.p95, time->mutable_p95());
  }
  for (const int images : profile.curve.efficient_sizes()) {
    size_class->add_efficient_sizes(images);
  }
  size_class->set_pace(profile.curve.pace());
  size_class->set_arrivals_per_second(
      absl::FDivDuration(absl::Seconds(1), profile.gap));
}

}  // namespace

absl::Status ToProto(const repository::ModelVersion& version,
                     v1::BatchProfile* profile) {
  const absl::StatusOr<std::shared_ptr<repository::LoadedModel>> model =
      version.Loaded();
  if (!model.ok()) return model.status();
  const batching::Executor& executor = *(*model)->executor;
  profile->set_model(version.name());
  profile->set_device(executor.device());
  profile->set_max_batch_size(executor.options().batch.max_batch_size);
  for (const batching::KeyProfile& key : executor.KeyProfiles()) {
    ToProto(key, profile->add_size_classes());
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::rpc
