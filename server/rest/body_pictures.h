#ifndef SFMAMBA_SERVER_REST_BODY_PICTURES_H_
#define SFMAMBA_SERVER_REST_BODY_PICTURES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rest {

// The bytes of pictures within the body of an HTTP request, which are handed on
// where they are. In a message, a placeholder stands for a picture's bytes; no
// client can know one.
//
//   BodyPictures pictures(std::move(body));
//   request.add_images()->set_encoded(pictures.Add(0, size));
//   grpc::ByteBuffer message = pictures.Message(std::move(request));
//
// Thread-compatible.
class BodyPictures {
 public:
  explicit BodyPictures(std::string body);

  char* body() { return body_->data(); }
  size_t size() const { return body_->size(); }

  // `size` bytes from `begin` on are a picture's. Returns its placeholder.
  std::string Add(size_t begin, size_t size);

  // The bytes of a ClassifyRequest, DetectRequest or SegmentRequest, with the
  // pictures in the place of their placeholders. They keep the body alive.
  template <typename Request>
  grpc::ByteBuffer Message(Request request) const {
    google::protobuf::RepeatedPtrField<v1::Image> images;
    images.Swap(request.mutable_images());
    return Message(request.SerializeAsString(), &images);
  }

 private:
  struct Extent {
    size_t begin;
    size_t size;
  };

  grpc::ByteBuffer Message(
      std::string rest,
      google::protobuf::RepeatedPtrField<v1::Image>* images) const;
  // Appends an image, whose length stands before it. `small` is what was
  // written since the last slice.
  void Append(v1::Image* image, std::string* small,
              std::vector<grpc::Slice>* slices) const;
  // What a placeholder stands for; null if it is none.
  const Extent* Find(absl::string_view bytes) const;
  grpc::Slice SliceOf(const Extent& extent) const;

  const std::shared_ptr<std::string> body_;
  const std::string secret_;  // Begins each placeholder.
  std::vector<Extent> extents_;
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_BODY_PICTURES_H_
