#ifndef SFMAMBA_CLIENT_PICTURE_LETTERING_H_
#define SFMAMBA_CLIENT_PICTURE_LETTERING_H_

#include <string>

#include "opencv2/core.hpp"

namespace sfmamba::client {

// Writes lines of text whose size and weight suit a picture. Letters are at
// least 8 pixels high. They stay readable if a large picture is shown small.
class Lettering {
 public:
  explicit Lettering(cv::Size picture);

  // Returns the size in pixels of a line of text with its margin. Long texts
  // are shortened (see Write()).
  cv::Size BoxSize(const std::string& text) const;

  // Returns the thickness in pixels of the letters' strokes. It also suits
  // lines that are drawn near the text, for example boxes.
  int stroke() const { return stroke_; }

  // Writes `text` into a box whose top left corner is `top_left`. The text is
  // black or white, whichever is clearer on `background` (R, G, B). The caller
  // paints the background. If a text has more than 40 bytes, its first 37 bytes
  // and "..." are written.
  void Write(const std::string& text, cv::Point top_left,
             const cv::Scalar& background, cv::Mat* canvas) const;

 private:
  int stroke_;
  double scale_;  // Scale factor of OpenCV's font.
  int margin_;    // In pixels.
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_LETTERING_H_
