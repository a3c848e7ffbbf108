#ifndef SFMAMBA_TESTS_SERVER_CEILING_DECODE_ALONE_H_
#define SFMAMBA_TESTS_SERVER_CEILING_DECODE_ALONE_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba {

// Makes the null model's input of a JPEG, as the server does, and drops it.
// False if it cannot be decoded.
bool DecodeOnce(absl::string_view jpeg);

struct DecodeRate {
  double per_second;
  double micros;  // Processor time of a picture.
};

// Decodes and resizes `jpeg` again and again for `time`, on as many threads as
// the calling thread may use processors, and on these alone.
DecodeRate DecodeAlone(absl::string_view jpeg, absl::Duration time);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_DECODE_ALONE_H_
