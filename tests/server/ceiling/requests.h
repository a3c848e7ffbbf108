#ifndef SFMAMBA_TESTS_SERVER_CEILING_REQUESTS_H_
#define SFMAMBA_TESTS_SERVER_CEILING_REQUESTS_H_

#include <string>

namespace sfmamba {

// The functions below return serialized messages for the null model.

// Returns a ClassifyRequest with a uint8 tensor of 150 kB. If `valid` is false,
// it asks for -1 classes.
std::string TensorRequest(bool valid = true);
// Returns a ModelInferRequest with the tensor of TensorRequest(). It asks for
// `logits` with the five best classes.
std::string InferRequest();
// Returns InferRequest() over HTTP, as head and body of a POST.
std::string HttpInferRequest();
// Returns a JPEG with some noise and quality 85, about one bit per pixel.
std::string Photograph(int width, int height);
std::string JpegRequest(int width, int height);
// Returns a request with a picture of a few kilobytes.
std::string SmallRequest();

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_REQUESTS_H_
