#ifndef SFMAMBA_CLIENT_PICTURE_LETTERING_H_
#define SFMAMBA_CLIENT_PICTURE_LETTERING_H_

#include <string>

#include "opencv2/core.hpp"

namespace sfmamba::client {

// Writes lines of text, of a size and weight that suit a picture's: 8 pixels
// high at least, and readable still when a large picture is shown small.
class Lettering {
 public:
  explicit Lettering(cv::Size picture);

  // Returns the size in pixels of a line with its margin. Long texts are cut,
  // see Write().
  cv::Size BoxSize(const std::string& text) const;

  // The width of lines that go with the text.
  int stroke() const { return stroke_; }

  // Writes into the box whose corner is `top_left`, black or white, whichever
  // is clearer on `background` (R, G, B), which the caller paints. Only the
  // first 40 bytes of a text are written.
  void Write(const std::string& text, cv::Point top_left,
             const cv::Scalar& background, cv::Mat* canvas) const;

 private:
  int stroke_;
  double scale_;  // Scale factor of OpenCV's font.
  int margin_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_PICTURE_LETTERING_H_
