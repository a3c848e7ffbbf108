// Fuzzes a request in slices, as gRPC receives it. The server finds pictures
// with its own parser and gives the rest to protobuf. Together they must accept
// the same requests as protobuf alone and find the same contents.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/stubs/logging.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/api/vision/from_proto.h"
#include "server/call/call.h"
#include "server/errors/error.h"
#include "server/image/image_source.h"
#include "server/rpc/wire/received_request.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/sliced_message.h"

namespace sfmamba {
namespace {

constexpr int kMaxImages = 64;

std::string BytesOf(const image::ImageSource& source) {
  if (source.encoded() != nullptr) return std::string(source.encoded()->bytes);
  if (source.pixels() != nullptr) return std::string(source.pixels()->data);
  if (source.tensor() == nullptr) return "";
  return absl::StrCat(source.tensor()->data,
                      absl::StrJoin(source.tensor()->pieces, ""));
}

void CheckImage(const absl::StatusOr<image::ImageSource>& got,
                const absl::StatusOr<image::ImageSource>& expected) {
  Check(got.status() == expected.status(), "an image's error is protobuf's");
  if (!got.ok()) return;
  Check(got->source.index() == expected->source.index(), "its kind, too");
  if (got->fetch) got->fetch();
  Check(BytesOf(*got) == BytesOf(*expected), "and its bytes");
}

// Returns the request without its images. The result is serialized, because a
// NaN in a message is not equal to itself.
template <typename Request>
std::string BesideImages(Request request) {
  request.clear_images();
  request.DiscardUnknownFields();
  return request.SerializeAsString();
}

template <typename Request>
void Fuzz(absl::string_view message, std::vector<int> cuts) {
  grpc::ByteBuffer buffer = InSlices(message, std::move(cuts));
  Request read;
  const std::unique_ptr<call::Pictures> pictures =
      rpc::ReadPictures(&buffer, kMaxImages, &read);
  const absl::Status& status = pictures->status();
  Request expected;
  const bool valid = expected.ParseFromArray(message.data(), message.size());
  if (!status.ok()) {
    Check(status.code() == absl::StatusCode::kInvalidArgument,
          "a message is refused as an invalid argument");
    Check(server::GetErrorDetail(status).reason == "MALFORMED_MESSAGE",
          "as malformed");
    Check(!valid, "and so it is by protobuf");
    return;
  }
  // If there are too many images, only their number is read.
  const int images = pictures->count();
  if (images > kMaxImages) return;
  Check(valid, "what is accepted is accepted by protobuf");
  Check(images == expected.images_size(), "no image is lost");
  Check(BesideImages(read) == BesideImages(expected),
        "parameters and options are protobuf's");
  for (int i = 0; i < images; ++i) {
    absl::StatusOr<image::ImageSource> got = api::FromProto(read.images(i));
    if (got.ok()) pictures->SetBytes(&*got);
    CheckImage(got, api::FromProto(expected.images(i)));
  }
}

}  // namespace
}  // namespace sfmamba

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer& silencer =
      *new google::protobuf::LogSilencer();
  (void)silencer;
  sfmamba::Input input(data, size);
  const int task = input.Below(3);
  const std::vector<int> cuts = sfmamba::TakeCuts(&input);
  if (task == 0) {
    sfmamba::Fuzz<sfmamba::v1::ClassifyRequest>(input.bytes(), cuts);
  } else if (task == 1) {
    sfmamba::Fuzz<sfmamba::v1::DetectRequest>(input.bytes(), cuts);
  } else {
    sfmamba::Fuzz<sfmamba::v1::SegmentRequest>(input.bytes(), cuts);
  }
  return 0;
}
