#ifndef SFMAMBA_TESTS_SERVER_CEILING_DECODE_ALONE_H_
#define SFMAMBA_TESTS_SERVER_CEILING_DECODE_ALONE_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba {

// Decodes a JPEG to the null model's input like the server, and discards the
// result. Returns false if the JPEG cannot be decoded.
bool DecodeOnce(absl::string_view jpeg);

struct DecodeRate {
  double per_second;
  double micros;  // CPU time per picture.
};

// Decodes and resizes `jpeg` repeatedly for `time`. It uses one thread for each
// CPU that the calling thread may use, and only these CPUs.
DecodeRate DecodeAlone(absl::string_view jpeg, absl::Duration time);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_DECODE_ALONE_H_
