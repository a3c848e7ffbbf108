// Fuzzes the body of an inference request over REST. The header says where the
// JSON ends and the binary data begin. A body must be refused, or become a
// request with the elements of the JSON or of the binary data.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/image_format.h"
#include "base/utf8.h"
#include "inference/grpc_service.pb.h"
#include "nlohmann/json.hpp"
#include "server/api/kserve/infer_request.h"
#include "server/call/call.h"
#include "server/errors/error.h"
#include "server/http/exchange.h"
#include "server/image/image_source.h"
#include "server/rest/kserve/request.h"
#include "server/shares/memory_budget.h"
#include "tests/fuzz/check.h"

namespace sfmamba {
namespace {

using inference::ModelInferRequest;
using nlohmann::json;

constexpr int64_t kMaxRawBytes = 1 << 20;
constexpr int kMaxImages = 64;

template <typename T>
void Append(T number, std::string* raw) {
  raw->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Appends the elements of `data`, which have this type, in the form of raw
// contents.
void AppendElements(const json& data, const std::string& datatype,
                    std::string* raw) {
  for (const json& element : data) {
    if (element.is_array()) {
      AppendElements(element, datatype, raw);
    } else if (element.is_string()) {
      const auto& text = element.get_ref<const std::string&>();
      Append(static_cast<uint32_t>(text.size()), raw);
      *raw += text;
    } else if (datatype == "UINT8") {
      Append(element.get<uint8_t>(), raw);
    } else {
      Append(static_cast<float>(element.get<double>()), raw);
    }
  }
}

bool HasObject(const json& data) {
  for (const json& element : data) {
    if (element.is_object() || (element.is_array() && HasObject(element))) {
      return true;
    }
  }
  return false;
}

void CheckMessage(const json& asked, const ModelInferRequest& message) {
  Check(message.id() == asked.value("id", ""), "the id is the JSON's");
  const json inputs = asked.value("inputs", json::array());
  Check(message.inputs_size() == static_cast<int>(inputs.size()),
        "there are as many inputs as in the JSON");
  Check(message.outputs_size() ==
            static_cast<int>(asked.value("outputs", json::array()).size()),
        "and as many outputs");
  for (int i = 0; i < message.inputs_size(); ++i) {
    const auto& input = message.inputs(i);
    Check(input.datatype() == inputs[i].value("datatype", "") &&
              input.name() == inputs[i].value("name", ""),
          "an input's name and type are the JSON's");
  }
}

// Checks the elements of the only input. They are in the JSON or, if it has
// none, in `tail`.
void CheckImages(const json& input, absl::string_view tail,
                 const ModelInferRequest& message, call::Pictures* pictures) {
  std::string found;
  for (int i = 0; i < pictures->count(); ++i) {
    image::ImageSource source = kserve::ImageOf(message, i);
    pictures->SetBytes(&source);
    if (source.encoded() != nullptr) {
      Append(static_cast<uint32_t>(source.encoded()->bytes.size()), &found);
      absl::StrAppend(&found, source.encoded()->bytes);
    } else {
      absl::StrAppend(&found, source.tensor()->data);
    }
  }
  std::string expected(tail);
  if (input.contains("data")) {
    if (HasObject(input["data"])) return;
    AppendElements(input["data"], message.inputs(0).datatype(), &expected);
  }
  Check(found == expected, "elements are those that were sent");
}

void Fuzz(std::optional<absl::string_view> header, std::string body) {
  const std::string kept = body;
  server::MemoryBudget memory(int64_t{1} << 30, 384 << 20);
  http::HttpRequest request;
  request.body = std::move(body);
  if (header.has_value()) {
    request.headers.emplace("inference-header-content-length", *header);
  }
  ModelInferRequest message;
  rest::OutputForms outputs;
  const auto pictures =
      rest::ReadInferBody(absl::OkStatus(), kMaxImages, kMaxRawBytes, &request,
                          &memory, &message, &outputs);
  for (const absl::Status& status :
       {pictures->status(), pictures->images_status()}) {
    const std::string reason = server::GetErrorDetail(status).reason;
    Check(status.ok() || absl::IsUnimplemented(status) ||
              reason == "MALFORMED_MESSAGE" || reason == "INVALID_FIELD",
          "a body is refused as malformed or as invalid");
    Check(base::Utf8Length(status.message()) >= 0, "an error is UTF-8");
  }
  if (!pictures->status().ok()) return;
  // Without the header, a body that begins like a picture is a picture.
  const size_t json_size = base::FormatOf(kept).has_value() ? 0 : kept.size();
  const size_t head =
      header.has_value() ? std::stoul(std::string(*header)) : json_size;
  if (head == 0) {
    image::ImageSource source = kserve::ImageOf(message, 0);
    pictures->SetBytes(&source);
    Check(source.encoded()->bytes == kept,
          "a body without JSON is one picture");
    return;
  }
  const json asked = json::parse(kept.substr(0, head));
  CheckMessage(asked, message);
  if (!pictures->images_status().ok() || pictures->count() > kMaxImages) return;
  CheckImages(asked["inputs"][0], absl::string_view(kept).substr(head), message,
              pictures.get());
}

}  // namespace
}  // namespace sfmamba

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The first byte decides whether the header is missing, contains the next
  // bytes of the input, or contains a number.
  sfmamba::Input input(data, size);
  const int kind = input.Below(3);
  const int number = input.Below(256);
  const std::string body = input.text();
  if (kind == 0) {
    sfmamba::Fuzz(std::nullopt, body);
  } else if (kind == 1) {
    const size_t cut = std::min<size_t>(number, body.size());
    sfmamba::Fuzz(absl::string_view(body).substr(0, cut), body.substr(cut));
  } else {
    sfmamba::Fuzz(absl::StrCat(number * body.size() / 255), body);
  }
  return 0;
}
