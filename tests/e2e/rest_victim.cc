#include "tests/e2e/rest_victim.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "httplib.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int kSeconds = 5;

std::string OnePicture() {
  v1::ClassifyRequest request;
  v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
  pixels.set_width(80);
  pixels.set_height(72);
  pixels.set_format(v1::PixelBuffer::GRAY8);
  pixels.set_data(std::string(80 * 72, 'a'));
  return request.SerializeAsString();
}

}  // namespace

RestVictim::RestVictim(int port, absl::Duration interval)
    : thread_([this, port, interval] { Run(port, interval); }) {}

RestVictim::~RestVictim() {
  if (!stop_.HasBeenNotified()) Stop();
}

Victim::Count RestVictim::Stop() {
  stop_.Notify();
  Join(thread_, "the victim over REST", kTestPatience);
  return count_;
}

void RestVictim::Run(int port, absl::Duration interval) {
  const std::string body = OnePicture();
  do {
    httplib::Client client("127.0.0.1", port);
    client.set_read_timeout(kSeconds);
    ++count_.sent;
    const httplib::Result result =
        client.Post("/v1/models/tiny:classify", body, "application/x-protobuf");
    if (result && result->status == 200) {
      ++count_.answered;
    } else if (count_.first_error.empty()) {
      count_.first_error =
          result ? absl::StrCat(result->status, ": ", result->body)
                 : httplib::to_string(result.error());
    }
  } while (!stop_.WaitForNotificationWithTimeout(interval));
}

}  // namespace sfmamba
