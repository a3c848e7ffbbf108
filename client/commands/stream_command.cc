#include "client/commands/stream_command.h"

#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "client/commands/picture_source.h"
#include "client/commands/stream_run.h"
#include "client/rpc/vision_client.h"

namespace sfmamba::client {
namespace {

struct StreamFlags {
  CommonFlags common;
  std::string method = "classify";
  std::string model;
  int max_in_flight = 16;
  bool ordered = false;
  bool recursive = false;
  absl::Duration watch;

  void AddTo(FlagSet* flags) {
    common.AddTo(flags);
    flags->Add("method", "classify|detect|segment", "what to ask for", &method);
    flags->Add("model", "NAME",
               "model to ask; empty: the server's only or default one", &model);
    flags->Add("max_in_flight", "N",
               "pictures sent and not yet answered, 1 to 512", &max_in_flight);
    flags->Add("ordered", "", "answers in the order of the pictures", &ordered);
    flags->Add("recursive", "", "of a folder: its folders' pictures too",
               &recursive);
    flags->Add("watch", "DURATION",
               "of a folder: then send what comes into it, until nothing has "
               "come for this time",
               &watch);
  }
};

// Sets the fields that the requests of all methods have. Returns the request's
// options.
template <typename Request>
v1::RequestOptions* Fill(const StreamFlags& flags, std::string picture,
                         Request* request) {
  request->set_model(flags.model);
  request->add_images()->set_encoded(std::move(picture));
  return request->mutable_options();
}

v1::StreamPredictRequest Message(const StreamFlags& flags,
                                 std::string picture) {
  v1::StreamPredictRequest message;
  v1::RequestOptions* options = nullptr;
  if (flags.method == "detect") {
    options = Fill(flags, std::move(picture), message.mutable_detect());
  } else if (flags.method == "segment") {
    options = Fill(flags, std::move(picture), message.mutable_segment());
  } else {
    options = Fill(flags, std::move(picture), message.mutable_classify());
  }
  base::ToProto(flags.common.deadline, options->mutable_max_queue_wait());
  return message;
}

}  // namespace

int RunStream(const std::vector<std::string>& arguments,
              const Console& console) {
  StreamFlags stream;
  FlagSet flags(
      "sfmamba stream FOLDER|- [flags]",
      "Sends the pictures (JPEG, PNG or WebP) of a folder, or those that "
      "lines\n"
      "of standard input name, over one stream, and writes a line of JSON for\n"
      "each as it is answered. The server takes the next one as soon as it "
      "can;\n"
      "--deadline bounds how long each may wait there. If a server that has\n"
      "answered drains, loads or cannot be reached, what it has not answered "
      "is sent\n"
      "again, until no picture is answered for two minutes.");
  stream.AddTo(&flags);
  std::vector<std::string> positional;
  if (const auto exit =
          ParseArguments(&flags, arguments, &positional, console)) {
    return *exit;
  }
  if (positional.size() != 1) {
    return UsageError("stream takes one folder, or '-'", console);
  }
  if (stream.method != "classify" && stream.method != "detect" &&
      stream.method != "segment") {
    return UsageError(
        absl::StrCat("--method: expected classify, detect or segment, got '",
                     stream.method, "'"),
        console);
  }
  std::unique_ptr<PictureSource> pictures;
  if (positional[0] == "-") {
    pictures = std::make_unique<ListedPictures>(&std::cin);
  } else {
    auto folder = std::make_unique<FolderPictures>(positional[0], stream.watch,
                                                   stream.recursive);
    const absl::Status status = folder->Check();
    if (!status.ok()) return UsageError(status.message(), console);
    pictures = std::move(folder);
  }
  StreamOptions options;
  options.config.set_max_in_flight(stream.max_in_flight);
  options.config.set_preserve_order(stream.ordered);
  options.deadline = stream.common.deadline;
  options.method = stream.method;
  options.message = [&stream](std::string picture) {
    return Message(stream, std::move(picture));
  };
  VisionClient client(stream.common.server, stream.common.client);
  return StreamRun(options, pictures.get(), &client, console).Run();
}

}  // namespace sfmamba::client
