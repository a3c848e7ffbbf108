#ifndef SFMAMBA_CLIENT_EVAL_DATASET_H_
#define SFMAMBA_CLIENT_EVAL_DATASET_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/eval/coco_file.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// Pictures and, if they are labelled, the right answers. They are read from a
// folder in one of these layouts:
//   annotations.json, images/<file_name>
//     Detection, in COCO's instances format. The folders that other tools
//     export can be read too: Roboflow (valid/_annotations.coco.json with the
//     pictures beside it), CVAT (annotations/instances_default.json, images/),
//     Label Studio (result.json, images/) and COCO
//     (annotations/instances_val2017.json, val2017/).
//   images/<name>.<ext>, maps/<name>.png
//     Segmentation: each pixel of a map is its class's number, 255 is ignored.
//   <class>/<any>.<ext>
//     Classification: a folder for each class, named like the model's label.
//   <any>.<ext>
//     Pictures without the right answers, for models of any task.
// A folder may combine the first two layouts. Pictures are JPEG, PNG or WebP
// files.
struct Dataset {
  struct Sample {
    std::string picture;  // The path of the picture.
    std::string label;    // Set only for classification.
    std::string map;      // The path of the map, only for segmentation.
    CocoPicture coco;     // Set only for detection.
  };

  v1::Model::Task task = v1::Model::TASK_UNSPECIFIED;
  bool labelled = true;
  std::vector<Sample> samples;  // There is at least one sample.
  // The labels of the classes. For detection, each label is mapped to the id of
  // its category. For classification, only the labels are used, and each is
  // mapped to 0. For segmentation, the map is empty.
  std::map<std::string, int64_t> classes;
  // The value of CocoFile::left_out. Set only for detection.
  std::string left_out;
};

// Reads the dataset in `folder`. If the folder combines two layouts, `task`
// chooses one of them and must not be TASK_UNSPECIFIED. If the pictures are not
// labelled, `task` becomes the dataset's task. Returns NOT_FOUND or
// INVALID_ARGUMENT with the name of what is missing, malformed or ambiguous.
absl::StatusOr<Dataset> ReadDataset(const std::string& folder,
                                    v1::Model::Task task);

// Reads a file in COCO's instances format, whose pictures are in `folders`.
// Returns the errors of ReadCocoFile().
absl::StatusOr<Dataset> ReadCocoDataset(
    const std::string& annotations, const std::vector<std::string>& folders);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_DATASET_H_
