#ifndef SFMAMBA_CLIENT_EVAL_COCO_FILE_H_
#define SFMAMBA_CLIENT_EVAL_COCO_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/eval/run_lengths.h"

namespace sfmamba::client {

// A box inside a picture, in pixels of the picture as it is shown.
struct CocoBox {
  double x = 0, y = 0, width = 0, height = 0;
};

struct CocoObject {
  int64_t category_id = 0;
  CocoBox box;
  bool crowd = false;  // A region of many objects.
  // Unset if only the box is known. If a crowd has no mask in the file, its box
  // becomes its mask.
  std::optional<RunLengths> mask;
};

struct CocoPicture {
  int64_t id = 0;
  std::string path;
  int width = 0, height = 0;  // 0 if unknown.
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
  // One line that counts what was changed or left out. Empty if nothing was.
  std::string left_out;
};

// Reads the file `json`. A picture's "file_name" is looked up in each of
// `folders`, and the first file found is used. "file_name" may begin with the
// folder's name.
//
// Ids and sizes are whole numbers, which may be written as 1.0. A category
// without objects is left out if another category names it as its
// "supercategory". Polygons of fewer than three points and boxes outside their
// picture are left out. Other boxes are clipped.
//
// Returns NOT_FOUND if the file cannot be read. Returns INVALID_ARGUMENT if an
// entry is malformed, refers to an unknown id, or has the id or name of another
// entry. Also returns INVALID_ARGUMENT if a "file_name" is outside the folders,
// for example "../x.jpg". The error names the entry.
absl::StatusOr<CocoFile> ReadCocoFile(const std::string& json,
                                      const std::vector<std::string>& folders);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_EVAL_COCO_FILE_H_
