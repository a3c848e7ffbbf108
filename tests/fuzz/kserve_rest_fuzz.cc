// The body of a request to infer over REST: what is accepted is JSON and binary
// data as the header cuts them, and becomes a message that gRPC's reader takes
// or refuses, with the elements that are in the JSON.
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
#include "grpcpp/impl/codegen/proto_utils.h"
#include "inference/grpc_service.pb.h"
#include "nlohmann/json.hpp"
#include "server/errors/error.h"
#include "server/kserve/received_inference.h"
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

// The elements of `data` as raw contents of this type have them.
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
  Check(message.model_name() == "m" && message.model_version() == "1",
        "the path names the model");
  Check(message.id() == asked.value("id", ""), "the id is the JSON's");
  const json inputs = asked.value("inputs", json::array());
  Check(message.inputs_size() == static_cast<int>(inputs.size()),
        "there are as many inputs as in the JSON");
  Check(message.outputs_size() ==
            static_cast<int>(asked.value("outputs", json::array()).size()),
        "and as many outputs");
  int raw = 0;
  for (int i = 0; i < message.inputs_size(); ++i) {
    const auto& input = message.inputs(i);
    Check(input.datatype() == inputs[i].value("datatype", "") &&
              input.name() == inputs[i].value("name", ""),
          "an input's name and type are the JSON's");
    const json parameters = inputs[i].value("parameters", json::object());
    const bool binary = parameters.contains("binary_data_size");
    if (!inputs[i].contains("data") && !binary) continue;
    const std::string& elements = message.raw_input_contents(raw++);
    if (binary) {
      Check(elements.size() == parameters["binary_data_size"].get<uint64_t>(),
            "binary data have their size");
    } else if (!HasObject(inputs[i]["data"])) {
      std::string expected;
      AppendElements(inputs[i]["data"], input.datatype(), &expected);
      Check(elements == expected, "elements are the JSON's");
    }
  }
  Check(raw == message.raw_input_contents_size(), "none is made up");
}

void Fuzz(std::optional<absl::string_view> header, std::string body) {
  const std::string kept = body;
  server::MemoryBudget memory(int64_t{1} << 30, 384 << 20);
  auto request = rest::ReadKserveRequest("m", "1", header, std::move(body),
                                         kMaxRawBytes, &memory);
  if (!request.ok()) {
    const std::string reason = server::GetErrorDetail(request.status()).reason;
    Check(absl::IsInvalidArgument(request.status()) &&
              (reason == "MALFORMED_MESSAGE" || reason == "INVALID_FIELD"),
          "a body is refused as malformed or as invalid");
    Check(base::Utf8Length(request.status().message()) >= 0,
          "an error is UTF-8");
    return;
  }
  grpc::ByteBuffer share = request->message;
  ModelInferRequest message;
  Check(grpc::SerializationTraits<ModelInferRequest>::Deserialize(&share,
                                                                  &message)
            .ok(),
        "what is accepted is a message");
  // Without the header a body that begins as a picture does is one.
  const size_t json_size = base::FormatOf(kept).has_value() ? 0 : kept.size();
  const size_t head =
      header.has_value() ? std::stoul(std::string(*header)) : json_size;
  if (head > 0) {
    CheckMessage(json::parse(kept.substr(0, head)), message);
  } else {
    Check(message.raw_input_contents(0).substr(4) == kept,
          "a body without JSON is one picture");
  }
  kserve::ReceivedInference received(&request->message, kMaxImages);
  Check(received.status().ok() || absl::IsInvalidArgument(received.status()),
        "gRPC's reader takes it or says what is wrong");
  Check(base::Utf8Length(received.status().message()) >= 0,
        "and its error is UTF-8");
}

}  // namespace
}  // namespace sfmamba

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The header is absent, the start of the bytes, or a number of bytes.
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
