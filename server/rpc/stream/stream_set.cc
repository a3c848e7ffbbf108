#include "server/rpc/stream/stream_set.h"

#include <utility>

namespace sfmamba::rpc {

StreamCall* StreamSet::Start(const std::shared_ptr<StreamCall>& stream) {
  {
    absl::MutexLock lock(&mu_);
    streams_.push_back(stream);
  }
  stream->Start();
  return stream.get();
}

void StreamSet::Tick(bool draining) {
  // Unlocked: a stream may end in its turn.
  std::vector<std::shared_ptr<StreamCall>> streams;
  {
    absl::MutexLock lock(&mu_);
    std::vector<std::weak_ptr<StreamCall>> living;
    for (std::weak_ptr<StreamCall>& stream : streams_) {
      auto shared = stream.lock();
      if (shared == nullptr) continue;
      streams.push_back(std::move(shared));
      living.push_back(std::move(stream));
    }
    streams_ = std::move(living);
  }
  for (const auto& stream : streams) stream->Tick(draining);
}

}  // namespace sfmamba::rpc
