#include "server/tracing/collector.h"

#include <cstddef>
#include <memory>

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "curl/curl.h"

namespace sfmamba::tracing {
namespace {

constexpr int kPollMillis = 50;
constexpr size_t kMaxAnswer = 64 << 10;

// A libcurl write function: reads past an answer, up to kMaxAnswer bytes.
size_t Skip(char* /*data*/, size_t size, size_t count, void* read) {
  size_t& total = *static_cast<size_t*>(read);
  total += size * count;
  return total > kMaxAnswer ? 0 : size * count;
}

void InitCurl() {
  static absl::once_flag once;
  absl::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

// A part of the URL; empty if it has none.
std::string Part(const Url& url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, 0) != CURLUE_OK) return "";
  std::string result(text);
  curl_free(text);
  return result;
}

}  // namespace

absl::Status CollectorStatus(long code) {  // NOLINT: libcurl's type.
  if (code >= 200 && code < 300) return absl::OkStatus();
  const std::string text =
      absl::StrCat("trace_endpoint: the collector answers with ", code);
  // OTLP/HTTP, "Retryable Response Codes".
  if (code == 429 || code == 502 || code == 503 || code == 504) {
    return absl::UnavailableError(text);
  }
  return absl::FailedPreconditionError(text);
}

struct Collector::Handles {
  Handles() {
    InitCurl();
    easy = curl_easy_init();
    multi = curl_multi_init();
    headers = curl_slist_append(nullptr, "Content-Type: application/json");
    // Without an empty Expect, libcurl waits for "100 Continue" before it sends
    // a large post.
    headers = curl_slist_append(headers, "Expect:");
  }
  ~Handles() {
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
    curl_slist_free_all(headers);
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  template <typename Value>
  void Set(CURLoption option, Value value) {
    curl_easy_setopt(easy, option, value);
  }

  // Runs the transfer; CURLE_ABORTED_BY_CALLBACK once `stop` says so.
  CURLcode Run(absl::FunctionRef<bool()> stop) {
    // curl_easy_perform() would not return before the transfer has ended.
    CURLcode result = CURLE_FAILED_INIT;
    int running = 0;
    curl_multi_add_handle(multi, easy);
    while (curl_multi_perform(multi, &running) == CURLM_OK) {
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
        if (message->msg == CURLMSG_DONE) result = message->data.result;
      }
      if (running == 0) break;
      if (stop()) {
        result = CURLE_ABORTED_BY_CALLBACK;
        break;
      }
      curl_multi_poll(multi, nullptr, 0, kPollMillis, nullptr);
    }
    curl_multi_remove_handle(multi, easy);
    return result;
  }

  CURL* easy;
  CURLM* multi;
  curl_slist* headers;
  size_t answer_bytes = 0;
};

Collector::Collector(const Options& options)
    : handles_(std::make_unique<Handles>()) {
  Handles& curl = *handles_;
  curl.Set(CURLOPT_URL, options.url.c_str());
  curl.Set(CURLOPT_PROTOCOLS_STR, "http,https");
  curl.Set(CURLOPT_PROXY, "");  // Not even the environment's.
  // libcurl would time lookups of names by SIGALRM, which threads share.
  curl.Set(CURLOPT_NOSIGNAL, 1L);
  // The destructor does not wait for a lookup that goes on.
  curl.Set(CURLOPT_QUICK_EXIT, 1L);
  curl.Set(CURLOPT_CONNECTTIMEOUT_MS,
           static_cast<long>(  // NOLINT: libcurl's type.
               absl::ToInt64Milliseconds(options.connect_time)));
  curl.Set(CURLOPT_TIMEOUT_MS,
           static_cast<long>(  // NOLINT: libcurl's type.
               absl::ToInt64Milliseconds(options.time)));
  curl.Set(CURLOPT_HTTPHEADER, curl.headers);
  curl.Set(CURLOPT_USERAGENT, "sfmamba");
  curl.Set(CURLOPT_WRITEFUNCTION, &Skip);
  curl.Set(CURLOPT_WRITEDATA, &curl.answer_bytes);
  if (!options.ca_file.empty()) {
    curl.Set(CURLOPT_CAINFO, options.ca_file.c_str());
  }
}

Collector::~Collector() = default;

absl::Status Collector::Write(const std::string& request,
                              absl::FunctionRef<bool()> stop) {
  Handles& curl = *handles_;
  curl.answer_bytes = 0;
  curl.Set(CURLOPT_POSTFIELDSIZE_LARGE,
           static_cast<curl_off_t>(request.size()));
  curl.Set(CURLOPT_POSTFIELDS, request.data());
  const CURLcode result = curl.Run(stop);
  if (result == CURLE_ABORTED_BY_CALLBACK) {
    return absl::CancelledError("trace_endpoint: the server ends");
  }
  if (result != CURLE_OK) {
    return absl::UnavailableError(
        absl::StrCat("trace_endpoint: ", curl_easy_strerror(result)));
  }
  long code = 0;  // NOLINT: libcurl's type.
  curl_easy_getinfo(curl.easy, CURLINFO_RESPONSE_CODE, &code);
  return CollectorStatus(code);
}

absl::StatusOr<std::string> TracesUrl(absl::string_view endpoint) {
  const Url url(curl_url(), &curl_url_cleanup);
  const bool is_url =
      curl_url_set(url.get(), CURLUPART_URL, std::string(endpoint).c_str(),
                   0) == CURLUE_OK;
  const std::string scheme = Part(url, CURLUPART_SCHEME);
  if (!is_url || (scheme != "http" && scheme != "https")) {
    return absl::InvalidArgumentError(
        absl::StrCat("trace_endpoint: got \"", endpoint,
                     "\", expected a URL that begins with http:// or "
                     "https://"));
  }
  if (!Part(url, CURLUPART_USER).empty() ||
      !Part(url, CURLUPART_PASSWORD).empty()) {
    return absl::InvalidArgumentError(
        "trace_endpoint: got a URL with a user, expected one without");
  }
  if (Part(url, CURLUPART_PATH) == "/") {
    curl_url_set(url.get(), CURLUPART_PATH, "/v1/traces", 0);
  }
  return Part(url, CURLUPART_URL);
}

}  // namespace sfmamba::tracing
