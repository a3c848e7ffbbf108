#ifndef SFMAMBA_TESTS_SERVER_CEILING_REQUESTS_H_
#define SFMAMBA_TESTS_SERVER_CEILING_REQUESTS_H_

#include <string>

namespace sfmamba {

// Messages to the null model, serialized.

// A ClassifyRequest with a uint8 tensor of 150 kB; one that is not valid asks
// for -1 classes.
std::string TensorRequest(bool valid = true);
// A ModelInferRequest with TensorRequest()'s tensor that asks for `logits` with
// the five best classes.
std::string InferRequest();
// InferRequest() over HTTP: head and body of a POST.
std::string HttpInferRequest();
// A JPEG with some noise, quality 85: about a bit a pixel.
std::string Photograph(int width, int height);
std::string JpegRequest(int width, int height);
// A picture of a few kilobytes.
std::string SmallRequest();

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_SERVER_CEILING_REQUESTS_H_
