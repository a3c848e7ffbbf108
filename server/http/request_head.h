#ifndef SFMAMBA_SERVER_HTTP_REQUEST_HEAD_H_
#define SFMAMBA_SERVER_HTTP_REQUEST_HEAD_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::http {

// What is known of a request from the bytes that have come so far.
struct RequestHead {
  // 0: more bytes are needed. 200: `text` is the head. Else the status that the
  // request is refused with: 400 (not a request, or a header with a line break
  // within), 413 (a body), 431 (longer than `max_bytes`).
  int status = 0;
  // Request line, headers and the empty line, without the headers that the
  // server does not serve: ranges, and what an empty body would be packed by.
  std::string text;
};

RequestHead ReadHead(absl::string_view bytes, size_t max_bytes);

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_REQUEST_HEAD_H_
