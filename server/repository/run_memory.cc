#include "server/repository/run_memory.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "model/execution_context.h"

namespace sfmamba::repository {
namespace {

// The first image that FitBatch() runs has at most this many pixels. If the
// model accepts only one size, the first image has this size even if it is
// larger.
constexpr int64_t kSmallPixels = 512 * 512;
// A run occupies this multiple of the peak memory of its tensors, because the
// allocator also caches freed memory for the next run. The cache usually takes
// a tenth of the peak, so the factor is 1.1. In the worst case, the cache takes
// a quarter.
constexpr double kKept = 1.1;
// The maximum size of a model's pool of input buffers, in bytes. FitBatch()
// reserves memory for this pool, because the memory budget counts only the
// buffers in use.
constexpr int64_t kMostPooledInputs = int64_t{256} << 20;
// Each load measures how much memory one image needs. If an image needs more
// than 1/kLoadsAtOnce of the free memory, only one load at a time may run this
// measurement.
constexpr int kLoadsAtOnce = 8;
constexpr absl::Duration kAskPeriod = absl::Milliseconds(100);

struct Size {
  int height = 0, width = 0;

  int64_t pixels() const { return int64_t{height} * width; }
};

// Returns the size of the model's largest input, in pixels.
Size LargestInput(const model::ModelConfig& config) {
  if (config.task == model::VisionTask::kClassification) {
    return {config.image_size, config.image_size};
  }
  return {config.Padded(config.short_side), config.Padded(config.long_side)};
}

// Returns the name and value of the setting that determines LargestInput().
std::string InputName(const model::ModelConfig& config) {
  if (config.task == model::VisionTask::kClassification) {
    return absl::StrCat("input.size ", config.image_size);
  }
  return absl::StrCat("input.short_side ", config.short_side,
                      " and input.long_side ", config.long_side);
}

// Returns the sizes of the images to run, in ascending order. The last size is
// the model's largest input. Vim accepts only one size.
std::vector<Size> SizesToRun(const model::ModelConfig& config) {
  Size size = LargestInput(config);
  std::vector<Size> sizes = {size};
  if (config.backbone.architecture == model::Architecture::kVim) return sizes;
  while (size.pixels() > kSmallPixels) {
    size = {config.Padded((size.height + 1) / 2),
            config.Padded((size.width + 1) / 2)};
    sizes.push_back(size);
  }
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

// Returns the additional bytes of a detector's masks for an image with the
// maximum number of objects.
int64_t MaskBytes(const model::ModelConfig& config) {
  const model::DetectorConfig& detector = config.detector;
  if (config.task != model::VisionTask::kDetection || !detector.masks) return 0;
  const int64_t pixels = int64_t{detector.mask_roi_size} *
                         detector.mask_roi_size * detector.max_detections;
  // A pixel needs one value for each channel of the features, and four logits
  // for each box stage.
  return int64_t{sizeof(float)} * pixels *
         (detector.channels + 4 * detector.box_stages);
}

absl::Status TooLittle(const model::ModelConfig& config, const char* about,
                       int64_t needed, int64_t free) {
  return absl::ResourceExhaustedError(
      absl::StrCat("memory: an image needs ", about, " ", BytesText(needed),
                   " at ", InputName(config), ", expected at most the ",
                   BytesText(std::max<int64_t>(free, 0)),
                   " that the limit of the process leaves"));
}

// Measures the memory that an image of the model's largest input needs.
class Measurement {
 public:
  Measurement(model::VisionModel& model, const BatchFitOptions& options,
              int64_t free)
      : config_(model.config()), options_(options), free_(free) {}

  // Returns the measured number of bytes. If a run may need more than
  // 1/kLoadsAtOnce of the free memory, first waits for the exclusive right to
  // use most of the free memory. `fit->most` then holds this right.
  absl::StatusOr<int64_t> Run(model::ExecutionContext& context,
                              BatchFit* fit) const {
    const std::vector<Size> sizes = SizesToRun(config_);
    const int64_t largest = sizes.back().pixels();
    const int64_t masks = MaskBytes(config_);
    int64_t expected = 0;  // Upper bound in bytes for the next image.
    int64_t last_bytes = 0, last_pixels = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const absl::StatusOr<int64_t> tensors =
          RunOne(context, sizes[i], expected, fit);
      if (!tensors.ok()) return tensors;
      // MeasureMemory() returns 0 if it has counted no tensor. It does not
      // count small tensors, and it counts nothing on GPUs. In these cases,
      // `bytes` is 0 too, and the memory of the masks is not added.
      const int64_t bytes =
          *tensors == 0 ? 0 : static_cast<int64_t>(*tensors * kKept) + masks;
      if (i + 1 == sizes.size()) return bytes;
      // Each step of a run needs a fixed number of bytes plus a number of bytes
      // per pixel. The peak memory is the maximum over all steps, so it is a
      // convex function of the number of pixels. The line through the last two
      // measurements is therefore a lower bound for larger images.
      //
      // Because of the fixed bytes, the peak grows more slowly than the number
      // of pixels. For example, an image with twice the pixels needs at most
      // twice the bytes. The last measurement, multiplied by the ratio of the
      // numbers of pixels, is therefore an upper bound for a larger image.
      // `expected` and the bytes in the error are computed in this way.
      const int64_t pixels = sizes[i].pixels();
      const double slope =
          last_bytes == 0 ? 0
                          : double(bytes - last_bytes) / (pixels - last_pixels);
      expected =
          static_cast<int64_t>(double(bytes) * sizes[i + 1].pixels() / pixels);
      if (bytes + slope * (largest - pixels) > free_) {
        return TooLittle(config_, "about",
                         static_cast<int64_t>(double(bytes) * largest / pixels),
                         free_);
      }
      last_bytes = bytes;
      last_pixels = pixels;
    }
    return 0;  // Unreachable, because the last size returns.
  }

 private:
  // Runs one image and returns the bytes of its tensors. `expected` is an upper
  // bound for these bytes. The first run of the image may use only
  // 1/kLoadsAtOnce of the free memory, because other loads may run at the same
  // time. If this memory is not enough, waits for the exclusive right to use
  // most of the free memory and stores the right in `fit->most`. Then runs the
  // image a second time and lets it use most of the free memory.
  //
  // Skips the first run if `expected` exceeds 1/kLoadsAtOnce of the free
  // memory. Also skips it if `fit->most` contains the exclusive right already.
  absl::StatusOr<int64_t> RunOne(model::ExecutionContext& context,
                                 const Size& size, int64_t expected,
                                 BatchFit* fit) const {
    const auto run = [&](int64_t most) {
      return context.MeasureMemory(size.height, size.width,
                                   static_cast<int64_t>(most / kKept),
                                   options_.stop);
    };
    const int64_t part = free_ / kLoadsAtOnce;
    if (fit->most == nullptr && expected <= part) {
      const absl::StatusOr<int64_t> tensors = run(part);
      if (!absl::IsResourceExhausted(tensors.status())) return tensors;
    }
    if (fit->most == nullptr) {
      fit->most = options_.memory->TakeMost(options_.stop);
      if (fit->most == nullptr) {
        return absl::CancelledError("loading was stopped");
      }
    }
    const absl::StatusOr<int64_t> tensors = run(free_ - part);
    if (absl::IsResourceExhausted(tensors.status())) {
      return TooLittle(config_, "more than", free_ - part, free_);
    }
    return tensors;
  }

  const model::ModelConfig& config_;
  const BatchFitOptions& options_;
  const int64_t free_;
};

}  // namespace

std::string BytesText(int64_t bytes) {
  return bytes < 1000000000 ? absl::StrFormat("%.1f MB", bytes / 1e6)
                            : absl::StrFormat("%.1f GB", bytes / 1e9);
}

RunMemory::Hold RunMemory::AddServed(int64_t bytes) {
  absl::MutexLock lock(&state_->mu);
  const auto added = state_->served.insert(bytes);
  return Hold(state_.get(), [state = state_, added](void*) {
    absl::MutexLock lock(&state->mu);
    state->served.erase(added);
  });
}

int64_t RunMemory::most_served() const {
  absl::MutexLock lock(&state_->mu);
  return state_->served.empty() ? 0 : *state_->served.rbegin();
}

absl::StatusOr<RunMemory::Hold> RunMemory::TakeForLoad(
    int64_t bytes, const std::function<int64_t()>& free,
    const std::function<bool()>& stop) {
  absl::MutexLock lock(&state_->mu);
  while (bytes > free() - state_->for_loads) {
    if (state_->for_loads == 0) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "memory: loading takes about ", BytesText(bytes),
          ", expected at most the ", BytesText(std::max<int64_t>(free(), 0)),
          " that are free"));
    }
    if (stop()) return nullptr;
    state_->mu.AwaitWithTimeout(
        absl::Condition(
            +[](int64_t* taken) { return *taken == 0; }, &state_->for_loads),
        kAskPeriod);
  }
  state_->for_loads += bytes;
  return Hold(state_.get(), [state = state_, bytes](void*) {
    absl::MutexLock lock(&state->mu);
    state->for_loads -= bytes;
  });
}

int64_t RunMemory::taken_for_loads() const {
  absl::MutexLock lock(&state_->mu);
  return state_->for_loads;
}

RunMemory::Hold RunMemory::TakeMost(const std::function<bool()>& stop) {
  State& state = *state_;
  absl::MutexLock lock(&state.mu);
  while (!state.mu.AwaitWithTimeout(
      absl::Condition(
          +[](bool* taken) { return !*taken; }, &state.most_taken),
      kAskPeriod)) {
    if (stop()) return nullptr;
  }
  state.most_taken = true;
  return Hold(state_.get(), [state = state_](void*) {
    absl::MutexLock lock(&state->mu);
    state->most_taken = false;
  });
}

absl::StatusOr<BatchFit> FitBatch(model::VisionModel& model,
                                  const BatchFitOptions& options) {
  const model::ModelConfig& config = model.config();
  const bool classifies = config.task == model::VisionTask::kClassification;
  const int64_t input = 3 * LargestInput(config).pixels();
  const int64_t pool =
      classifies ? std::min(options.max_batch_size * input, kMostPooledInputs)
                 : 0;
  const int64_t free = options.free - std::max(pool, input);
  BatchFit fit;
  fit.max_batch_size = options.max_batch_size;
  const auto context = model.MakeContext(0);
  if (!context.ok()) return context.status();
  const absl::StatusOr<int64_t> image =
      Measurement(model, options, free).Run(**context, &fit);
  if (!image.ok()) return image.status();
  if (*image == 0) return fit;
  const int contexts = model.contexts();
  if (contexts * *image > free) {
    return TooLittle(config, "about", contexts * *image, free);
  }
  const auto bytes = [&] {
    return contexts * (*context)->ImagesInMemory(fit.max_batch_size) * *image;
  };
  while (fit.max_batch_size > 1 && bytes() > free) --fit.max_batch_size;
  fit.bytes = bytes() + pool;
  return fit;
}

}  // namespace sfmamba::repository
