#ifndef SFMAMBA_SERVER_BATCHING_BATCH_KEY_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_KEY_H_

#include <tuple>

namespace sfmamba::batching {

enum class ImageType { kUint8, kFloat32 };

// Images with equal keys may run together in one batch.
struct BatchKey {
  int height = 0;  // The padded height in pixels.
  int width = 0;
  ImageType type = ImageType::kUint8;

  friend bool operator<(const BatchKey& a, const BatchKey& b) {
    return std::tie(a.height, a.width, a.type) <
           std::tie(b.height, b.width, b.type);
  }
  friend bool operator==(const BatchKey& a, const BatchKey& b) {
    return !(a < b) && !(b < a);
  }
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_KEY_H_
