#ifndef SFMAMBA_SERVER_PREDICTION_ANSWER_ENCODER_H_
#define SFMAMBA_SERVER_PREDICTION_ANSWER_ENCODER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/prediction/answer.h"

namespace sfmamba::prediction {

// Turns the model's result for one image into its answer, in pieces between
// which the caller may do other work or give the image up.
//
// Thread-compatible; the pieces may be encoded by different threads.
class AnswerEncoder {
 public:
  virtual ~AnswerEncoder() = default;

  // Whether all pieces are encoded.
  virtual bool done() const = 0;
  // How long one thread is expected to work on the next piece, about 10 ms at
  // most but for a mask that takes longer by itself. Only while not done().
  virtual absl::Duration NextCost() const = 0;
  // Encodes the next piece. Only while not done(). INTERNAL if a mask or a map
  // cannot be encoded.
  virtual absl::Status EncodeNext() = 0;
  // The bytes of what has been encoded so far, about.
  virtual int64_t bytes() const = 0;
  // The answer; once, when done().
  virtual Answer Take() = 0;
};

// Encodes all pieces.
inline absl::StatusOr<Answer> EncodeAll(AnswerEncoder* encoder) {
  while (!encoder->done()) {
    const absl::Status status = encoder->EncodeNext();
    if (!status.ok()) return status;
  }
  return encoder->Take();
}

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_ANSWER_ENCODER_H_
