#ifndef SFMAMBA_CLIENT_COMMANDS_PICTURE_FLAGS_H_
#define SFMAMBA_CLIENT_COMMANDS_PICTURE_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/commands/flag_set.h"
#include "client/commands/picture_output.h"
#include "client/commands/predict_files.h"
#include "client/picture/picture.h"
#include "google/protobuf/repeated_field.h"

namespace sfmamba::client {

// The default deadline for detectors and segmenters. They take seconds per
// picture on a CPU, and several requests wait for one another.
constexpr absl::Duration kPictureDeadline = absl::Minutes(1);

// Parses "WxH", two positive numbers. Returns INVALID_ARGUMENT with the flag's
// name if `text` is something else.
absl::Status ParseSize(absl::string_view flag, absl::string_view text,
                       int32_t* width, int32_t* height);

// The flags that the commands classify, detect and segment have in common.
struct PictureFlags {
  std::string output_dir;
  std::string classes;

  void AddTo(FlagSet* flags);

  // Adds the numbers in `classes` to a request's filter. If a part of `classes`
  // is not a number, returns INVALID_ARGUMENT with this part.
  absl::Status ParseClasses(
      google::protobuf::RepeatedField<int32_t>* filter) const;

  // If `output_dir` is not empty, makes `actions` draw each result with `draw`
  // and write the drawings to this folder. Returns the errors of
  // PictureOutput::Prepare().
  template <typename Result>
  absl::Status AddDrawing(const std::string& verb,
                          const std::vector<std::string>& files,
                          absl::StatusOr<Picture> (*draw)(const Picture&,
                                                          const Result&),
                          VerbActions<Result>* actions) const {
    if (output_dir.empty()) return absl::OkStatus();
    const PictureOutput output(output_dir, verb);
    actions->annotate = [=](size_t, const std::string& file,
                            const Result& result) {
      return output.Write(
          file, [&](const Picture& picture) { return draw(picture, result); });
    };
    return output.Prepare(files);
  }
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_PICTURE_FLAGS_H_
