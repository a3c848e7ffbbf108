// write_seeds FOLDER: writes the fuzzers' first inputs to FOLDER/<fuzzer>/.
// Among them are valid inputs of each kind.
//
//   bazel run //tests/fuzz:write_seeds -- $PWD/tests/fuzz/corpus
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "model/weights/safetensors.h"
#include "server/server_config.h"
#include "sfmamba/v1/config.pb.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/http_seeds.h"
#include "tests/fuzz/kserve_seeds.h"
#include "tests/server/picture.h"
#include "tests/testing/encode_masks.h"

// jpeglib.h needs C's headers above.
#include <jpeglib.h>

namespace sfmamba {
namespace {

// The functions below add pictures.

std::string Webp(const std::string& exif) {
  std::string file =
      server::EncodeWebp(server::Gradient(7, 5), /*lossless=*/true);
  if (exif.empty()) return file;
  const auto number = [](uint32_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += Byte(value >> 8 * i);
    return text;
  };
  const auto chunk = [&](const std::string& type, std::string payload) {
    const std::string length = number(payload.size(), 4);
    if (payload.size() % 2 == 1) payload += '\0';
    return type + length + payload;
  };
  std::string chunks = "WEBP" +
                       chunk("VP8X", Byte(0x08) + std::string(3, '\0') +
                                         number(7 - 1, 3) + number(5 - 1, 3)) +
                       file.substr(12) + chunk("XMP ", "odd") +
                       chunk("EXIF", exif);
  return "RIFF" + number(chunks.size(), 4) + chunks;
}

std::vector<std::pair<std::string, std::string>> Pictures() {
  const image::RgbImage image = server::Gradient(11, 6);
  const std::string jpeg = server::EncodeJpeg(image);
  const std::string png = server::EncodePng(image);
  const std::string turned = server::ExifOrientation(6, true);
  const std::vector<uint8_t> cmyk(4 * 9 * 8, 90);
  const auto progressive = [](jpeg_compress_struct& compress) {
    jpeg_simple_progression(&compress);
  };
  const auto restarts = [](jpeg_compress_struct& compress) {
    compress.restart_interval = 1;
    compress.arith_code = TRUE;
  };
  std::vector<std::pair<std::string, std::string>> pictures = {
      {"jpeg", jpeg},
      {"jpeg_grey", server::EncodeJpeg(9, 8, 1, cmyk.data())},
      {"jpeg_cmyk", server::EncodeJpeg(9, 8, 4, cmyk.data())},
      {"jpeg_progressive",
       server::EncodeJpeg(9, 8, 3, cmyk.data(), progressive)},
      {"jpeg_restarts", server::EncodeJpeg(9, 8, 3, cmyk.data(), restarts)},
      {"jpeg_turned", server::WithExif(jpeg, turned)},
      {"jpeg_turned_twice",
       server::WithExif(server::WithExif(jpeg, "Exif"), turned)},
      {"jpeg_turned_late",
       server::Before(jpeg, "\xFF\xDA", server::App1(turned))},
      {"jpeg_strays", server::Before(jpeg, "\xFF\xDB", "\x7F\xFF\xD0")},
      {"jpeg_junk", server::Before(jpeg, "\xFF\xD9", "AAAAAAAA")},
      {"png", png},
      {"png_turned",
       server::WithChunk(
           png, server::PngChunk("eXIf",
                                 server::ExifOrientation(8, false).substr(6)))},
      {"png_strays",
       server::WithWrongCrc(
           server::WithChunk(png, server::PngChunk("PLTE", "x") +
                                      server::PngChunk("tRNS", "1234567") +
                                      server::PngChunk("tEXt", "text")),
           "tEXt")},
      {"png_more_data", png.substr(0, png.size() - 12) +
                            server::PngChunk("IDAT", "more") +
                            png.substr(png.size() - 12)},
      {"gif", "GIF89a"},
      {"html", "<!DOCTYPE html><html>"},
      {"heic", std::string("\0\0\0\x18\x66typmif1\0\0\0\0mif1heic", 24)},
      {"webp_lossy", server::EncodeWebp(image, /*lossless=*/false)},
      {"webp_lossless", Webp("")},
      {"webp_turned", Webp(server::ExifOrientation(3, true).substr(6))},
  };
  struct Kind {
    const char* name;
    server::PngOptions options;
    // The number of bytes of the uncompressed 8 x 5 pixels.
    int bytes;
  };
  for (const Kind& kind :
       {Kind{"png_grey", {0, 8}, 40}, Kind{"png_bits", {0, 1}, 5},
        Kind{"png_deep", {2, 16, true}, 240}, Kind{"png_palette", {3, 2}, 10},
        Kind{"png_grey_alpha", {4, 8, true}, 80},
        Kind{"png_alpha", {6, 8}, 160}}) {
    pictures.push_back(
        {kind.name, server::EncodePng(8, 5, kind.options,
                                      std::string(kind.bytes, '\x1B'))});
  }
  return pictures;
}

// The functions below add requests.

void FillParams(v1::ClassifyParams* params) {
  params->set_top_k(3);
  params->add_class_filter(2);
}

void FillParams(v1::DetectParams* params) {
  params->set_score_threshold(0.5f);
  params->set_nms_iou_threshold(0.25f);
  params->set_max_detections(7);
  params->add_class_filter(2);
  params->set_mask_encoding(v1::DetectParams::PNG_CROP);
}

void FillParams(v1::SegmentParams* params) {
  params->set_encoding(v1::SegmentParams::RAW_INDEX);
  params->set_output_size(v1::SegmentParams::MODEL);
  params->add_class_filter(2);
}

template <typename Request>
Request MakeRequest() {
  Request request;
  request.set_model("m");
  request.set_request_id("id");
  FillParams(request.mutable_params());
  return request;
}

// Returns a serialized request with `images`.
template <typename Request>
std::string WithImages(const std::vector<v1::Image>& images) {
  Request request = MakeRequest<Request>();
  request.mutable_options()->mutable_max_queue_wait()->set_seconds(1);
  request.mutable_options()->set_priority(v1::RequestOptions::LOW);
  for (const v1::Image& image : images) *request.add_images() = image;
  return request.SerializeAsString();
}

v1::Image Pixels(v1::PixelBuffer::Format format, int stride, int bytes) {
  v1::Image image;
  v1::PixelBuffer& pixels = *image.mutable_pixels();
  pixels.set_width(4);
  pixels.set_height(2);
  pixels.set_format(format);
  pixels.set_row_stride_bytes(stride);
  pixels.set_data(std::string(bytes, 'x'));
  image.mutable_crop()->set_x_max(0.5);
  image.mutable_crop()->set_y_max(1);
  return image;
}

v1::Image Tensor(v1::Tensor::DataType type, int bytes) {
  v1::Image image;
  v1::Tensor& tensor = *image.mutable_tensor();
  tensor.set_data_type(type);
  for (int size : {3, 2, 2}) tensor.add_shape(size);
  tensor.set_data(std::string(bytes, 'x'));
  return image;
}

v1::Image Encoded(const std::string& file) {
  v1::Image image;
  image.set_encoded(file);
  return image;
}

void AddRequests(const Corpus& corpus) {
  const std::vector<v1::Image> pixels = {
      Pixels(v1::PixelBuffer::NV12, 5, 15),
      Pixels(v1::PixelBuffer::RGB8, 0, 24),
      Pixels(v1::PixelBuffer::BGRA8, 17, 33)};
  const std::vector<v1::Image> tensors = {Tensor(v1::Tensor::FP16, 24),
                                          Tensor(v1::Tensor::BF16, 24),
                                          Tensor(v1::Tensor::UINT8, 12)};
  const image::RgbImage image = server::Gradient(11, 6);
  const std::vector<v1::Image> files = {Encoded(server::EncodeJpeg(image)),
                                        Encoded(server::EncodePng(image))};
  const auto add_one = [&](int task, const std::string& name,
                           const std::string& message) {
    corpus.Add("request", name, Byte(task) + message);
    // The numbers divide the message into three slices.
    corpus.Add("wire", name,
               Byte(task) + Byte(2) + Byte(80) + Byte(160) + message);
  };
  const auto add = [&](const char* name, const std::vector<v1::Image>& images) {
    v1::StreamPredictRequest item;
    item.set_correlation_id(name);
    item.mutable_detect()->ParseFromString(
        WithImages<v1::DetectRequest>(images));
    corpus.Add("stream_message", name,
               Byte(2) + Byte(80) + Byte(160) + item.SerializeAsString());
    add_one(0, absl::StrCat("classify_", name),
            WithImages<v1::ClassifyRequest>(images));
    add_one(1, absl::StrCat("detect_", name),
            WithImages<v1::DetectRequest>(images));
    add_one(2, absl::StrCat("segment_", name),
            WithImages<v1::SegmentRequest>(images));
  };
  add("pixels", pixels);
  add("tensors", tensors);
  add("files", files);
  v1::StreamPredictRequest config;
  config.mutable_config()->set_max_in_flight(4);
  config.mutable_config()->set_preserve_order(true);
  corpus.Add("stream_message", "config", Byte(0) + config.SerializeAsString());
}

// The functions below add settings.

// Sets every field to a value similar to its default. A repeated field gets two
// values.
void FillAll(google::protobuf::Message* message) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& set = *message->GetReflection();
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const Field* field = type.field(i);
    if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      FillAll(field->is_repeated() ? set.AddMessage(message, field)
                                   : set.MutableMessage(message, field));
      continue;
    }
    std::string text = "1";
    if (field->cpp_type() == Field::CPPTYPE_STRING) text = "\"x\"";
    if (field->cpp_type() == Field::CPPTYPE_BOOL) text = "true";
    if (field->cpp_type() == Field::CPPTYPE_ENUM) {
      text = field->enum_type()
                 ->value(field->enum_type()->value_count() - 1)
                 ->name();
    }
    google::protobuf::TextFormat::Parser parser;
    parser.ParseFieldValueFromString(text, field, message);
    if (field->is_repeated()) {
      parser.ParseFieldValueFromString(text, field, message);
    }
  }
}

std::string Text(const google::protobuf::Message& message) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  return text;
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

void AddConfigs(const Corpus& corpus) {
  v1::ServerConfig server;
  FillAll(&server);
  corpus.Add("server_config", "every_field", Text(server));
  server.Clear();
  server.set_model_repository("x");
  corpus.Add("server_config", "valid", Text(server::WithDefaults(server)));
  v1::ModelConfig model;
  FillAll(&model);
  corpus.Add("model_config", "every_field", Byte(0) + Text(model));
  for (const char* name :
       {"everyday", "everyday_detector", "everyday_segmenter", "photographs"}) {
    corpus.Add("model_config", name,
               Byte(20) + ReadFile(absl::StrCat("models/", name,
                                                "/1/config.textproto")));
  }
  corpus.Add("model_config", "variant", Byte(0) + "num_classes: 3");
}

// The functions below add the other inputs.

void AddRunLengths(const Corpus& corpus) {
  const base::Mask mask = [] {
    base::Mask mask;
    mask.left = 3, mask.top = 2, mask.width = 4, mask.height = 3;
    mask.data = {0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 0, 0};
    return mask;
  }();
  corpus.Add("coco_rle", "mask",
             Byte(0) + Byte(17) + Byte(23) +
                 base::EncodeRle(mask, 0, 0, /*height=*/18, /*width=*/24));
  corpus.Add("coco_rle", "empty", Byte(0) + Byte(1) + Byte(1) + "4");
  std::string map;
  for (int i = 0; i < 300; ++i) map += Byte(i / 7 % 5);
  corpus.Add("coco_rle", "map", Byte(1) + Byte(11) + Byte(3) + map);
}

void AddSafetensors(const Corpus& corpus) {
  const std::string path =
      std::filesystem::temp_directory_path() / "seed.safetensors";
  std::vector<uint8_t> data(64);
  for (size_t i = 0; i < data.size(); ++i) data[i] = i;
  const absl::Span<const uint8_t> bytes = data;
  const absl::Status written = weights::WriteSafetensors(
      path, {{"a.weight", {weights::DType::kF32, {2, 3}, bytes.subspan(0, 24)}},
             {"b.\xc3\xa9", {weights::DType::kBF16, {4}, bytes.subspan(24, 8)}},
             {"c", {weights::DType::kI64, {}, bytes.subspan(32, 8)}},
             {"empty", {weights::DType::kU8, {0, 7}, {}}}});
  if (!written.ok()) std::abort();
  corpus.Add("safetensors", "tensors", ReadFile(path));
  std::filesystem::remove(path);
  const auto with_header = [](const std::string& header) {
    return Byte(header.size()) + std::string(7, '\0') + header;
  };
  corpus.Add("safetensors", "none", with_header("{}"));
  corpus.Add("safetensors", "escapes",
             with_header(R"({"__metadata__":{"\ud83d\ude00\n":"\u00e9\"\\\/"},)"
                         R"("\ud83d\ude00":{"shape":[1],"dtype":"U8",)"
                         R"("data_offsets":[0,1]}} )") +
                 "x");
}

void Write(const Corpus& corpus) {
  for (const auto& [name, file] : Pictures()) {
    corpus.Add("image_decoder", name, file);
    corpus.Add("image_header", name, file);
  }
  for (const auto& [name, bytes] : HttpConnections()) {
    corpus.Add("http_request", name, bytes);
  }
  AddRequests(corpus);
  AddKserveSeeds(corpus);
  AddConfigs(corpus);
  AddRunLengths(corpus);
  AddSafetensors(corpus);
  corpus.Add("trace_context", "valid",
             "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  corpus.Add("trace_context", "state",
             "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-x\n"
             "rojo=00f067aa0ba902b7,tenant@congo=t61rcWkgMzE");
}

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_seeds FOLDER\n");
    return 2;
  }
  sfmamba::Write(sfmamba::Corpus(argv[1]));
}
