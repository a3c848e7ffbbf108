#include "tests/server/ceiling/decode_alone.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "model/config.h"
#include "server/host/processors.h"
#include "server/image/image_input.h"
#include "tests/server/ceiling/null_server.h"
#include "tests/server/ceiling/server_child.h"

namespace sfmamba {

bool DecodeOnce(absl::string_view jpeg) {
  image::ImageSource source;
  source.source = image::EncodedImage{jpeg};
  model::ModelConfig config;
  config.image_size = kNullModelSide;
  return image::MakeInput(source, config, {}, image::ImageLimits()).ok();
}

DecodeRate DecodeAlone(absl::string_view jpeg, absl::Duration time) {
  std::atomic<int64_t> count{0};
  const absl::Duration before = OwnProcessorTime();
  const absl::Time end = absl::Now() + time;
  std::vector<std::thread> threads;
  for (int i = 0; i < server::UsableProcessors(); ++i) {
    threads.emplace_back([&] {
      for (; absl::Now() < end; ++count) {
        if (!DecodeOnce(jpeg)) std::abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return {
      count / absl::ToDoubleSeconds(time),
      absl::ToDoubleSeconds(OwnProcessorTime() - before) * 1e6 / count.load()};
}

}  // namespace sfmamba
