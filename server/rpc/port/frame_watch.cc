#include "server/rpc/port/frame_watch.h"

#include <algorithm>

#include "base/bytes.h"

namespace sfmamba::rpc {
namespace {

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Types of frames.
constexpr char kData = 0, kHeaders = 1, kReset = 3, kContinuation = 9;
constexpr char kEndStream = 1;  // A flag.

}  // namespace

bool FrameWatch::Take(absl::string_view bytes, int64_t most) {
  while (followed_ && !bytes.empty()) {
    size_t taken = 1;
    if (preface_ < kPreface.size()) {
      taken = std::min(bytes.size(), kPreface.size() - preface_);
      followed_ = bytes.substr(0, taken) == kPreface.substr(preface_, taken);
      preface_ += taken;
    } else if (payload_ > 0) {
      taken = std::min<size_t>(bytes.size(), payload_);
      payload_ -= taken;
    } else {
      head_[head_size_++] = bytes[0];
      if (head_size_ == kHeadSize && !BeginFrame(most)) return false;
    }
    bytes.remove_prefix(taken);
  }
  return true;
}

bool FrameWatch::BeginFrame(int64_t most) {
  head_size_ = 0;
  payload_ = base::BigEndian({head_, kHeadSize}, 0, 3);
  const char type = head_[3];
  if (type == kHeaders) block_ = 0;
  if (type == kHeaders || type == kContinuation)
    block_ += kFrameCost + payload_;
  if (counts_calls_) {
    CountCall(type, head_[4], base::BigEndian({head_, kHeadSize}, 5, 4));
  }
  return block_ <= most;
}

void FrameWatch::CountCall(char type, char flags, uint32_t stream) {
  if (type == kHeaders && stream > newest_) {
    newest_ = stream;
    waiting_[stream] = 0;
  }
  const bool may_end = type == kHeaders || type == kData;
  if (type == kReset || (may_end && (flags & kEndStream) != 0)) {
    waiting_.erase(stream);
  } else if (type == kData) {
    const auto found = waiting_.find(stream);
    if (found == waiting_.end()) return;
    found->second += payload_;
    if (found->second >= kLeastMessage) waiting_.erase(found);
  }
}

}  // namespace sfmamba::rpc
