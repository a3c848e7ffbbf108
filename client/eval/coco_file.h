#ifndef SFMAMBA_CLIENT_EVAL_COCO_FILE_H_
#define SFMAMBA_CLIENT_EVAL_COCO_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/eval/run_lengths.h"

namespace sfmamba::client {

// In pixels of the picture as it is shown, inside of the picture.
struct CocoBox {
  double x = 0, y = 0, width = 0, height = 0;
};

struct CocoObject {
  int64_t category_id = 0;
  CocoBox box;
  bool crowd = false;              // A region of many objects.
  std::optional<RunLengths> mask;  // Unset: only the box is known. A crowd's
                                   // box takes the place of its mask.
};

struct CocoPicture {
  int64_t id = 0;
  std::string path;
  int width = 0, height = 0;  // 0 if neither the file nor the picture tells.
  std::vector<CocoObject> objects;
};

struct CocoCategory {
  int64_t id = 0;
  std::string name;
};

// The usable contents of a file in COCO's instances format.
struct CocoFile {
  std::vector<CocoPicture> pictures;
  std::vector<CocoCategory> categories;
  // A line that counts what was changed or left out; empty if nothing was.
  std::string left_out;
};

// Reads `json`. A picture lies in the first of `folders` that has it;
// "file_name" may begin with the folder's name.
//
// Ids and sizes are whole numbers, also if they are written as 1.0. A category
// without objects that another one names as its "supercategory" is left out, as
// are polygons of fewer than three points and boxes of which no part lies in
// their picture. Other boxes are clipped.
//
// INVALID_ARGUMENT names the entry that is malformed, refers to an unknown id,
// leads out of the folder, or has the id, the name or the picture of another
// one.
absl::StatusOr<CocoFile> ReadCocoFile(const std::string& json,
                                      const std::vector<std::string>& folders);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_COCO_FILE_H_
