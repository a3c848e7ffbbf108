#ifndef SFMAMBA_BASE_DECODE_WATCH_H_
#define SFMAMBA_BASE_DECODE_WATCH_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace sfmamba::base {

// Processor time that the calling thread has used.
absl::Duration ThreadCpuTime();

// Tells when a picture takes too long to decode. By the thread's own processor
// time, so that a busy machine refuses nothing that an idle one takes.
//
// Made and asked by the thread that decodes. Decoders ask every few rows, or
// kilobytes; what they do in one piece is found out after it.
class DecodeWatch {
 public:
  using Clock = std::function<absl::Duration()>;

  explicit DecodeWatch(absl::Duration limit = absl::InfiniteDuration(),
                       Clock clock = ThreadCpuTime);

  bool Expired() const;
  // DEADLINE_EXCEEDED, naming the limit. For use once Expired().
  absl::Status status() const;

 private:
  const absl::Duration limit_;
  const Clock clock_;
  const absl::Duration start_;
};

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_DECODE_WATCH_H_
