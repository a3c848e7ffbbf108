#include "server/http/http_options.h"

namespace sfmamba::http {

HttpResponse PlainRefusal(int status, const std::string& message) {
  HttpResponse response;
  response.status = status;
  response.headers = {{"Content-Type", "text/plain; charset=utf-8"}};
  response.body = {message, "\n"};
  return response;
}

}  // namespace sfmamba::http
