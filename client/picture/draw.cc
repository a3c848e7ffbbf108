#include "client/picture/draw.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/picture/lettering.h"
#include "client/picture/masks.h"
#include "opencv2/core.hpp"
#include "opencv2/imgproc.hpp"

namespace sfmamba::client {
namespace {

constexpr int kMaxLegendEntries = 40;
constexpr uint8_t kLegendBackground = 255;

using Color = std::array<uint8_t, 3>;

// Returns a matrix that shares the picture's pixels (R, G, B).
cv::Mat Wrap(Picture* picture) {
  return cv::Mat(picture->height, picture->width, CV_8UC3,
                 picture->data.data());
}

cv::Scalar ToScalar(const Color& color) {
  return cv::Scalar(color[0], color[1], color[2]);
}

std::string LabelOr(const std::string& label, int class_id) {
  return label.empty() ? absl::StrCat("class ", class_id) : label;
}

void Blend(const Color& color, uint8_t* pixel) {
  for (int c = 0; c < 3; ++c) pixel[c] = (pixel[c] + color[c] + 1) / 2;
}

absl::Status CheckSize(const Picture& picture, int width, int height) {
  if (picture.width == width && picture.height == height) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      "the answer is about ", width, " x ", height, " pixels, the picture has ",
      picture.width, " x ", picture.height));
}

// ---- Detections ----

absl::StatusOr<Mask> MaskOf(const Picture& picture,
                            const v1::Detection& detection) {
  if (detection.has_rle()) {
    const absl::Status status =
        CheckSize(picture, detection.rle().width(), detection.rle().height());
    if (!status.ok()) return status;
  }
  return DecodeMask(detection);
}

// Blends the mask's pixels that are on the canvas with `color`. The outermost
// `outline` pixels of the mask get exactly `color`.
void PaintMask(Mask mask, const Color& color, int outline, cv::Mat* canvas) {
  if (mask.data.empty()) return;
  const cv::Mat set(mask.height, mask.width, CV_8UC1, mask.data.data());
  cv::Mat inner;
  cv::erode(set, inner, cv::Mat::ones(3, 3, CV_8UC1), cv::Point(-1, -1),
            outline, cv::BORDER_CONSTANT, cv::Scalar(0));
  const int rows = std::min(mask.height, canvas->rows - mask.top);
  const int columns = std::min(mask.width, canvas->cols - mask.left);
  for (int y = 0; y < rows; ++y) {
    uint8_t* pixel = canvas->ptr(mask.top + y, mask.left);
    for (int x = 0; x < columns; ++x, pixel += 3) {
      if (inner.at<uint8_t>(y, x) != 0) {
        Blend(color, pixel);
      } else if (set.at<uint8_t>(y, x) != 0) {
        std::copy(color.begin(), color.end(), pixel);
      }
    }
  }
}

// Returns the pixels that the box touches, clipped to the picture. At least one
// pixel is returned.
cv::Rect PixelsOf(const v1::BoundingBox& box, cv::Size picture) {
  // Infinite, NaN or huge coordinates become an edge of the picture.
  const auto cut = [](float value, int limit) {
    return value > 0 ? std::min<float>(value, limit) : 0.0f;
  };
  const auto range = [&](float low, float high, int size) {
    const int begin = std::min<int>(std::floor(cut(low, size)), size - 1);
    const int end = std::ceil(cut(high, size));
    return cv::Range(begin, std::max(end, begin + 1));
  };
  const cv::Range x = range(box.x_min(), box.x_max(), picture.width);
  const cv::Range y = range(box.y_min(), box.y_max(), picture.height);
  return cv::Rect(x.start, y.start, x.size(), y.size());
}

// Returns the place of a label of `size` that belongs to `box`. The place lies
// inside the picture. It does not overlap other labels if any of seven places
// at the box is free.
cv::Rect PlaceLabel(cv::Size size, const cv::Rect& box, cv::Size picture,
                    const std::vector<cv::Rect>& placed) {
  const int right = box.x + box.width - size.width;
  const int bottom = box.y + box.height;
  const cv::Point places[] = {{box.x, box.y - size.height},
                              {box.x, box.y},
                              {right, box.y - size.height},
                              {right, box.y},
                              {box.x, bottom},
                              {box.x, bottom - size.height},
                              {right, bottom - size.height}};
  const auto into_picture = [&](cv::Point place) {
    place.x = std::max(0, std::min(place.x, picture.width - size.width));
    place.y = std::max(0, std::min(place.y, picture.height - size.height));
    return cv::Rect(place, size);
  };
  for (const cv::Point& place : places) {
    const cv::Rect label = into_picture(place);
    const bool free = std::none_of(
        placed.begin(), placed.end(),
        [&](const cv::Rect& other) { return (label & other).area() > 0; });
    if (free) return label;
  }
  return into_picture(places[0]);
}

void PaintLabels(const v1::DetectResult& result, const Lettering& lettering,
                 cv::Mat* canvas) {
  std::vector<cv::Rect> placed;
  for (const v1::Detection& detection : result.detections()) {
    std::string text = absl::StrFormat(
        "%s %.2f", LabelOr(detection.label(), detection.class_id()),
        detection.score());
    if (detection.crop().categories_size() > 0) {
      const v1::Category& best = detection.crop().categories(0);
      absl::StrAppendFormat(&text, ", %s %.2f",
                            LabelOr(best.label(), best.class_id()),
                            best.score());
    }
    placed.push_back(PlaceLabel(lettering.BoxSize(text),
                                PixelsOf(detection.box(), canvas->size()),
                                canvas->size(), placed));
    const cv::Scalar color = ToScalar(ClassColor(detection.class_id()));
    cv::rectangle(*canvas, placed.back(), color, cv::FILLED);
    lettering.Write(text, placed.back().tl(), color, canvas);
  }
}

// ---- Heat maps ----

std::string HeatMapLabel(const v1::ClassifyResult& result) {
  const int class_id = result.heat_map().class_id();
  for (const v1::Category& category : result.categories()) {
    if (category.class_id() != class_id) continue;
    return absl::StrFormat("%s %.2f", LabelOr(category.label(), class_id),
                           category.score());
  }
  return LabelOr("", class_id);
}

// Returns the colours (R, G, B) of the values 0 to 255.
std::vector<Color> HeatColors() {
  cv::Mat values(1, 256, CV_8UC1), colors;
  for (int i = 0; i < 256; ++i) values.at<uint8_t>(0, i) = i;
  cv::applyColorMap(values, colors, cv::COLORMAP_JET);
  std::vector<Color> result;
  for (int i = 0; i < 256; ++i) {
    const auto& bgr = colors.at<cv::Vec3b>(0, i);
    result.push_back({bgr[2], bgr[1], bgr[0]});
  }
  return result;
}

// ---- Segmentation ----

struct LegendEntry {
  std::string text;
  Color color;
};

// Returns the class whose pixels are left unpainted, or -1 if there is none.
int BackgroundOf(const v1::SegmentResult& result) {
  for (const v1::ClassArea& area : result.areas()) {
    if (area.label() == "background") return area.class_id();
  }
  return -1;
}

// Paints each pixel in its class's colour. Returns each class's number of
// pixels.
std::map<int, int64_t> PaintClasses(const IndexMap& map, int background,
                                    Picture* picture) {
  std::vector<int64_t> counts(size_t{1} << 16);
  for (const uint16_t index : map.data) ++counts[index];
  counts[map.ignore] = 0;
  std::map<int, int64_t> present;
  std::vector<Color> colors(counts.size());
  for (size_t index = 0; index < counts.size(); ++index) {
    if (counts[index] == 0) continue;
    present[index] = counts[index];
    colors[index] = ClassColor(index);
  }
  for (size_t i = 0; i < map.data.size(); ++i) {
    if (map.data[i] == map.ignore || map.data[i] == background) continue;
    Blend(colors[map.data[i]], &picture->data[3 * i]);
  }
  return present;
}

// Returns the legend, with the largest class first. After kMaxLegendEntries
// entries, a last one gives the number of other classes.
std::vector<LegendEntry> MakeLegend(const std::map<int, int64_t>& present,
                                    int64_t pixels,
                                    const v1::SegmentResult& result) {
  std::map<int, std::string> labels;
  for (const v1::ClassArea& area : result.areas()) {
    labels[area.class_id()] = area.label();
  }
  std::vector<std::pair<int64_t, int>> order;  // Sorts by size, then class.
  for (const auto& [index, count] : present) order.push_back({-count, index});
  std::sort(order.begin(), order.end());
  const int background = BackgroundOf(result);
  constexpr Color kNoColor = {kLegendBackground, kLegendBackground,
                              kLegendBackground};
  std::vector<LegendEntry> legend;
  for (const auto& [negative_count, index] : order) {
    if (legend.size() == kMaxLegendEntries) {
      legend.push_back(
          {absl::StrCat(order.size() - legend.size(), " more"), kNoColor});
      break;
    }
    legend.push_back(
        {absl::StrFormat("%s %.1f %%", LabelOr(labels[index], index),
                         -100.0 * negative_count / pixels),
         index == background ? kNoColor : ClassColor(index)});
  }
  return legend;
}

// The layout of a legend as a grid of equal cells. Each cell has a coloured
// square and a text.
struct LegendLayout {
  cv::Size cell;
  int columns = 0;
  int rows = 0;
  // The legend's top left corner on the canvas.
  cv::Point corner;
  // The canvas holds the picture in its top left corner, and the legend.
  cv::Size canvas;
};

LegendLayout LayOut(const std::vector<LegendEntry>& legend, cv::Size picture,
                    const Lettering& lettering) {
  LegendLayout layout;
  for (const LegendEntry& entry : legend) {
    const cv::Size text = lettering.BoxSize(entry.text);
    layout.cell.width = std::max(layout.cell.width, text.width + text.height);
    layout.cell.height = std::max(layout.cell.height, text.height);
  }
  const int count = legend.size();
  layout.canvas = picture;
  if (picture.width >= picture.height) {
    layout.columns =
        std::max(1, std::min(count, picture.width / layout.cell.width));
    layout.rows = (count + layout.columns - 1) / layout.columns;
    layout.corner = {0, picture.height};
    layout.canvas.width =
        std::max(picture.width, layout.columns * layout.cell.width);
    layout.canvas.height += layout.rows * layout.cell.height;
  } else {
    layout.rows =
        std::max(1, std::min(count, picture.height / layout.cell.height));
    layout.columns = (count + layout.rows - 1) / layout.rows;
    layout.corner = {picture.width, 0};
    layout.canvas.width += layout.columns * layout.cell.width;
    layout.canvas.height =
        std::max(picture.height, layout.rows * layout.cell.height);
  }
  return layout;
}

Picture AddLegend(Picture picture, const std::vector<LegendEntry>& legend) {
  if (legend.empty()) return picture;
  const cv::Mat drawn = Wrap(&picture);
  const Lettering lettering(drawn.size());
  const LegendLayout layout = LayOut(legend, drawn.size(), lettering);
  Picture extended;
  extended.width = layout.canvas.width;
  extended.height = layout.canvas.height;
  extended.data.assign(size_t{3} * extended.width * extended.height,
                       kLegendBackground);
  cv::Mat canvas = Wrap(&extended);
  drawn.copyTo(canvas(cv::Rect(cv::Point(), drawn.size())));
  const int side = layout.cell.height;
  const int gap = side / 6;
  for (size_t i = 0; i < legend.size(); ++i) {
    const int column = i % layout.columns;
    const int row = i / layout.columns;
    const cv::Point cell = layout.corner + cv::Point(column * layout.cell.width,
                                                     row * layout.cell.height);
    cv::rectangle(
        canvas,
        cv::Rect(cell.x + gap, cell.y + gap, side - 2 * gap, side - 2 * gap),
        ToScalar(legend[i].color), cv::FILLED);
    lettering.Write(legend[i].text, cell + cv::Point(side, 0),
                    cv::Scalar::all(kLegendBackground), &canvas);
  }
  return extended;
}

}  // namespace

// Source: docs/heads.md, "Labels and colours".
std::array<uint8_t, 3> ClassColor(int class_id) {
  Color color = {0, 0, 0};
  uint32_t value = static_cast<uint32_t>(class_id) + 1;
  for (int bit = 7; bit >= 0; --bit, value >>= 3) {
    for (int c = 0; c < 3; ++c) color[c] |= (value >> c & 1) << bit;
  }
  return color;
}

absl::StatusOr<Picture> DrawDetections(const Picture& picture,
                                       const v1::DetectResult& result) {
  const absl::Status status =
      CheckSize(picture, result.image_width(), result.image_height());
  if (!status.ok()) return status;
  Picture drawn = picture;
  cv::Mat canvas = Wrap(&drawn);
  const Lettering lettering(canvas.size());
  // The most certain detections come first. They are painted last, over the
  // others.
  for (int i = result.detections_size() - 1; i >= 0; --i) {
    const v1::Detection& detection = result.detections(i);
    absl::StatusOr<Mask> mask = MaskOf(picture, detection);
    if (!mask.ok()) {
      return absl::DataLossError(
          absl::StrCat("detection ", i, ": ", mask.status().message()));
    }
    PaintMask(*std::move(mask), ClassColor(detection.class_id()),
              lettering.stroke(), &canvas);
  }
  for (int i = result.detections_size() - 1; i >= 0; --i) {
    const v1::Detection& detection = result.detections(i);
    cv::rectangle(canvas, PixelsOf(detection.box(), canvas.size()),
                  ToScalar(ClassColor(detection.class_id())),
                  lettering.stroke() + 1);
  }
  PaintLabels(result, lettering, &canvas);
  return drawn;
}

absl::StatusOr<Picture> DrawHeatMap(const Picture& picture,
                                    const v1::ClassifyResult& result) {
  const absl::StatusOr<IndexMap> map = DecodePngIndex(result.heat_map().png());
  if (!map.ok()) return map.status();
  const absl::Status status = CheckSize(picture, map->width, map->height);
  if (!status.ok()) return status;
  Picture drawn = picture;
  const std::vector<Color> colors = HeatColors();
  for (size_t i = 0; i < map->data.size(); ++i) {
    const int value = std::min<int>(map->data[i], 255);
    uint8_t* const pixel = &drawn.data[3 * i];
    for (int c = 0; c < 3; ++c) {
      pixel[c] += (colors[value][c] - pixel[c]) * value * 3 / (4 * 255);
    }
  }
  cv::Mat canvas = Wrap(&drawn);
  const Lettering lettering(canvas.size());
  const std::string text = HeatMapLabel(result);
  const cv::Scalar background = cv::Scalar::all(kLegendBackground);
  cv::rectangle(canvas, cv::Rect(cv::Point(), lettering.BoxSize(text)),
                background, cv::FILLED);
  lettering.Write(text, cv::Point(), background, &canvas);
  return drawn;
}

absl::StatusOr<Picture> DrawSegmentation(const Picture& picture,
                                         const v1::SegmentResult& result) {
  const absl::StatusOr<IndexMap> map = DecodeIndexMap(result);
  if (!map.ok()) return map.status();
  const absl::Status status = CheckSize(picture, map->width, map->height);
  if (!status.ok()) return status;
  Picture drawn = picture;
  const std::map<int, int64_t> present =
      PaintClasses(*map, BackgroundOf(result), &drawn);
  return AddLegend(std::move(drawn),
                   MakeLegend(present, map->data.size(), result));
}

}  // namespace sfmamba::client
