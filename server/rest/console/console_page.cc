#include "server/rest/console/console_page.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/rest/console/console_files.h"
#include "server/rest/error_response.h"

namespace sfmamba::rest {
namespace {

constexpr absl::string_view kFolder = "/console/";
constexpr absl::string_view kPage = "index.html";

// The content security policy. Allows only files and requests of this server,
// and no inline code. Trusted types prevent text from becoming markup or
// script.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'";

constexpr std::pair<absl::string_view, absl::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".webp", "image/webp"},
};

std::string ContentType(absl::string_view name) {
  for (const auto& [suffix, type] : kTypes) {
    if (absl::EndsWith(name, suffix)) return std::string(type);
  }
  return "application/octet-stream";
}

const EmbeddedFile* Find(absl::string_view path) {
  const absl::string_view name =
      path == "/" ? kPage : absl::StripPrefix(path, kFolder);
  for (const EmbeddedFile& file : ConsoleFiles()) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

// Returns true if an If-None-Match header contains `etag`. A request may have
// several such headers with several tags each. Weak tags also match (RFC 9110,
// 13.1.2).
bool HasTag(const http::HttpRequest& request, absl::string_view etag) {
  const auto [begin, end] = request.headers.equal_range("if-none-match");
  for (auto header = begin; header != end; ++header) {
    for (absl::string_view tag : absl::StrSplit(header->second, ',')) {
      tag = absl::StripAsciiWhitespace(tag);
      if (tag == "*" || absl::StripPrefix(tag, "W/") == etag) return true;
    }
  }
  return false;
}

}  // namespace

http::HttpResponse ConsolePage(const http::HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    return OtherMethod(request.method, "GET, HEAD, OPTIONS");
  }
  const EmbeddedFile* const file = Find(request.path);
  if (file == nullptr) {
    return RefusalResponse(404, "the console has no such file; its page is /");
  }
  http::HttpResponse response;
  response.headers = {
      {"Content-Type", ContentType(file->name)},
      // Browsers revalidate the file on each use and download it only if it
      // changed.
      {"Cache-Control", "no-cache"},
      {"ETag", std::string(file->etag)},
      {"Content-Security-Policy", kPolicy},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
  };
  if (HasTag(request, file->etag)) {
    response.status = 304;
  } else {
    response.body.push_back(std::string(file->content));
  }
  return response;
}

}  // namespace sfmamba::rest
