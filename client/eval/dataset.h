#ifndef SFMAMBA_CLIENT_EVAL_DATASET_H_
#define SFMAMBA_CLIENT_EVAL_DATASET_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// Pictures with the right answers, read from a folder in one of three layouts:
//   <folder>/annotations.json, <folder>/images/<file_name>
//     Detection: COCO's instances format.
//   <folder>/images/<name>.<ext>, <folder>/maps/<name>.png
//     Segmentation: each pixel of a map is its class's number, 255 is ignored.
//   <folder>/<class>/<any>.<ext>
//     Classification: a folder for each class, named like the model's label.
// The first two may share a folder. Pictures are JPEG, PNG or WebP files.
struct Dataset {
  struct Sample {
    std::string picture;   // Path.
    std::string label;     // Classification only.
    std::string map;       // Path; segmentation only.
    int64_t image_id = 0;  // Detection only.
  };

  v1::Model::Task task = v1::Model::TASK_UNSPECIFIED;
  std::vector<Sample> samples;             // By path; at least one.
  std::map<std::string, int64_t> classes;  // Detection: to the category's id.
                                           // Classification: to 0.
};

// `task` decides where a folder has two layouts; TASK_UNSPECIFIED: none does.
// NOT_FOUND or INVALID_ARGUMENT naming what is missing, malformed or undecided.
absl::StatusOr<Dataset> ReadDataset(const std::string& folder,
                                    v1::Model::Task task);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_DATASET_H_
