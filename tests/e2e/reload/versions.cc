#include "tests/e2e/reload/versions.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace sfmamba {

namespace fs = std::filesystem;

void PublishVersion(const std::string& repository, const std::string& id,
                    int number) {
  PublishSpoilt(repository, id, number, [](const std::string& /*path*/) {});
}

void PublishSpoilt(const std::string& repository, const std::string& id,
                   int number, void (*spoil)(const std::string& path)) {
  const fs::path made = absl::StrCat(repository, "-made-", id, "-", number);
  fs::remove_all(made);
  fs::copy(repository + "/tiny/1", made);
  std::ofstream labels(made / "labels.txt");
  for (const char* name : {"bed", "bottle", "bowl", "chair", "cup"}) {
    labels << "v" << number << "-" << name << "\n";
  }
  labels.close();
  spoil((made / "model.safetensors").string());
  const fs::path folder = fs::path(repository) / id / absl::StrCat(number);
  fs::create_directories(folder.parent_path());
  fs::remove_all(folder);
  fs::rename(made, folder);
}

}  // namespace sfmamba
