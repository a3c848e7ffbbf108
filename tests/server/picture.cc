#include "tests/server/picture.h"

#include <algorithm>
#include <cstdio>  // jpeglib.h needs FILE and size_t.
#include <cstdlib>
#include <utility>
#include <vector>

#include "jpeglib.h"
#include "png.h"
#include "webp/encode.h"
#include "zlib.h"

namespace sfmamba::server {
namespace {

std::string BigEndian(uint32_t value, int size) {
  std::string bytes;
  for (int i = size - 1; i >= 0; --i) bytes.push_back(value >> (8 * i));
  return bytes;
}

std::string LittleEndian(uint32_t value, int size) {
  const std::string bytes = BigEndian(value, size);
  return std::string(bytes.rbegin(), bytes.rend());
}

}  // namespace

image::RgbImage Gradient(int width, int height) {
  image::RgbImage image;
  image.width = width;
  image.height = height;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.data.push_back(255 * x / width);
      image.data.push_back(255 * y / height);
      image.data.push_back(255 - 255 * (x + y) / (width + height));
    }
  }
  return image;
}

image::RgbImage WithRed(int width, int height, const image::PixelRect& red) {
  image::RgbImage image;
  image.width = width;
  image.height = height;
  image.data.assign(size_t{3} * width * height, 100);
  for (int y = red.top; y < red.top + red.height; ++y) {
    for (int x = red.left; x < red.left + red.width; ++x) {
      uint8_t* pixel = &image.data[size_t{3} * (y * width + x)];
      pixel[0] = 255;
      pixel[1] = pixel[2] = 0;
    }
  }
  return image;
}

image::RgbImage Crop(const image::RgbImage& image,
                     const image::PixelRect& rect) {
  image::RgbImage result{rect.width, rect.height, {}};
  for (int y = rect.top; y < rect.top + rect.height; ++y) {
    const uint8_t* const row =
        &image.data[size_t{3} * (y * image.width + rect.left)];
    result.data.insert(result.data.end(), row, row + 3 * rect.width);
  }
  return result;
}

int MaxDifference(const image::RgbImage& a, const image::RgbImage& b) {
  if (a.width != b.width || a.height != b.height ||
      a.data.size() != b.data.size()) {
    return 256;
  }
  int difference = 0;
  for (size_t i = 0; i < a.data.size(); ++i) {
    difference = std::max(difference, std::abs(a.data[i] - b.data[i]));
  }
  return difference;
}

std::string EncodeJpeg(int width, int height, int components,
                       const uint8_t* data,
                       std::function<void(jpeg_compress_struct&)> adjust) {
  jpeg_compress_struct compress;
  jpeg_error_mgr error;
  compress.err = jpeg_std_error(&error);
  jpeg_create_compress(&compress);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&compress, &bytes, &size);
  compress.image_width = width;
  compress.image_height = height;
  compress.input_components = components;
  compress.in_color_space = components == 1   ? JCS_GRAYSCALE
                            : components == 3 ? JCS_RGB
                                              : JCS_CMYK;
  jpeg_set_defaults(&compress);
  jpeg_set_quality(&compress, 95, TRUE);
  if (adjust) adjust(compress);
  jpeg_start_compress(&compress, TRUE);
  while (compress.next_scanline < height) {
    JSAMPROW row = const_cast<JSAMPROW>(data + size_t{1} * components * width *
                                                   compress.next_scanline);
    jpeg_write_scanlines(&compress, &row, 1);
  }
  jpeg_finish_compress(&compress);
  jpeg_destroy_compress(&compress);
  std::string result(reinterpret_cast<char*>(bytes), size);
  free(bytes);
  return result;
}

std::string EncodeJpeg(const image::RgbImage& image) {
  return EncodeJpeg(image.width, image.height, 3, image.data.data());
}

std::string Before(std::string jpeg, absl::string_view marker,
                   absl::string_view bytes) {
  return jpeg.insert(jpeg.find(marker.data(), 0, marker.size()), bytes.data(),
                     bytes.size());
}

std::string App1(absl::string_view exif) {
  return "\xFF\xE1" + BigEndian(exif.size() + 2, 2) + std::string(exif);
}

std::string WithExif(const std::string& jpeg, absl::string_view exif) {
  return jpeg.substr(0, 2) + App1(exif) + jpeg.substr(2);
}

std::string ExifOrientation(int orientation, bool little_endian) {
  const auto number = little_endian ? LittleEndian : BigEndian;
  return std::string("Exif\0\0", 6) + (little_endian ? "II" : "MM") +
         number(42, 2) + number(8, 4) + number(1, 2) + number(0x0112, 2) +
         number(3, 2) + number(1, 4) + number(orientation, 2) + number(0, 2) +
         number(0, 4);
}

uint8_t PaletteColor(int index, int channel) {
  return 60 * index + 20 * channel;
}

std::string EncodePng(int width, int height, const PngOptions& options,
                      const std::string& data) {
  png_structp png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string result;
  png_set_write_fn(
      png, &result,
      [](png_structp png, png_bytep bytes, size_t size) {
        static_cast<std::string*>(png_get_io_ptr(png))
            ->append(reinterpret_cast<char*>(bytes), size);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, width, height, options.bit_depth, options.color_type,
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (options.color_type == PNG_COLOR_TYPE_PALETTE) {
    png_color palette[4];
    for (int i = 0; i < 4; ++i) {
      palette[i] = {PaletteColor(i, 0), PaletteColor(i, 1), PaletteColor(i, 2)};
    }
    png_set_PLTE(png, info, palette, 4);
  }
  png_write_info(png, info);
  const size_t stride = png_get_rowbytes(png, info);
  std::vector<png_bytep> rows;
  for (int y = 0; y < height; ++y) {
    rows.push_back(reinterpret_cast<png_bytep>(
        const_cast<char*>(data.data() + stride * y)));
  }
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return result;
}

std::string EncodePng(const image::RgbImage& image) {
  return EncodePng(image.width, image.height, PngOptions(),
                   std::string(image.data.begin(), image.data.end()));
}

std::string PngChunk(absl::string_view type, absl::string_view payload) {
  const std::string body = std::string(type) + std::string(payload);
  const uint32_t crc =
      crc32(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
  return BigEndian(payload.size(), 4) + body + BigEndian(crc, 4);
}

std::string WithWrongCrc(std::string png, absl::string_view type) {
  const size_t at = png.find(type.data(), 0, type.size());
  size_t length = 0;
  for (int i = 4; i > 0; --i) {
    length = length << 8 | static_cast<uint8_t>(png[at - i]);
  }
  png[at + 4 + length] ^= 1;
  return png;
}

std::string WithChunk(const std::string& png, absl::string_view chunk) {
  constexpr int kAfterHeader = 33;
  return png.substr(0, kAfterHeader) + std::string(chunk) +
         png.substr(kAfterHeader);
}

std::string EncodeWebp(const image::RgbImage& image, bool lossless) {
  uint8_t* bytes = nullptr;
  const int stride = 3 * image.width;
  const size_t size =
      lossless ? WebPEncodeLosslessRGB(image.data.data(), image.width,
                                       image.height, stride, &bytes)
               : WebPEncodeRGB(image.data.data(), image.width, image.height,
                               stride, 95, &bytes);
  std::string result(reinterpret_cast<char*>(bytes), size);
  WebPFree(bytes);
  return result;
}

std::string EncodeWebpWithAlpha(int width, int height, int noise) {
  std::vector<uint8_t> rgba(size_t{4} * width * height, 100);
  uint32_t random = 1;
  for (size_t i = 3; i < rgba.size(); i += 4) {
    random = random * 1664525 + 1013904223;
    rgba[i] = 254 - (random >> 24) * noise / 256;
  }
  uint8_t* bytes = nullptr;
  const size_t size =
      WebPEncodeRGBA(rgba.data(), width, height, 4 * width, 95, &bytes);
  std::string result(reinterpret_cast<char*>(bytes), size);
  WebPFree(bytes);
  return result;
}

}  // namespace sfmamba::server
