// Sends requests with random headers and bodies to every path of the HTTP port
// concurrently, to find cases that no other test covers.

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "nlohmann/json.hpp"
#include "server/http/gzip.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/e2e/attacks/random_calls.h"
#include "tests/e2e/attacks/random_messages.h"

namespace sfmamba {
namespace {

namespace pb = google::protobuf;
using Json = nlohmann::json;
using Texts = std::vector<std::string>;

constexpr int kMostDepth = 4;  // Limits how deep messages are nested.

struct Verb {
  const char* name;
  const pb::Descriptor* request;
};

const std::vector<Verb>& Verbs() {
  static const auto* verbs =
      new std::vector<Verb>{{"classify", v1::ClassifyRequest::descriptor()},
                            {"detect", v1::DetectRequest::descriptor()},
                            {"segment", v1::SegmentRequest::descriptor()}};
  return *verbs;
}

// Makes random HTTP requests, most of them nearly valid. Thread-compatible.
class RandomRequests {
 public:
  RandomRequests(int seed, const RandomMessages::Words& words)
      : words_(words), random_(seed, WithoutModels(words)) {}

  httplib::Request Next() {
    httplib::Request request;
    const int kind = random_.Below(20);
    if (kind < 8) {
      AskVision(&request);
    } else if (kind < 15) {
      AskKserve(&request);
    } else if (kind < 18) {
      ChangeKserve(&request);
    } else {
      request.method = "GET";
      request.path = OneOf({"/",
                            "/console/",
                            "/console/none.js",
                            "/v1/models",
                            "/v1/models/a",
                            "/v1/models?page_size=1&page_token=1",
                            "/v1/models/tiny",
                            "/healthz",
                            "/readyz",
                            "/metrics",
                            "/openapi.json",
                            "/v2",
                            "/v2/health/live",
                            "/v2/health/ready",
                            "/v2/models/stats",
                            "/v2/models/tiny",
                            "/v2/models/tiny/config",
                            "/v2/models/finder/versions/1/ready",
                            "/v2/models/painter/stats",
                            "/v2/systemsharedmemory/status",
                            "/v2/trace/setting",
                            "/v2/logging",
                            "/v2//models",
                            "/%zz",
                            "/\x01",
                            "*",
                            "/.."});
    }
    if (random_.OneIn(30)) {
      request.method = OneOf({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH",
                              "OPTIONS", "TRACE", "NONE"});
    }
    AddHeaders(&request);
    return request;
  }

  RandomMessages& random() { return random_; }

 private:
  // Clears the words of fields that name a model, because the path names the
  // model.
  static RandomMessages::Words WithoutModels(RandomMessages::Words words) {
    for (auto& [field, values] : words) {
      if (field == "model" || absl::EndsWith(field, ".model")) values = {""};
    }
    return words;
  }

  std::string OneOf(const Texts& texts) {
    return texts[random_.Below(static_cast<int>(texts.size()))];
  }
  std::string Picture() { return OneOf(words_.at("encoded")); }
  std::string Model() { return OneOf({"tiny", "finder", "painter"}); }

  void AskVision(httplib::Request* request) {
    const Verb& verb = Verbs()[random_.Below(3)];
    // Mostly chooses the model that fits the task.
    static const auto* models = new std::map<std::string, std::string>{
        {"classify", "tiny"}, {"detect", "finder"}, {"segment", "painter"}};
    const std::string model =
        random_.OneIn(8) ? Model() : models->at(verb.name);
    request->method = "POST";
    request->path =
        absl::StrCat("/v1/models/", model,
                     random_.OneIn(8) ? "/versions/1" : "", ":", verb.name);
    switch (random_.Below(4)) {
      case 0:
        request->headers.emplace("Content-Type", "application/json");
        request->body = random_.NextJson(*verb.request);
        break;
      case 1:
        request->headers.emplace("Content-Type", "application/x-protobuf");
        request->body = random_.Next(*verb.request);
        break;
      case 2:
        request->body = Picture();
        random_.Spoil(&request->body);
        AddQuery(*verb.request, &request->path);
        break;
      default:
        request->headers.emplace("Content-Type",
                                 "multipart/form-data; boundary=b");
        for (int parts = 1 + random_.Below(3); parts > 0; --parts) {
          absl::StrAppend(
              &request->body, "--b\r\nContent-Disposition: form-data; name=\"",
              OneOf({"file", "images", "top_k", ""}), "\"",
              random_.OneIn(4) ? "" : "; filename=\"a\"", "\r\n\r\n",
              random_.OneIn(12) ? "3" : Picture(), "\r\n");
        }
        request->body += "--b--\r\n";
        random_.Spoil(&request->body);
        AddQuery(*verb.request, &request->path);
    }
  }

  // Adds the fields of a message and of its submessages to the query, with any
  // values.
  void AddQuery(const pb::Descriptor& type, std::string* path) {
    Texts names = {"none"};
    for (int i = 0; i < type.field_count(); ++i) {
      const pb::FieldDescriptor& field = *type.field(i);
      names.push_back(field.name());
      if (field.message_type() == nullptr) continue;
      for (int j = 0; j < field.message_type()->field_count(); ++j) {
        names.push_back(field.message_type()->field(j)->name());
      }
    }
    for (int left = random_.OneIn(2) ? random_.Below(3) : 0; left > 0; --left) {
      absl::StrAppend(path, path->find('?') == path->npos ? "?" : "&",
                      OneOf(names), "=");
      absl::StrAppend(path, OneOf({"0", "1", "1", "0.5", "true", "false", "-1",
                                   "1e30", "nan", "", "PNG", "a", "%00",
                                   "9223372036854775808", "%F0%9F%A6%80"}));
    }
  }

  void AskKserve(httplib::Request* request) {
    request->method = "POST";
    request->path =
        absl::StrCat("/v2/models/", Model(),
                     random_.OneIn(8) ? "/versions/1" : "", "/infer");
    if (random_.OneIn(5)) {
      request->body = Picture();
      return;
    }
    std::string tail;
    request->body = Inference(&tail).dump(
        -1, ' ', false, nlohmann::detail::error_handler_t::replace);
    random_.Spoil(&request->body);
    const int64_t length = request->body.size();
    if (!tail.empty() || random_.OneIn(5)) {
      request->headers.emplace(
          "Inference-Header-Content-Length",
          random_.OneIn(20) ? OneOf({"0", "-1", "1", "99999999999", "a", ""})
                            : absl::StrCat(length));
    }
    request->body += tail;
  }

  // Returns an inference request as JSON. Sets `tail` to the binary data that
  // follows the JSON.
  Json Inference(std::string* tail) {
    Json input = {{"name", "image"}, {"shape", {1}}, {"datatype", "BYTES"}};
    const std::string picture = Picture();
    if (random_.OneIn(3)) {
      const auto size = static_cast<uint32_t>(picture.size());
      *tail = std::string(reinterpret_cast<const char*>(&size), 4) + picture;
      input["parameters"]["binary_data_size"] = tail->size();
    } else if (random_.OneIn(3)) {
      input["datatype"] = OneOf({"UINT8", "FP32"});
      input["shape"] = {1, 3, 64, 64};
      input["data"] = std::vector<int>(3 * 64 * 64, random_.Below(300));
    } else {
      input["data"] = {{{"b64", absl::Base64Escape(picture)}}};
    }
    Json output = {{"name", OneOf({"logits", "logits", "embedding", "boxes",
                                   "masks", "class_map", "classes"})}};
    if (random_.OneIn(3)) output["parameters"]["binary_data"] = true;
    if (random_.OneIn(5)) output["parameters"]["classification"] = 2;
    Json request = {{"inputs", {input}}};
    if (random_.OneIn(3)) request["outputs"] = {output};
    if (random_.OneIn(3)) request["id"] = "a";
    if (random_.OneIn(3)) {
      request["parameters"][OneOf({"priority", "timeout", "score_threshold",
                                   "sequence_id", "binary_data_output"})] =
          Anything(0);
    }
    // Sometimes replaces a random value of the request.
    if (random_.OneIn(4)) Replace(&request);
    return request;
  }

  void Replace(Json* root) {
    Json* at = root;
    while (!at->empty() && at->is_structured() && !random_.OneIn(4)) {
      auto next = at->begin();
      std::advance(next, random_.Below(static_cast<int>(at->size())));
      at = &*next;
    }
    *at = Anything(0);
  }

  Json Anything(int depth) {
    switch (random_.Below(depth < kMostDepth ? 10 : 8)) {
      case 0:
        return nullptr;
      case 1:
        return random_.OneIn(2);
      case 2:
        return random_.Below(5);
      case 3:
        return -1;
      case 4:
        return int64_t{1} << random_.Below(63);
      case 5:
        return 1e300;
      case 6:
        return OneOf({"", "a", "image", "-1", "BYTES", "\xFF"});
      case 7:
        return 0.5;
      case 8: {
        Json array = Json::array();
        while (!random_.OneIn(3)) array.push_back(Anything(depth + 1));
        return array;
      }
      default: {
        Json object = Json::object();
        while (!random_.OneIn(3)) {
          object[OneOf({"data", "name", "b64", "shape", "parameters"})] =
              Anything(depth + 1);
        }
        return object;
      }
    }
  }

  // Loads and unloads models, and reads the settings.
  void ChangeKserve(httplib::Request* request) {
    request->method = "POST";
    request->path = absl::StrReplaceAll(
        OneOf({"/v2/repository/index", "/v2/repository/models/MODEL/load",
               "/v2/repository/models/MODEL/load",
               "/v2/repository/models/MODEL/load",
               "/v2/repository/models/MODEL/load",
               "/v2/repository/models/MODEL/load",
               "/v2/repository/models/MODEL/load",
               "/v2/repository/models/MODEL/unload", "/v2/trace/setting",
               "/v2/logging"}),
        {{"MODEL", Model()}});
    if (random_.OneIn(3)) return;
    Json body = {{"ready", true}, {"parameters", Json::object()}};
    if (random_.OneIn(4)) Replace(&body);
    request->body =
        body.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace);
    random_.Spoil(&request->body);
  }

  void AddHeaders(httplib::Request* request) {
    const auto add = [&](int n, const char* name, const Texts& values) {
      if (random_.OneIn(n)) request->headers.emplace(name, OneOf(values));
    };
    add(4, "Accept", {"application/json", "application/x-protobuf", "*/*", ""});
    add(3, "Accept-Encoding", {"gzip", "gzip;q=0", "deflate", "identity;q=0"});
    add(12, "X-Request-Timeout", {"1", "0.001", "5s", "-1", "nan", "1e300"});
    add(30, "grpc-timeout", {"1S", "1m", "99999999H", "0S", "S", ""});
    add(8, "traceparent",
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00--"});
    add(8, "Origin", {"http://a", "null"});
    add(40, "Expect", {"100-continue", "200"});
    add(20, "Connection", {"close", "keep-alive", "upgrade"});
    add(20, "Range", {"bytes=0-1"});
    add(30, "Content-Type", {"text/plain", "multipart/form-data", ";", ""});
    if (random_.OneIn(6)) {
      if (!random_.OneIn(8)) request->body = http::Gzip(request->body);
      request->headers.emplace("Content-Encoding", "gzip");
    }
  }

  const RandomMessages::Words words_;
  RandomMessages random_;
};

using RandomRequestsAttackTest = RandomCallsTest;

TEST_F(RandomRequestsAttackTest, LeaveTheServerAsItWas) {
  absl::Mutex mu;
  std::map<std::string, std::map<int, int>>
      answers;       // The number of answers by path and status.
  int answered = 0;  // The number of answers with status 200.
  RunCallers([&](int seed) {
    RandomRequests requests(seed, Words());
    httplib::Client client("127.0.0.1", server_->http_port());
    client.set_keep_alive(true);
    for (int n = 0; n < kCalls; ++n) {
      const httplib::Request request = requests.Next();
      // One client in ten disconnects before the answer.
      const bool hurried = requests.random().OneIn(10);
      client.set_read_timeout(hurried ? 0 : 60,
                              hurried ? 1000 * requests.random().Below(30) : 0);
      const httplib::Result answer = client.send(request);
      const std::string path = absl::StrCat(
          request.method, " ", request.path.substr(0, request.path.find('?')));
      absl::MutexLock lock(&mu);
      ++answers[absl::CHexEscape(path)][answer ? answer->status : -1];
      answered += answer && answer->status == 200;
    }
  });

  for (const auto& [path, statuses] : answers) {
    std::printf("%s:", path.c_str());
    for (const auto& [status, count] : statuses) {
      std::printf(" %d of %d", count, status);
    }
    std::printf("\n");
    EXPECT_EQ(statuses.count(500), 0) << path;
  }
  EXPECT_GT(answered, kCallers * kCalls / 10);
  ExpectUnharmed();
}

}  // namespace
}  // namespace sfmamba
