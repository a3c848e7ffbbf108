#include "client/commands/profile_command.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/proto_duration.h"
#include "client/commands/output/message_json.h"
#include "client/commands/output/text_table.h"
#include "client/rpc/vision_client.h"

namespace sfmamba::client {
namespace {

using SizeClass = v1::BatchProfile::SizeClass;

std::string SizeName(const SizeClass& size) {
  std::string name = absl::StrCat(size.height(), "x", size.width());
  if (size.image_type() == v1::BatchProfile::FLOAT32) {
    absl::StrAppend(&name, " float");
  }
  if (size.variant() != 0) absl::StrAppend(&name, " #", size.variant());
  return name;
}

std::string Milliseconds(absl::Duration duration) {
  return absl::StrFormat("%.2f", absl::ToDoubleMilliseconds(duration));
}

bool IsEfficient(const SizeClass& size, int images) {
  return std::find(size.efficient_sizes().begin(), size.efficient_sizes().end(),
                   images) != size.efficient_sizes().end();
}

std::string ProfileTable(const v1::BatchProfile& profile) {
  TextTable table(
      {"size", ">images", ">T50 ms", ">T95 ms", ">images/s", "efficient"});
  for (const SizeClass& size : profile.size_classes()) {
    for (const v1::BatchProfile::BatchTime& time : size.times()) {
      const absl::Duration median = base::FromProto(time.median());
      table.AddRow({SizeName(size), absl::StrCat(time.images()),
                    Milliseconds(median),
                    Milliseconds(base::FromProto(time.p95())),
                    absl::StrFormat(
                        "%.1f", time.images() / absl::ToDoubleSeconds(median)),
                    IsEfficient(size, time.images()) ? "yes" : ""});
    }
  }
  return table.ToString();
}

void Print(const v1::BatchProfile& profile, const Console& console) {
  console.out << profile.model() << " on " << profile.device()
              << ", batches of at most " << profile.max_batch_size() << "\n";
  if (profile.size_classes().empty()) {
    console.out << "The server has not measured any batch of this model yet. "
                   "It does when images are sent.\n";
    return;
  }
  console.out << "\n" << ProfileTable(profile) << "\n";
  for (const SizeClass& size : profile.size_classes()) {
    console.out << SizeName(size) << ": "
                << absl::StrFormat(
                       "%.2f times as long as at first, %.1f images/s arrive\n",
                       size.pace(), size.arrivals_per_second());
  }
}

}  // namespace

int RunProfile(const std::vector<std::string>& arguments,
               const Console& console) {
  CommonFlags common;
  FlagSet flags("sfmamba profile [MODEL] [flags]",
                "Tells how long the batches of a model take, by the size of\n"
                "the images and their number, as the server has measured.");
  common.AddTo(&flags);
  std::vector<std::string> names;
  if (const auto exit = ParseArguments(&flags, arguments, &names, console)) {
    return *exit;
  }
  if (names.size() > 1) return UsageError("profile takes one model", console);
  VisionClient client(common.server, common.client);
  const absl::StatusOr<v1::BatchProfile> profile =
      client.GetBatchProfile(names.empty() ? "" : names[0], common.deadline);
  if (!profile.ok()) return RpcError(profile.status(), common, console);
  if (common.json) {
    console.out << MessageJson(*profile);
  } else {
    Print(*profile, console);
  }
  return kExitOk;
}

}  // namespace sfmamba::client
